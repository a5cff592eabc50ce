"""Membership advantage (TPR - FPR): upper bounds from a guarantee, and lower bounds on epsilon from an attack.

From loosest to tightest for (epsilon, delta)-DP: Yeom, Erlingsson, Kairouz (erratum 11).
"""

from __future__ import annotations

from math import exp, expm1, inf, log, tanh

from deniable.checks import positive, probability


def yeom_advantage(epsilon: float) -> float:
    """min(1, e^epsilon - 1) for epsilon-DP (Yeom et al. 2018, Theorem 1; Bernau 2021, Proposition 2)."""
    return expm1(min(positive("epsilon", epsilon, zero=True), log(2)))


def erlingsson_advantage(epsilon: float, delta: float = 0.0) -> float:
    """1 - e^-epsilon (1 - delta) (Erlingsson 2019, Proposition 2)."""
    epsilon, delta = _guarantee(epsilon, delta)
    return delta * exp(-epsilon) - expm1(-epsilon)


def kairouz_advantage(epsilon: float, delta: float = 0.0) -> float:
    """(e^epsilon - 1 + 2 delta) / (e^epsilon + 1), the exact worst case.

    Kairouz et al. 2015; equals Jia 2023, Eq. 1.
    """
    epsilon, delta = _guarantee(epsilon, delta)
    return delta + (1 - delta) * tanh(epsilon / 2)


def least_fnr(epsilon: float, delta: float, fpr: float) -> float:
    """max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr)): the trade-off curve of (epsilon, delta)-DP.

    Jia 2023, Theorem 3, and f in Theorems 14 and 16.
    """
    epsilon, delta = _guarantee(epsilon, delta)
    probability("fpr", fpr)
    steep = 1 - delta - fpr * exp(epsilon) if epsilon < 700 else 1 - delta if fpr == 0 else -inf
    return max(0.0, steep, exp(-epsilon) * (1 - delta - fpr))


def advantage_at_fpr(epsilon: float, delta: float, fpr: float) -> float:
    """Jia 2023, Theorem 14: 1 - f(fpr) - fpr for (epsilon, delta)-DP at a fixed false positive rate."""
    return 1 - least_fnr(epsilon, delta, fpr) - fpr


def advantage_at_fpr_from_tvd(alpha: float, fpr: float) -> float:
    """Jia 2023, Theorem 15: min(1 - fpr, alpha) for alpha-TVD privacy at a fixed false positive rate."""
    return min(1 - probability("fpr", fpr), probability("alpha", alpha))


def least_epsilon_yeom(advantage: float) -> float:
    """ln(1 + advantage): an epsilon-DP release that admits this advantage has at least this epsilon."""
    return log(1 + max(0.0, _advantage(advantage)))


def least_epsilon_erlingsson(advantage: float, delta: float = 0.0) -> float:
    """ln((1 - delta) / (1 - advantage)), at least 0 (Erlingsson 2019, Proposition 3); infinite at advantage 1 with
    delta < 1."""
    return _log_ratio(1 - probability("delta", delta), 1 - _advantage(advantage))


def least_epsilon_kairouz(advantage: float, delta: float = 0.0) -> float:
    """ln((1 + advantage - 2 delta) / (1 - advantage)), at least 0; never below Erlingsson's (erratum 11)."""
    return _log_ratio(1 + _advantage(advantage) - 2 * probability("delta", delta), 1 - advantage)


def least_epsilon_from_rates(fpr: float, fnr: float, delta: float = 0.0) -> float:
    """max(ln((1-delta-fnr)/fpr), ln((1-delta-fpr)/fnr)), at least 0: the tightest from one test (errata 11, 15).

    The rates must be true ones; for counted ones put in their confidence limits. Infinite where no epsilon is enough.
    """
    probability("fpr", fpr)
    probability("fnr", fnr)
    probability("delta", delta)
    return max(_log_ratio(1 - delta - fnr, fpr), _log_ratio(1 - delta - fpr, fnr))


def _guarantee(epsilon: float, delta: float) -> tuple[float, float]:
    return positive("epsilon", epsilon, zero=True), probability("delta", delta)


def _advantage(value: float) -> float:
    if not -1 <= value <= 1:
        raise ValueError(f"advantage must be a number from -1 to 1, got {value!r}")
    return float(value)


def _log_ratio(above: float, below: float) -> float:
    """ln(above / below), at least 0, and infinite if only `below` is 0."""
    if above <= below or above <= 0:
        return 0.0
    return log(above / below) if below > 0 else inf
