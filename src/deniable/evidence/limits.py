"""Confidence limits of rates from counts (Clopper and Pearson 1934; Lemma E1): exact, so never too narrow.

Two rates of independent counts are limited together by `joint_tails`: both at their worst at once is far less likely
than either, so the pairs of rates that the counts leave possible are no rectangle. Limits of a
quantile (`quantile_interval`) hold for any distribution.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import bdtr, betaincinv

from deniable.checks import probability, whole
from deniable.results.shared import MeasuredLimits as ShownLimits


class Interval(NamedTuple):
    """An estimate between its confidence limits."""

    value: float
    low: float
    high: float

    def result(self) -> ShownLimits:
        """As results show it."""
        return ShownLimits(value=float(self.value), low=float(self.low), high=float(self.high))


def upper_limit(events: int, trials: int, confidence: float) -> float:
    """Guarantee: below the true rate with probability at most 1 - `confidence`, whatever the rate is."""
    _check(events, trials, confidence)
    return float(upper_limits(events, trials, confidence))


def lower_limit(events: int, trials: int, confidence: float) -> float:
    """Guarantee: above the true rate with probability at most 1 - `confidence`, whatever the rate is."""
    _check(events, trials, confidence)
    return float(lower_limits(events, trials, confidence))


def upper_limits(events: ArrayLike, trials: ArrayLike, confidence: ArrayLike) -> NDArray[np.float64]:
    """`upper_limit` for arrays of counts."""
    k, n = np.asarray(events), np.asarray(trials)
    return np.where(k >= n, 1.0, betaincinv(k + 1.0, np.maximum(n - k, 1.0), confidence))


def lower_limits(events: ArrayLike, trials: ArrayLike, confidence: ArrayLike) -> NDArray[np.float64]:
    """`lower_limit` for arrays of counts."""
    k, n = np.asarray(events), np.asarray(trials)
    return np.where(k <= 0, 0.0, betaincinv(np.maximum(k, 1.0), n - k + 1.0, 1 - np.asarray(confidence)))


CORNERS, EDGE_RISK_SHARE = 6, 0.4
"""Of the staircase; and the share of the risk that either rate alone is given, half of it in a rectangle."""


@cache
def joint_tails(risk: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tail probabilities (u, v), one pair a corner, of a joint statement about two independent rates.

    Guarantee: with probability at least 1 - `risk` there is a corner i with both rates within their one-sided limits at
    confidence 1 - u_i and 1 - v_i. So what falls in both rates is at least its least value over the corners.

    Why (Lemma E2): with U = Pr[at most as many events | true rate], and V for the other rate, a rate is within its
    limit at 1 - u where U >= u. U and V are independent and no less than uniform, and corners are a staircase from (u
    small, v large) to (u large, v small), whose part of the unit square, sum of (1 - v_i) (u_{i+1} - u_i) with 1 at the
    end, is 1 - `risk`. Both have tails that grow by one factor, from EDGE_RISK_SHARE * risk on (in the
    spirit of Fisher 1932, whose set is u v >= constant; cut off at the edges, for bounds that rest on one of the rates
    alone).
    """
    exponents = np.arange(CORNERS)

    def excess_risk(factor: float) -> float:
        u = EDGE_RISK_SHARE * risk * factor**exponents
        return float(u[0] + np.sum(u[::-1] * np.diff(u, append=1.0))) - risk

    most = (1 / (EDGE_RISK_SHARE * risk)) ** (1 / (CORNERS - 1))
    # where even the whole edge misses less than a large risk allows, it is taken
    factor = most if excess_risk(most) <= 0 else brentq(excess_risk, 1.0, most, xtol=1e-14) * (1 - 1e-12)
    u = np.minimum(EDGE_RISK_SHARE * risk * factor**exponents, 1.0)
    return u, u[::-1].copy()


def interval(events: int, trials: int, confidence: float) -> Interval:
    """The rate with a two-sided interval; without trials it is [0, 1] around 1/2."""
    if trials == 0:
        return Interval(0.5, 0.0, 1.0)
    side = 1 - (1 - confidence) / 2
    return Interval(events / trials, lower_limit(events, trials, side), upper_limit(events, trials, side))


def quantile_interval(values: NDArray[np.float64], share: float, confidence: float) -> Interval:
    """The value that a `share` of all stays at or below, from independent `values`, each from 0 to 1.

    Guarantee: the true quantile is below `low` with probability at most (1 - confidence) / 2, and above `high` with as
    much. As many of n values are at or below the true quantile as a binomial of (n, share) or more, and as many are
    strictly below as one or fewer; so the limits are order statistics, 0 and 1 where the values are too few.
    """
    probability("share", share, open_ends=True)
    risk = (1 - probability("confidence", confidence, open_ends=True)) / 2
    ordered, number = np.sort(values), len(values)
    at_most = bdtr(np.arange(number + 1), number, share)
    first = int(np.searchsorted(at_most, risk, side="right"))  # values at or below the quantile, but for the risk
    last = int(np.searchsorted(at_most, 1 - risk, side="left"))  # values below the quantile, but for the risk
    low = float(ordered[first - 1]) if first > 0 else 0.0
    high = float(ordered[last]) if last < number else 1.0
    return Interval(float(np.quantile(ordered, share)), low, high)


def _check(events: int, trials: int, confidence: float) -> None:
    if whole("events", events, low=0) > whole("trials", trials, low=0):
        raise ValueError(f"events must be at most the {trials} trials, got {events}")
    probability("confidence", confidence, open_ends=True)
