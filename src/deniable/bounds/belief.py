"""Epsilon as the largest posterior belief of an observer, and back (Bernau 2021, Theorem 2 and Eq. 5)."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, log, log1p

from scipy.special import expit

from deniable.checks import positive, probability

_SHARES_OF_FAILURE = (0.9, 0.75, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001, 1e-9)
"""Parts of the failure probability that are tried as delta; each gives a bound, the least of them is taken."""


def epsilon_to_belief(epsilon: float, prior: float = 0.5) -> float:
    """sigmoid(logit(prior) + epsilon): the most that an observer can believe who started at `prior`.

    Bernau 2021, Theorem 2, there for prior 1/2. It holds always for epsilon-DP. For (epsilon, delta)-DP it is exceeded
    with probability at most delta only if delta bounds Pr[privacy loss > epsilon]. The classic Renyi and zCDP
    conversions bound that; an exact delta(epsilon) does not (erratum 4). `methods.loss_bound` gives such an epsilon for
    each named analysis.
    """
    positive("epsilon", epsilon, zero=True)
    odds = _logit("prior", prior) + epsilon
    return float(expit(odds)) if odds > -700 else exp(odds)  # expit would say 0


def any_release_belief(epsilon: Callable[[float], float], failure: float, prior: float = 0.5) -> float:
    """The belief that no release with the guarantee `epsilon` (of delta) exceeds more often than `failure`.

    Guarantee (Lemma M3). Of every (e, d)-DP release Pr[loss > t] <= d / (1 - e^(e - t)). With d = s x failure the right
    side is `failure` at t = e(d) - ln(1 - s), for any s between 0 and 1. Nothing but the guarantee need be known. For
    (e, d)-DP alone, take failure 2 d: t = e + ln 2.
    """
    probability("failure", failure, open_ends=True)
    losses = (epsilon(share * failure) - log1p(-share) for share in _SHARES_OF_FAILURE if share * failure > 0)
    least = min(losses, default=inf)
    return epsilon_to_belief(least, prior) if isfinite(least) else 1.0


def belief_to_epsilon(belief: float, prior: float = 0.5) -> float:
    """logit(belief) - logit(prior), Bernau 2021, Eq. 5 (with the logarithm that Section 5.3 drops: erratum 2)."""
    epsilon = _logit("belief", belief) - _logit("prior", prior)
    if not 0 < epsilon < inf:
        raise ValueError(f"belief must be above the prior {prior!r}, got {belief!r}: nobody can be made to know less")
    return epsilon


def _logit(name: str, value: float) -> float:
    return log(probability(name, value, open_ends=True)) - log1p(-value)
