"""What every divergence here is made of, accurate for tiny and for huge arguments."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, factorial, inf, sqrt

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Point = tuple[float, float]
_HUGE = 500.0  # e^500 is finite, and so is its product with anything that stands beside it here
NEAR = 0.3  # below it the series' thirteen terms have all digits; above it the difference keeps all but one
_SERIES = [1 / factorial(k) for k in range(13, 1, -1)]
_STEP = 0.05
_WALL = 0.1  # a share of the lowest value; what is so far above it is not on the same parabola
_GOLDEN = 0.382
_NARROWEST = 1e-7
_TINY = 1e-12
_MOST_TURNS = 100


class InapplicableError(ValueError):
    """The analysis has no valid form for this mechanism, adjacency or delta."""


def gaussian_rho(noise: float) -> float:
    """1 / (2 noise^2): KL divergence and zCDP parameter of one Gaussian step, and its Renyi divergence per order."""
    return 0.5 / noise / noise


def log_mixture(rate: float, exponent: npt.ArrayLike) -> Array:
    """ln(1 - rate + rate e^exponent) for 0 < rate < 1, with full relative accuracy where the result is near 0."""
    x = np.asarray(exponent, dtype=float)
    near: Array = np.log1p(rate * np.expm1(np.minimum(x, _HUGE)))
    if x.max() < _HUGE:
        return near
    far = np.logaddexp(np.log1p(-rate), np.log(rate) + x)
    mixture: Array = np.where(x < _HUGE, near, far)
    return mixture


def log_excess(exponent: npt.ArrayLike) -> Array:
    """ln(e^x - 1 - x), the logarithm of what an exponential has above its tangent; -inf at x = 0."""
    x = np.asarray(exponent, dtype=float)
    middle, large = np.clip(x, None, 40), np.maximum(x, 40)
    with np.errstate(divide="ignore"):
        direct = np.log(np.where(np.abs(x) < NEAR, _series(np.clip(x, -NEAR, NEAR)), np.expm1(middle) - middle))
    excess: Array = np.where(x < 40, direct, large + np.log1p(-(1 + large) * np.exp(-large)))
    return excess


def _series(x: Array) -> Array:
    """e^x - 1 - x, for |x| < .3."""
    series = np.full_like(x, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series *= x
        series += coefficient
    return series * x * x


def valley(
    function: Callable[[float], float], ends: tuple[float, float], *, start: float, exact: Callable[[float], float]
) -> tuple[float, float]:
    """Where between `ends` a function with one valley is least, and its value there; `exact` tells within how much.

    Walks downhill from `start` by doubling steps until the valley is enclosed, then closes in: by golden sections
    until both ends are low enough for parabolas, which then take over.
    """

    def point(x: float) -> Point:
        x = min(max(x, ends[0]), ends[1])
        return x, function(x)

    start, step = min(max(start, ends[0]), ends[1]), _STEP
    left, here, right = point(start - step), point(start), point(start + step)
    while min(left[1], right[1]) < here[1]:
        step *= 2
        if left[1] < here[1]:
            left, here, right = point(left[0] - step), left, here
        else:
            left, here, right = here, right, point(right[0] + step)
    for turn in range(_MOST_TURNS):
        move = _downhill(left, here, right, exact(here[1]), turn % 5 == 4)
        if move == 0:
            break
        new = point(here[0] + move)
        outer, inner = (here, new) if new[1] < here[1] else (new, here)
        left, here, right = (left, inner, outer) if outer[0] > inner[0] else (outer, inner, right)
    return here


def _downhill(left: Point, here: Point, right: Point, error: float, by_section: bool) -> float:
    """How far from `here`, the lowest point yet between `left` and `right`, to look for a lower one; 0 to stop.

    Around its lowest point the function is convex, hence above the line through any two of the points where it goes on.
    """
    before, after = here[0] - left[0], right[0] - here[0]
    down, up = left[1] - here[1], right[1] - here[1]
    if before + after < 2 * _NARROWEST or error == inf:
        return 0.0
    if before == 0 or after == 0:  # an end of the range
        return copysign(_NARROWEST, after - before)
    size = max(abs(here[1]), _TINY)
    high_before, high_after = before * (down > _WALL * size), after * (up > _WALL * size)
    if high_before or high_after:  # no parabola fits there
        return _GOLDEN * (high_after if high_after > high_before else -high_before)
    fall, rise = down / before, up / after
    if max(fall * after, rise * before) <= error:
        return 0.0
    wider = after if after > before else -before
    if by_section:
        return _GOLDEN * wider
    bend = (fall + rise) / (before + after)
    move, least = 0.5 * (fall / bend - before), 0.5 * sqrt(error / bend)
    return move if abs(move) > least else copysign(least, wider)
