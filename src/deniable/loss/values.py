"""Numbers that know how far they may be from the truth."""

from __future__ import annotations

from math import inf, isnan

__all__ = ["Upper", "upper"]


class Upper(float):
    """A float on the safe side: the truth lies in [value - error, value]."""

    error: float

    def __new__(cls, value: float, error: float = 0.0) -> Upper:
        number = super().__new__(cls, value)
        number.error = error
        return number

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self), self.error


def upper(estimate: float, error: float, low: float = 0.0, high: float = inf) -> Upper:
    """`estimate`, known to within +-`error`, moved to its upper end and kept inside [low, high]."""
    if isnan(estimate) or isnan(error):
        return Upper(high, high - low)
    top = min(max(estimate + error, low), high)
    return Upper(top, max(0.0, min(2 * error, top - low)))
