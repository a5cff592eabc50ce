"""What every divergence here is made of, accurate for tiny and for huge arguments."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

__all__ = ["InapplicableError", "gaussian_rho", "log_excess", "log_mixture", "mean_excess", "valley"]

Array = npt.NDArray[np.float64]
_HUGE = 500.0  # e^500 is finite, and so is its product with anything that stands beside it here
_NEAR = 0.3  # below it the series' thirteen terms have all digits; above it the difference keeps all but one
_SERIES = [1 / factorial(k) for k in range(13, 1, -1)]


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


def mean_excess(exponent: Array, log_weight: Array) -> float:
    """The sum of e^log_weight (e^x - 1 - x), where no term is above the largest float.

    Divergences are written as means of what an exponential has above its tangent because that is never negative:
    nothing cancels, however small the sampling rate (where naive code subtracts 1 from 1 + 1e-16).
    """
    weight = np.exp(log_weight)
    far = np.exp(log_weight + exponent) - weight * (1 + exponent)
    return float(np.where(np.abs(exponent) < _NEAR, weight * _series(exponent), far).sum())


def log_excess(exponent: npt.ArrayLike) -> Array:
    """ln(e^x - 1 - x), the logarithm of what an exponential has above its tangent; -inf at x = 0."""
    x = np.asarray(exponent, dtype=float)
    middle, large = np.clip(x, None, 40), np.maximum(x, 40)
    with np.errstate(divide="ignore"):
        direct = np.log(np.where(np.abs(x) < _NEAR, _series(np.clip(x, -_NEAR, _NEAR)), np.expm1(middle) - middle))
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
    function: Callable[[float], float], ends: tuple[float, float], *, start: float, precision: float
) -> tuple[float, float]:
    """Where between `ends` a function with one valley is least, and its value there.

    Walks downhill from `start` by doubling steps until the valley is enclosed, then searches inside. Both are far
    cheaper than a search between the ends where these are far apart and the function is dear near one of them.
    """
    low, high = ends
    left, middle, right = max(low, start - 1), start, min(high, start + 1)
    here, before, after = function(middle), function(left), function(right)
    step = 1.0
    while min(before, after) < here and low < left and right < high:
        step *= 2
        if before < here:
            left, middle, right = max(low, left - step), left, middle
            before, here, after = function(left), before, here
        else:
            left, middle, right = middle, right, min(high, right + step)
            before, here, after = here, after, function(right)
    search = minimize_scalar(function, bounds=(left, right), method="bounded", options={"xatol": precision})
    return min(
        [(float(search.x), float(search.fun)), (left, before), (middle, here), (right, after)], key=lambda at: at[1]
    )
