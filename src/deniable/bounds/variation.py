"""Total variation distance (TVD) privacy: the theorems of Jia 2023, Sections 4.3 to 4.5 and 6.1.

A release is alpha-TVD private if no event is more than alpha likelier on one data set than on its neighbour
(Jia 2023, Definition 3). Alpha is also the largest membership advantage.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import erf, expm1, log1p, prod, sqrt

import numpy as np
from scipy.special import logsumexp

from deniable.bounds.numeric import Array
from deniable.checks import positive, probability, whole


def naive_tvd(alphas: Iterable[float]) -> float:
    """Jia 2023, Theorem 6: releases with these alphas are together 1 - prod(1 - alpha_i)-TVD private.

    Couple each release with its neighbour's so that both agree with probability 1 - alpha_i; independent releases all
    agree with the product of these.
    """
    checked = [probability("alpha", alpha) for alpha in alphas]
    return 1.0 if 1.0 in checked else -expm1(sum(log1p(-alpha) for alpha in checked))


def worst_composition_tvd(alpha: float, steps: int) -> float:
    """1 - (1 - alpha)^steps, attained by releases that reveal all with probability alpha.

    Jia 2023, Theorem 6; erratum 12.
    """
    probability("alpha", alpha)
    whole("steps", steps, low=0)
    if alpha == 1:
        return float(steps > 0)
    return -expm1(steps * log1p(-alpha))


def parallel_tvd(alphas: Iterable[float]) -> float:
    """Jia 2023, Theorem 8: releases of disjoint parts of the data are max(alpha_i)-TVD private: a record is in one."""
    return max((probability("alpha", alpha) for alpha in alphas), default=0.0)


def chained_tvd(alphas: Iterable[float]) -> float:
    """Jia 2023, Theorem 9: a release of a release (each sees only the one before) is prod(alpha_i)-TVD private."""
    return prod(probability("alpha", alpha) for alpha in alphas)


def group_tvd(alpha: float, records: int) -> float:
    """min(1, records alpha): TVD privacy of a group (Jia 2023, Definition 5, which names it and leaves the amount
    open).

    Proof: change the records one at a time; each change is between neighbours and moves the probability of an event
    by at most alpha, so by the triangle inequality all of them move it by at most records alpha.
    """
    return min(1.0, whole("records", records, low=0) * probability("alpha", alpha))


def amplified_tvd(alpha: float, rate: float) -> float:
    """Jia 2023, Theorem 10: an alpha-TVD release of a Poisson sample is (rate alpha)-TVD private (add-remove)."""
    return probability("rate", rate) * probability("alpha", alpha)


def laplace_tvd(scale: float) -> float:
    """Jia 2023, Theorem 11: 1 - e^(-1/(2 scale)), scale relative to the sensitivity; exact."""
    return -expm1(-0.5 / positive("scale", scale))


def gaussian_tvd(noise: float) -> float:
    """Jia 2023, Theorems 12 and 13: 2 Phi(1/(2 noise)) - 1 in any dimension, noise relative to the L2 sensitivity;
    exact."""
    return shift_tvd(1 / positive("noise", noise))


def shift_tvd(mu: float) -> float:
    """2 Phi(mu/2) - 1: total variation of two normal laws of deviation 1 whose means are mu apart."""
    return erf(positive("mu", mu, zero=True) / (2 * sqrt(2)))


def best_composition_tvd(alpha: float, steps: int) -> float:
    """Jia 2023, Theorem 18: TVD of Binomial(steps, (1+alpha)/2) from Binomial(steps, (1-alpha)/2).

    The least that `steps` releases of TVD alpha each can add up to; randomized response attains it (erratum 12).
    A lower limit for comparison, no guarantee for other mechanisms.
    """
    return best_composition_delta(alpha, steps, 0.0)


def best_composition_deltas(alpha: float, steps: int) -> list[tuple[float, float]]:
    """All pairs ((steps - 2i) eps, delta_i), i = 0 .. steps // 2, of Jia 2023 (Theorem 18) with eps =
    ln((1+alpha)/(1-alpha)).

    delta_i = sum_{l<i} C(k,l) (e^((k-l) eps) - e^((k-2i+l) eps)) / (1 + e^eps)^k; Jia 2023 prints (1 + eps)^k (erratum
    12). With p_l the binomial probabilities and W_i = sum_{l<i} p_l e^(-2(i-l) eps), delta_{i+1} - delta_i equals (1 -
    e^(-2 eps)) (W_i + p_i): one pass of positive terms, nothing cancels.
    """
    probability("alpha", alpha, open_ends=True)
    losses, log_p = _binomial_losses(alpha, whole("steps", steps, low=0))
    decay = ((1 - alpha) / (1 + alpha)) ** 2
    growth = 4 * alpha / (1 + alpha) ** 2  # 1 - decay
    pairs, delta, carried = [(losses[0].item(), 0.0)], 0.0, 0.0
    for i, p in enumerate(np.exp(log_p[: steps // 2]).tolist(), start=1):
        delta += growth * (carried + p)
        carried = decay * (carried + p)
        pairs.append((losses[i].item(), min(1.0, delta)))
    return pairs


def best_composition_delta(alpha: float, steps: int, epsilon: float) -> float:
    """delta(epsilon) of the best composition for any epsilon >= 0; at (steps - 2i) eps it is Theorem 18's delta_i."""
    probability("alpha", alpha)
    whole("steps", steps, low=0)
    positive("epsilon", epsilon, zero=True)
    if alpha in (0.0, 1.0):
        return alpha * (steps > 0)
    losses, log_p = _binomial_losses(alpha, steps)
    gain = -np.expm1(np.minimum(0, epsilon - losses))
    return min(1.0, float(np.exp(log_p) @ gain))


def _binomial_losses(alpha: float, steps: int) -> tuple[Array, Array]:
    """Privacy losses (steps - 2 lies) eps of randomized response, largest first, and ln of their probabilities.

    Weights are built outwards from the likeliest outcome and normalised, so that the factorials' size does no harm.
    """
    epsilon = 2 * np.arctanh(alpha)
    lies = np.arange(steps + 1)
    ratio = np.log((steps - lies[:-1]) / (lies[:-1] + 1)) - epsilon
    peak = min(steps, int((steps + 1) * (1 - alpha) / 2))
    right = np.cumsum(ratio[peak:])
    left = -np.cumsum(ratio[:peak][::-1])[::-1]
    log_weight = np.concatenate([left, [0.0], right])
    return (steps - 2 * lies) * epsilon, log_weight - logsumexp(log_weight)
