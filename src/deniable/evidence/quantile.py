"""A quantile of what was seen, with limits that hold for any distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from deniable.checks import probability
from deniable.evidence.limits import Interval

__all__ = ["quantile_interval"]


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
