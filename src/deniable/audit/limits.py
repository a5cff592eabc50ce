"""Confidence limits of rates from counts (Clopper and Pearson 1934): exact, so never too narrow."""

from __future__ import annotations

from typing import NamedTuple

from scipy.special import betaincinv

from deniable.checks import probability, whole

__all__ = ["Interval", "interval", "lower_limit", "upper_limit"]


class Interval(NamedTuple):
    """An estimate between its confidence limits."""

    value: float
    low: float
    high: float


def upper_limit(events: int, trials: int, confidence: float) -> float:
    """Guarantee: below the true rate with probability at most 1 - `confidence`, whatever the rate is."""
    _check(events, trials, confidence)
    return 1.0 if events == trials else float(betaincinv(events + 1, trials - events, confidence))


def lower_limit(events: int, trials: int, confidence: float) -> float:
    """Guarantee: above the true rate with probability at most 1 - `confidence`, whatever the rate is."""
    _check(events, trials, confidence)
    return 0.0 if events == 0 else float(betaincinv(events, trials - events + 1, 1 - confidence))


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
