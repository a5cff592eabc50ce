"""Measured amounts as a person reads them; bounds are written by `deniable.numbers`, which rounds them up."""

from __future__ import annotations

__all__ = ["figure", "share"]


def figure(value: float | None) -> str:
    """A measured number, to three digits; a dash where there is none."""
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def share(value: float) -> str:
    """A measured share as a percentage; never rounded to all or none unless it is."""
    percent = 100 * value
    if 0 < percent < 0.05:
        return f"{percent:.1g} %" if percent >= 1e-4 else f"{value:.1e}"
    if 99.95 <= percent < 100:
        return "over 99.9 %"
    return f"{percent:.1f} %".replace(".0 %", " %")
