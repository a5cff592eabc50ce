"""Confidence limits of rates from counts (Clopper and Pearson 1934): exact, so never too narrow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from deniable.checks import probability, whole

__all__ = ["Interval", "interval", "lower_limit", "lower_limits", "upper_limit", "upper_limits"]


class Interval(NamedTuple):
    """An estimate between its confidence limits."""

    value: float
    low: float
    high: float


def upper_limit(events: int, trials: int, confidence: float) -> float:
    """Guarantee: below the true rate with probability at most 1 - `confidence`, whatever the rate is."""
    _check(events, trials, confidence)
    return float(upper_limits(events, trials, confidence))


def lower_limit(events: int, trials: int, confidence: float) -> float:
    """Guarantee: above the true rate with probability at most 1 - `confidence`, whatever the rate is."""
    _check(events, trials, confidence)
    return float(lower_limits(events, trials, confidence))


def upper_limits(events: ArrayLike, trials: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """`upper_limit` for arrays of counts."""
    k, n = np.asarray(events), np.asarray(trials)
    return np.where(k >= n, 1.0, betaincinv(k + 1.0, np.maximum(n - k, 1.0), confidence))


def lower_limits(events: ArrayLike, trials: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """`lower_limit` for arrays of counts."""
    k, n = np.asarray(events), np.asarray(trials)
    return np.where(k <= 0, 0.0, betaincinv(np.maximum(k, 1.0), n - k + 1.0, 1 - confidence))


def interval(events: int, trials: int, confidence: float) -> Interval:
    """The rate with a two-sided interval; without trials it is [0, 1] around 1/2."""
    if trials == 0:
        return Interval(0.5, 0.0, 1.0)
    side = 1 - (1 - confidence) / 2
    return Interval(events / trials, lower_limit(events, trials, side), upper_limit(events, trials, side))


def _check(events: int, trials: int, confidence: float) -> None:
    if whole("events", events, low=0) > whole("trials", trials, low=0):
        raise ValueError(f"events must be at most the {trials} trials, got {events}")
    probability("confidence", confidence, open_ends=True)
