"""Epsilon as the largest posterior belief of an observer, and back (001 Theorem 2 and Eq. 5)."""

from __future__ import annotations

from math import inf, log, log1p

from scipy.special import expit

from deniable.checks import positive, probability

__all__ = ["belief_to_epsilon", "epsilon_to_belief"]


def epsilon_to_belief(epsilon: float, prior: float = 0.5) -> float:
    """sigmoid(logit(prior) + epsilon): the most that an observer can believe who started at `prior`.

    001 Theorem 2, there for prior 1/2. It holds always for epsilon-DP. For (epsilon, delta)-DP it is exceeded with
    probability at most delta only if delta bounds Pr[privacy loss > epsilon]. The classic Renyi and zCDP conversions
    bound that; an exact delta(epsilon) does not (ERRATA 4). `methods.loss_bound` gives such an epsilon for each
    named analysis.
    """
    positive("epsilon", epsilon, zero=True)
    return float(expit(_logit("prior", prior) + epsilon))


def belief_to_epsilon(belief: float, prior: float = 0.5) -> float:
    """logit(belief) - logit(prior), 001 Eq. 5 (with the logarithm that Section 5.3 drops: ERRATA 2)."""
    epsilon = _logit("belief", belief) - _logit("prior", prior)
    if not 0 < epsilon < inf:
        raise ValueError(f"belief must be above the prior {prior!r}, got {belief!r}: nobody can be made to know less")
    return epsilon


def _logit(name: str, value: float) -> float:
    return log(probability(name, value, open_ends=True)) - log1p(-value)
