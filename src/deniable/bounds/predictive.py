"""How often an attack is right: accuracy under any prior and positive predictive value.

Jia 2023, Sections 3, 4.1, 5.3.
"""

from __future__ import annotations

from math import exp

from deniable.bounds.advantage import advantage_at_fpr_from_tvd, kairouz_advantage, least_fnr
from deniable.checks import probability


def accuracy_from_dp(epsilon: float, delta: float = 0.0) -> float:
    """Jia 2023, Eq. 1: e^eps / (e^eps + 1) (1 - delta) + delta, the accuracy at even prior."""
    return (1 + kairouz_advantage(epsilon, delta)) / 2


def accuracy_from_tvd(alpha: float, prior: float = 0.5) -> float:
    """Jia 2023, Proposition 1: P0 + P1 alpha with P0 >= P1 the two prior probabilities."""
    rarer = min(probability("prior", prior), 1 - prior)
    return 1 - rarer + rarer * probability("alpha", alpha)


def ppv_from_dp(epsilon: float, delta: float, fpr: float, prior: float) -> float:
    """Jia 2023, Theorem 16: TPR / (TPR + fpr (1-p)/p) with TPR = 1 - f(fpr), p the `prior` share of members.

    At fpr 0 it is 1 if delta > 0 (the release may fail openly), else the limit 1 / (1 + e^-eps (1-p)/p).
    """
    tpr = 1 - least_fnr(epsilon, delta, fpr)
    if fpr == 0:
        return 1.0 if delta > 0 else _ppv(1.0, exp(-epsilon), prior)
    return _ppv(tpr, fpr, prior)


def ppv_from_tvd(alpha: float, fpr: float, prior: float) -> float:
    """Jia 2023, Theorem 17: (fpr + alpha) / (fpr + alpha + fpr (1-p)/p), the sum fpr + alpha kept to at most 1.

    At fpr 0 it is 1 if alpha > 0, else the prior.
    """
    gain = advantage_at_fpr_from_tvd(alpha, fpr)
    if fpr == 0:
        return 1.0 if alpha > 0 else probability("prior", prior, open_ends=True)
    return _ppv(fpr + gain, fpr, prior)


def _ppv(tpr: float, fpr: float, prior: float) -> float:
    probability("prior", prior, open_ends=True)
    return tpr * prior / (tpr * prior + fpr * (1 - prior))
