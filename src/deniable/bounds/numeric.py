"""What every divergence here is made of, accurate for tiny and for huge arguments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["InapplicableError", "gaussian_rho", "log_excess", "log_mixture"]

Array = npt.NDArray[np.float64]
_HUGE = 500.0  # e^500 is finite, and so is its product with anything that stands beside it here
_SERIES = [float(k) for k in range(20, 2, -1)]


class InapplicableError(ValueError):
    """The analysis has no valid form for this mechanism, adjacency or delta."""


def gaussian_rho(noise: float) -> float:
    """1 / (2 noise^2): KL divergence and zCDP parameter of one Gaussian step, and its Renyi divergence per order."""
    return 0.5 / noise / noise


def log_mixture(rate: float, exponent: npt.ArrayLike) -> Array:
    """ln(1 - rate + rate e^exponent) for 0 < rate < 1, with full relative accuracy where the result is near 0."""
    x = np.asarray(exponent, dtype=float)
    near = np.log1p(rate * np.expm1(np.minimum(x, _HUGE)))
    far = np.logaddexp(np.log1p(-rate), np.log(rate) + x)
    mixture: Array = np.where(x < _HUGE, near, far)
    return mixture


def log_excess(exponent: npt.ArrayLike) -> Array:
    """ln(e^x - 1 - x), the logarithm of what an exponential has above its tangent; -inf at x = 0.

    Divergences are written as means of this excess because it is never negative: nothing cancels, however
    small the sampling rate (where naive code subtracts 1 from 1 + 1e-16).
    """
    x = np.asarray(exponent, dtype=float)
    small = np.clip(x, -1, 1)
    series = np.ones_like(x)
    for k in _SERIES:  # Horner: 1 + x/3 (1 + x/4 (1 + ...)) = 2 (e^x - 1 - x) / x^2
        series = 1 + small / k * series
    with np.errstate(divide="ignore"):
        near = 2 * np.log(np.abs(x)) - np.log(2) + np.log(series)
    middle = np.where(np.abs(x) < 1, 1.0, np.minimum(x, 40))
    large = np.maximum(x, 40)
    direct = np.where(x < 40, np.log(np.expm1(middle) - middle), large + np.log1p(-(1 + large) * np.exp(-large)))
    excess: Array = np.where(np.abs(x) < 1, near, direct)
    return excess
