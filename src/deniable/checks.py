"""One validator, one wording: every refused argument names itself, its value and its range."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real

__all__ = [
    "LEAST_NOISE",
    "MOST_NOISE",
    "MOST_STEPS",
    "amount_of_noise",
    "loss_size",
    "positive",
    "probability",
    "real",
    "whole",
]

MOST_STEPS = 10**9
"""Of a composition: beyond it the round-off of a single step's moment would show."""
LEAST_NOISE, MOST_NOISE = 1e-6, 1e15
"""Of a mechanism: less protects nobody, more cannot be told from infinitely much."""


def _refuse(name: str, value: object, expected: str, hint: str = "") -> ValueError:
    return ValueError(f"{name} must be {expected}, got {value!r}{hint}")


def _is_real(value: object) -> bool:
    # the first test is for speed: asking an abstract base class takes longer than many a formula behind it
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def real(name: str, value: float) -> float:
    """A finite number."""
    if not _is_real(value) or not isfinite(value):
        raise _refuse(name, value, "a finite number")
    return float(value)


def positive(name: str, value: float, zero: bool = False) -> float:
    """A finite number above 0 (or from 0 on)."""
    expected = "a finite number >= 0" if zero else "a finite number > 0"
    if not _is_real(value) or not isfinite(value):
        raise _refuse(name, value, expected)
    if value < 0 or (value == 0 and not zero):
        raise _refuse(name, value, expected)
    return float(value)


def amount_of_noise(name: str, value: float) -> float:
    """Relative to the sensitivity; the losses, at most 1 / noise^2, can be squared and multiplied by any steps."""
    return _within(name, positive(name, value), LEAST_NOISE, MOST_NOISE)


def loss_size(name: str, value: float, zero: bool = False) -> float:
    """The inverse of such an amount, as epsilon or mu (or 0)."""
    return 0.0 if positive(name, value, zero) == 0 else _within(name, value, 1 / MOST_NOISE, 1 / LEAST_NOISE)


def _within(name: str, value: float, low: float, high: float) -> float:
    if not low * (1 - 1e-15) <= value <= high * (1 + 1e-15):
        raise _refuse(name, value, f"between {low:g} and {high:g}")
    return float(value)


def probability(name: str, value: float, open_ends: bool = False) -> float:
    """A number from 0 to 1, or strictly between them."""
    expected = "a number strictly between 0 and 1" if open_ends else "a number from 0 to 1"
    if not _is_real(value) or not 0 <= value <= 1:
        raise _refuse(name, value, expected, _percent_hint(value))
    if open_ends and not 0 < value < 1:
        raise _refuse(name, value, expected)
    return float(value)


def _percent_hint(value: float) -> str:
    """75 is most likely meant as 75 per cent."""
    return f": did you mean {value / 100:g}?" if _is_real(value) and 1 < value < 100 else ""


def whole(name: str, value: int, low: int = 1) -> int:
    """A whole number from `low` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise _refuse(name, value, f"a whole number >= {low}")
    return int(value)
