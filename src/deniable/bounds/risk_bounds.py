"""What a bare guarantee allows an attacker: belief, advantage, accuracy, predictive value, singling out; and back.

Belief: Bernau 2021, Theorem 2 and Eq. 5. Membership advantage (TPR - FPR), from loosest to tightest for (epsilon,
delta)-DP: Yeom, Erlingsson, Kairouz (erratum 11). Accuracy and predictive value: Jia 2023, Sections 3, 4.1, 5.3.

"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1, inf, isfinite, log, log1p, tanh

from scipy.special import expit

from deniable.checks import positive, probability, whole

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


def predicate_singling_out(epsilon: float, delta: float, weight: float, people: int) -> float:
    """The most that an (epsilon, delta)-DP release adds to untargeted predicate singling out (Cohen 2020).

    e^epsilon n w + n delta - n w (1 - w)^(n - 1), of descriptions that fit a share w of all people, n in the data.
    """
    positive("epsilon", epsilon, zero=True)
    probability("delta", delta)
    probability("weight", weight, open_ends=True)
    whole("people", people)
    blind = people * weight * exp((people - 1) * log1p(-weight))
    return min(1.0, exp(min(epsilon, 700.0)) * people * weight + people * delta - blind)
