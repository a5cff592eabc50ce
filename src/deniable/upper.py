"""Numbers that know how far they may be from the truth."""

from __future__ import annotations

from math import inf, isnan, nextafter

__all__ = ["NotANumberError", "Upper", "upper"]

_APART = 1e-9  # relative; brackets that are no farther apart differ by round-off


class NotANumberError(ArithmeticError):
    """A computation ended in NaN, which would pass every comparison and so look safe."""


class Upper(float):
    """A float on the safe side: the truth lies in [value - error, value]. Neither is ever NaN, nor error negative."""

    error: float

    def __new__(cls, value: float, error: float = 0.0) -> Upper:
        if isnan(value) or isnan(error):
            raise NotANumberError(f"no number on the safe side: value {value!r}, error {error!r}")
        number = super().__new__(cls, value)
        number.error = max(0.0, float(error))
        return number

    @property
    def least(self) -> float:
        """The lower end: the truth is at least this (-inf where nothing is known)."""
        return -inf if self.error == inf else float(self) - self.error

    @classmethod
    def between(cls, least: float, value: float) -> Upper:
        """The truth lies in [least, value]; an infinite value that is certain has no error."""
        if least >= value:
            return cls(value, 0.0)
        error = value - least
        return cls(value, error if value - error <= least else nextafter(error, inf))

    def meet(self, other: Upper) -> Upper:
        """What both brackets leave of each other; all of both where they leave nothing, as one of them is wrong."""
        top, low = min(self, other), max(self.least, other.least)
        if low > top + _APART * abs(top):
            return Upper.between(min(self.least, other.least), max(self, other))
        return Upper(top, max(0.0, top - low))

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self), self.error


def upper(estimate: float, error: float, low: float = 0.0, high: float = inf) -> Upper:
    """`estimate`, known to within +-`error`, moved to its upper end and kept inside [low, high].

    Where nothing is known (NaN), the whole of [low, high].
    """
    top = estimate + error
    if isnan(top):
        return Upper(high, inf if high == inf else high - low)
    top = min(max(top, low), high)
    if top == inf:
        return Upper(inf, 0.0 if error < inf else inf)
    return Upper(top, max(0.0, min(2 * error, top - low)))
