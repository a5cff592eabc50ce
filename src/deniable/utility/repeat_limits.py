"""Limits of a measure over repeats: of its mean, of one more training, and of a difference repeat by repeat."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from deniable.results.frontier_result import Repeated
from deniable.results.shared import Ends


def limits_of_repeats(values: ArrayLike, confidence: float, low: float = -inf, high: float = inf) -> Repeated:
    """Student's limits of the mean, and of one more value, cut off where the measure ends (`low`, `high`).

    Guarantee: exact for normal values; simulated in the tests for shares of test records.
    """
    found = np.asarray(values, dtype=np.float64)
    mean, deviation = float(found.mean()), float(found.std(ddof=1))
    factor = float(stdtrit(len(found) - 1, (1 + confidence) / 2)) * deviation
    of_mean, of_next = factor / sqrt(len(found)), factor * sqrt(1 + 1 / len(found))

    def cut(value: float) -> float:
        return min(high, max(low, value))

    return Repeated(
        mean=mean,
        low=cut(mean - of_mean),
        high=cut(mean + of_mean),
        next_low=cut(mean - of_next),
        next_high=cut(mean + of_next),
        values=tuple(found.tolist()),
    )


def limits_of_difference(first: ArrayLike, second: ArrayLike, confidence: float) -> Ends:
    """Limits of the mean of first - second; both have the same repeats in the same order."""
    found = limits_of_repeats(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64), confidence)
    return Ends(low=found.low, high=found.high)
