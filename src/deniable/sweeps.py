"""One score, or one calibrated noise, over many settings.

Scores are smooth functions of a setting (noise, rate, steps, delta, a promise's bound), so a few of many values are
computed and the others follow by polynomials between them. The function is called with given values only, so that a
sweep over whole numbers works as well as one over reals.

Error. Validated, not proved: every polynomial is compared with the function itself at the given values half-way between
its nodes, where it is worst. Four times the largest difference seen, and the largest error of the values that it passes
through, is the error of what follows from it. A piece on which they differ by more than a share of `precision` is
halved; a piece with few values is computed value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike, NDArray

from deniable.checks import positive, real

__all__ = ["Sweep", "sweep"]

Floats = NDArray[np.float64]
_NODES = 16
_FEW = 3 * _NODES  # values of a piece up to which each is computed
_MARGIN = 4.0  # times the largest difference that was seen


@dataclass(frozen=True)
class Sweep:
    """The function at every one of `settings`, in the order given: the truth lies in [values - errors, values].

    Examples:
        >>> import deniable as dn
        >>> found = dn.sweep(lambda noise: dn.privacy_loss(dn.Gaussian(noise)).advantage(), [1.0, 2.0])
        >>> found.values.round(4).tolist()
        [0.3829, 0.1974]
    """

    settings: Floats
    values: Floats
    errors: Floats
    computed: int
    """How many of the values were computed themselves."""


def sweep(function: Callable[[float], float], settings: ArrayLike, precision: float = 1e-8) -> Sweep:
    """`function` at every one of `settings` (one dimension, any order), on the safe side.

    Args:
        function: A score or a calibration by one setting, such as
            ``lambda noise: privacy_loss(Gaussian(noise).composed(1000)).epsilon(1e-5)``; whole settings are given to
            it as `int`.
        settings: Where it is asked.
        precision: The relative error above which values are computed rather than interpolated.

    Returns:
        Values and errors, in the order of `settings`.

    Examples:
        >>> import deniable as dn
        >>> found = dn.sweep(lambda noise: dn.privacy_loss(dn.Gaussian(noise)).epsilon(1e-5), [1.0, 2.0, 4.0])
        >>> found.values.round(3).tolist()
        [4.377, 1.993, 0.926]
    """
    given = np.asarray(settings)
    if given.ndim != 1:
        raise ValueError(f"settings must have one dimension, got {given.ndim}")
    for setting in given.tolist():
        real("settings", setting)
    positive("precision", precision)
    places, back = np.unique(given, return_inverse=True)
    pieces = _Pieces(function, places, precision)
    if places.size:
        pieces.answer(0, places.size)
    return Sweep(given.astype(np.float64), pieces.values[back], pieces.errors[back], len(pieces.known))


class _Pieces:
    """The function at sorted settings, piece by piece."""

    def __init__(self, function: Callable[[float], float], places: NDArray[np.generic], precision: float) -> None:
        self.function, self.places, self.precision = function, places, precision
        self.known: dict[int, tuple[float, float]] = {}
        self.values, self.errors = np.empty(places.size), np.empty(places.size)

    def answer(self, first: int, last: int) -> None:
        """Fill values and errors from `first` up to `last` (excluded)."""
        if last - first <= _FEW:
            self._compute(range(first, last))
        elif not self._interpolate(first, last):
            middle = (first + last) // 2
            self.answer(first, middle)
            self.answer(middle, last)

    def _compute(self, indices: Sequence[int]) -> None:
        """The function itself at some of the settings."""
        for index in indices:
            if index not in self.known:
                found = self.function(self.places[index].item())
                self.known[index] = float(found), float(getattr(found, "error", 0.0))
            self.values[index], self.errors[index] = self.known[index]

    def _interpolate(self, first: int, last: int) -> bool:
        """Fill a piece by one polynomial; False where that is not precise enough."""
        x = _coordinate(self.places[first:last].astype(np.float64))
        nodes = _nearest(x, np.cos(np.pi * np.arange(_NODES) / (_NODES - 1)))
        checks = np.setdiff1d(_nearest(x, np.cos(np.pi * (np.arange(_NODES - 1) + 0.5) / (_NODES - 1))), nodes)
        both = np.union1d(nodes, checks)
        self._compute([first + int(index) for index in both])
        values, errors = self.values[first:last], self.errors[first:last]
        if not (np.isfinite(values[both]) & (values[both] > 0)).all():
            return False
        found = _polynomial(x[nodes], values[nodes], x)
        apart = float(np.abs(found[checks] / values[checks] - 1).max(initial=0.0))
        if not apart <= self.precision:
            return False
        share = _MARGIN * apart + float((errors[both] / values[both]).max())
        others = np.setdiff1d(np.arange(last - first), both)
        values[others], errors[others] = found[others] * (1 + share), 2 * share * found[others]
        return True


def _coordinate(places: Floats) -> Floats:
    """Settings on [-1, 1], by their logarithms where they are positive and far apart."""
    x = np.log(places) if places[0] > 0 and places[-1] > 2 * places[0] else places
    low, high = float(x[0]), float(x[-1])
    return np.asarray((2 * x - low - high) / (high - low))


def _polynomial(nodes: Floats, values: Floats, x: Floats) -> Floats:
    """Positive values between nodes, by a polynomial through their logarithms."""
    fitted = Chebyshev.fit(nodes, np.log(values), deg=nodes.size - 1, domain=[-1.0, 1.0])
    return np.asarray(np.exp(fitted(x)))


def _nearest(x: Floats, wanted: Floats) -> NDArray[np.intp]:
    """Indices of the sorted settings nearest to the wanted places, each once."""
    right = np.clip(np.searchsorted(x, wanted), 1, x.size - 1)
    return np.unique(np.where(wanted - x[right - 1] <= x[right] - wanted, right - 1, right))
