"""The joint Bayesian interval for epsilon: what one believes after the trials, not how often a statement is wrong."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import betainc, betaincinv

from deniable.checks import probability
from deniable.evidence.attack_scores import Errors, Floats
from deniable.evidence.bound import Bound
from deniable.search import crossing

_NODES, _WEIGHTS = leggauss(400)
_LARGEST_EPSILON = 700.0


def credible_bound(errors: Errors, delta: float, level: float = 0.95) -> Bound:
    """The equal-tailed interval of credibility `level` for epsilon (Zanella-Beguelin et al. 2023, Section 4).

    Both error rates have independent Beta(1/2, 1/2) priors (Jeffreys); epsilon is that of the smallest (epsilon,
    delta) region, of the test and of its opposite, that holds both rates. Its lower end is positive even where the
    true epsilon is 0, since rates drawn from a posterior are never exactly equal: no verdict rests on it.
    """
    probability("delta", delta)
    tail = (1 - probability("level", level, open_ends=True)) / 2
    low, high = (_quantile(errors, delta, share) for share in (tail, 1 - tail))
    return Bound("credible", low, delta, level, high, kind="credible", rule="fixed")


def epsilon_at_most(epsilon: float, errors: Errors, delta: float) -> float:
    """The posterior probability of the (epsilon, delta) region, integrated over the false positive rate's quantiles."""
    false, right = errors.false_positives, errors.negatives - errors.false_positives
    fpr = betaincinv(false + 0.5, right + 0.5, (1 + _NODES) / 2)
    growth = exp(min(epsilon, _LARGEST_EPSILON))
    low = np.maximum(1 - delta - growth * fpr, (1 - delta - fpr) / growth)
    high = np.minimum(delta + growth * (1 - fpr), 1 - (fpr - delta) / growth)
    between = _fnr_below(errors, high) - _fnr_below(errors, low)
    return float(np.clip(between, 0, 1) @ _WEIGHTS / 2)


def _fnr_below(errors: Errors, rate: Floats) -> Floats:
    wrong, right = errors.false_negatives + 0.5, errors.positives - errors.false_negatives + 0.5
    return np.asarray(betainc(wrong, right, np.clip(rate, 0.0, 1.0)))


def _quantile(errors: Errors, delta: float, share: float) -> float:
    if epsilon_at_most(0.0, errors, delta) >= share:
        return 0.0
    return crossing(lambda x: 1 - epsilon_at_most(x, errors, delta), 1 - share, 0.0, _LARGEST_EPSILON, precision=1e-9)
