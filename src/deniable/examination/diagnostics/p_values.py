"""p-values of the few laws that the diagnostics need; all two-sided, all from `scipy.special`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]
LEAST_SPREAD = 1e-3
"""A spread below this is rounding: the numbers compared have a spread of one."""


def any_of(*p_values: ArrayLike) -> float:
    """One p-value for several tests: the smallest, times their number (Bonferroni); 1 without tests."""
    every = np.concatenate([np.ravel(np.asarray(p, dtype=float)) for p in p_values]) if p_values else np.empty(0)
    every = every[~np.isnan(every)]
    return float(min(1.0, len(every) * every.min())) if len(every) else 1.0


def normal(z: ArrayLike) -> Array:
    """Of standard normal numbers."""
    return np.asarray(2 * special.ndtr(-np.abs(np.asarray(z, dtype=float))))


def chi_square(value: ArrayLike, degrees: ArrayLike) -> Array:
    """Of sums of squares of independent standard normal numbers; nan for none."""
    value, degrees = np.asarray(value, dtype=float), np.asarray(degrees, dtype=float)
    there = degrees > 0
    dof = np.where(there, degrees, 1.0)
    sides = np.minimum(special.chdtr(dof, value), special.chdtrc(dof, value))
    return np.where(there, np.minimum(1.0, 2 * sides), np.nan)


def scale(value: ArrayLike, degrees: ArrayLike) -> Array:
    """The standard deviation that a sum of squares shows."""
    return np.asarray(np.sqrt(np.asarray(value, dtype=float) / np.maximum(degrees, 1)))


def student(values: Array, bias: float = 0.0) -> Array:
    """Whether the columns' means (over rows, nan left out) are zero, or `bias` at most: Student's test.

    Standard normal rows are expected, but their spread is estimated, so that noise of another scale, or the same noise
    in several steps, is not mistaken for a mean.
    """
    rows = np.sum(~np.isnan(values), axis=0)
    mean, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0, ddof=1)
    t = np.maximum(0.0, np.abs(mean) - bias) * np.sqrt(rows) / np.maximum(spread, LEAST_SPREAD)
    return np.asarray(2 * special.stdtr(np.maximum(rows - 1, 1), -t))


def binomial(events: Any, trials: Any, rate: float) -> Array:
    """Of counts with a known rate, exact."""
    events, trials = np.asarray(events, dtype=float), np.asarray(trials).astype(np.int64)
    below, above = special.bdtr(events, trials, rate), special.bdtrc(events - 1, trials, rate)
    above = np.where(events == 0, 1.0, above)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))


def cosine(values: ArrayLike, dimension: float) -> Array:
    """Of cosines between independent normal vectors: (1 + cosine) / 2 is Beta((d - 1) / 2, (d - 1) / 2)."""
    half = (dimension - 1) / 2
    below = special.betainc(half, half, (1 - np.abs(np.asarray(values, dtype=float))).clip(0) / 2)
    return np.asarray(2 * below)


def kurtosis_cumulants(numbers: Array) -> tuple[Array, Array, Array]:
    """Mean, variance and third central moment of mean(x^4) / mean(x^2)^2, of so many standard normal x.

    The ratio is independent of the sum of squares, so its moments are those of the sum of fourth powers over those of
    the squared sum of squares.
    """
    n = np.asarray(numbers, dtype=float)
    first = 3 * n / (n + 2)
    second = (9 * n + 96) * n**2 / ((n + 2) * (n + 4) * (n + 6))
    third = (27 * n**2 + 864 * n + 9504) * n**3 / ((n + 2) * (n + 4) * (n + 6) * (n + 8) * (n + 10))
    return first, second - first**2, third - 3 * first * second + 2 * first**3


def kurtosis_p_value(kurtosis: Array, numbers: Array) -> float:
    """Two-sided, of the sum of independent kurtoses, each of so many numbers.

    Its law is skewed: the normal law calls 15 times too many right ones wrong at 1e-4. The cube root that makes it
    nearly normal is that of [Anscombe 1983], for the skewness of the sum.
    """
    mean, variance, third = kurtosis_cumulants(numbers)
    spread = float(variance.sum())
    away, skewness = float((kurtosis - mean).sum()) / spread**0.5, float(third.sum()) / spread**1.5
    degrees = 6 + 8 / skewness * (2 / skewness + (1 + 4 / skewness**2) ** 0.5)
    root = np.cbrt((1 - 2 / degrees) / max(1 + away * (2 / (degrees - 4)) ** 0.5, 1e-300))
    return float(normal((1 - 2 / (9 * degrees) - root) / (2 / (9 * degrees)) ** 0.5))
