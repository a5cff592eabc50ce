"""Measured amounts as a person reads them; bounds are written by `deniable.formatting`, which rounds them up."""

from __future__ import annotations

from math import floor, log10

from deniable.formatting import ALMOST_ALL, at_most, percent_at_most

_MOST_DECIMALS = 6


def figure(value: float | None) -> str:
    """A measured number, to three digits, never rounded to 1 unless it is; a dash where there is none."""
    if value is None:
        return "-"
    if 0 < abs(value - 0.5) < 0.0005:
        return _beside_half(value)
    if 0.9995 <= value < 1:
        return _below(value, 1.0) or "just under 1"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}".replace("e-0", "e-")


def allowed_figure(value: float | None) -> str:
    """What a noise allows at most, to three digits, rounded up as everywhere; 1 only where it is."""
    if value is None or not 0.999 < value < 1:
        return figure(value) if value is None else at_most(value)
    told = (at_most(value, digits) for digits in range(3, _MOST_DECIMALS + 1))
    return next((text for text in told if text != "1"), "just under 1")


def allowed_share(value: float | None) -> str:
    """The same as a percentage; a dash where there is none."""
    return "-" if value is None else percent_at_most(value)


def _beside_half(value: float) -> str:
    """What is not one half is not told as one half: a belief of 0.50028 is more than none."""
    return f"{value:.{1 - floor(log10(abs(value - 0.5)))}f}"


def share(value: float) -> str:
    """A measured share as a percentage; never rounded to all, none or one half unless it is."""
    percent = 100 * value
    if 1e-6 < abs(percent - 50) < 0.05:
        return f"{percent:.{1 - floor(log10(abs(percent - 50)))}f}".rstrip("0") + " %"
    if 0 < percent < 0.05:
        return f"{percent:.1g} %" if percent >= 1e-4 else f"{value:.1e}"
    if 99.95 <= percent < 100:
        shown = _below(percent, 100.0)
        return f"{shown} %" if shown else ALMOST_ALL
    return f"{percent:.3g} %" if percent < 10 else f"{percent:.1f} %".replace(".0 %", " %")


def _below(value: float, whole: float) -> str | None:
    """`value` with as many decimals as it takes to be told from `whole`; None where that is too many."""
    texts = (f"{value:.{decimals}f}" for decimals in range(2, _MOST_DECIMALS + 1))
    return next((text for text in texts if float(text) < whole), None)
