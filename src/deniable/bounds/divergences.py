"""Divergences that add under composition: Renyi DP, zero-concentrated DP, and Kullback-Leibler.

Renyi divergences of every order add up, and convert once to (epsilon, delta).

Zero-concentrated DP bounds those of all orders at once, by rho * order. For Gaussian steps rho = steps / (2 noise^2).
It knows nothing of sampling (Erlingsson 2019, Section 4: "weaker bounds that ignore how sampling affects the privacy
bounds"), which is why it is far from the truth for DP-SGD.

The Kullback-Leibler divergence bounds total variation (Jia 2023, Section 2.4, Theorem 7).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, expm1, log, sqrt, tanh

import numpy as np

from deniable.bounds.numeric import (
    InapplicableError,
    gaussian_rho,
    log_excess,
    sampled_gaussian_kl,
    sampled_gaussian_renyi,
)
from deniable.bounds.runs import Tuning, base, gaussian_noise, pure_epsilon, runs, runs_between, sampling
from deniable.checks import positive, probability
from deniable.mechanisms import Adjacency, Laplace, Mechanism, RandomizedResponse, named_adjacency

Curve = Callable[[float], float]
Conversion = Callable[[float, float, float], float]


def classic_conversion(order: float, divergence: float, delta: float) -> float:
    """divergence + ln(1/delta) / (order - 1) (Mironov 2017, Proposition 3; Bernau 2021, Section 4.4)."""
    return divergence - log(delta) / (order - 1)


def improved_conversion(order: float, divergence: float, delta: float) -> float:
    """divergence + ln((order-1)/order) - (ln delta + ln order) / (order-1).

    Canonne, Kamath and Steinke 2020, Proposition 12; Balle et al. 2020, Theorem 21. Below `classic_conversion`.
    """
    return divergence + log((order - 1) / order) - (log(delta) + log(order)) / (order - 1)


def rdp_epsilon(
    mechanism: Mechanism,
    delta: float,
    adjacency: Adjacency | str | None = None,
    conversion: Conversion = improved_conversion,
    tuning: Tuning | None = None,
) -> float:
    """Epsilon at delta by Renyi DP, the best over all real orders > 1.

    Guarantee: the release is (result, delta)-DP. Supports Gaussian, GaussianDP and pure mechanisms, sampled or not,
    and their compositions.
    """
    return best_epsilon(renyi_curve(mechanism, adjacency), delta, conversion, tuning)


def best_epsilon(
    curve: Curve, delta: float, conversion: Conversion = improved_conversion, tuning: Tuning | None = None
) -> float:
    """The least epsilon that `conversion` gives at any order.

    (order - 1) times the divergence is convex in the order, so epsilon is a convex function divided by order - 1,
    which has one valley: a scalar search finds it. Every order is valid, so an inexact minimum is safe.
    """
    probability("delta", delta, open_ends=True)

    def at(log_of_order_less_one: float) -> float:
        order = 1 + exp(log_of_order_less_one)
        return conversion(order, curve(order), delta)

    return max(0.0, (tuning or Tuning()).least("order", at))


def renyi_curve(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> Curve:
    """Total Renyi divergence as a function of the order."""
    kind = named_adjacency(mechanism, adjacency)
    parts = [(_step_curve(part, kind), steps) for part, steps in runs_between(mechanism, kind)]

    def total(order: float) -> float:
        if positive("order", order) <= 1:
            raise ValueError(f"order must be a finite number > 1, got {order!r}")
        return sum(steps * step(order) for step, steps in parts)

    return total


def laplace_renyi(order: float, scale: float) -> float:
    """(ln(order e^(a/scale) + a e^(-order/scale)) - ln(2 order - 1)) / a, a = order - 1 (Mironov 2017, Prop. 6)."""
    a, epsilon = order - 1, 1 / positive("scale", scale)
    up, down = log_excess([a * epsilon, -order * epsilon])
    both = np.logaddexp(log(order) + up, log(a) + down)
    return float(np.logaddexp(0, both - log(2 * order - 1))) / a


def randomized_response_renyi(order: float, epsilon: float, categories: int = 2) -> float:
    """Renyi divergence between the answers of two people whose true categories differ.

    With two categories it is the largest of all epsilon-DP mechanisms (Kairouz, Oh and Viswanath 2015), so it serves
    every pure guarantee.
    """
    a = order - 1
    log_lie = -float(np.logaddexp(epsilon, log(categories - 1)))
    up, back, down, forth = log_excess([a * epsilon, -epsilon, -a * epsilon, epsilon])
    truth = np.logaddexp(up, log(a) + back) + epsilon
    lie = np.logaddexp(down, log(a) + forth)
    return float(np.logaddexp(0, log_lie + np.logaddexp(truth, lie))) / a


def _step_curve(mechanism: Mechanism, adjacency: Adjacency) -> Curve:
    rate = sampling(mechanism)
    noise = gaussian_noise(mechanism)
    if noise is not None:
        return _gaussian_curve(noise, rate, adjacency)
    match base(mechanism):
        case Laplace(scale) if rate == 1:
            return partial(laplace_renyi, scale=scale)
        case RandomizedResponse(epsilon, categories) if rate == 1:
            return partial(randomized_response_renyi, epsilon=epsilon, categories=categories)
    pure = pure_epsilon(mechanism)
    if pure is None:
        raise InapplicableError(f"rdp: {mechanism} has no finite Renyi divergence; use naive or advanced composition")
    return partial(randomized_response_renyi, epsilon=pure)


def _gaussian_curve(noise: float, rate: float, adjacency: Adjacency) -> Curve:
    if rate == 1:
        return lambda order: order * gaussian_rho(noise)
    return partial(sampled_gaussian_renyi, noise=noise, rate=rate, adjacency=adjacency)


def rho(mechanism: Mechanism) -> float:
    """Total rho: 1/(2 noise^2) a Gaussian step, epsilon^2/2 a pure one (Bun and Steinke 2016, Propositions 1.4, 1.6).

    Sampling is ignored, which is safe: a mixture is never further apart than what is mixed.
    """
    return sum(steps * _step_rho(base(part)) for part, steps in runs(mechanism))


def rho_to_epsilon_classic(rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, Proposition 1.3)."""
    positive("rho", rho, zero=True)
    return rho + 2 * sqrt(-rho * log(probability("delta", delta, open_ends=True)))


def epsilon_to_rho(epsilon: float, delta: float) -> float:
    """The rho whose classic conversion gives epsilon: (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2."""
    positive("epsilon", epsilon, zero=True)
    tail = -log(probability("delta", delta, open_ends=True))
    return (epsilon / (sqrt(tail + epsilon) + sqrt(tail))) ** 2


def rho_to_epsilon(rho: float, delta: float, tuning: Tuning | None = None) -> float:
    """The least epsilon over all orders by the improved Renyi conversion; never above the classic one."""
    classic = rho_to_epsilon_classic(rho, delta)
    return min(classic, best_epsilon(lambda order: rho * order, delta, improved_conversion, tuning))


def zcdp_epsilon(mechanism: Mechanism, delta: float, tuning: Tuning | None = None) -> float:
    """Epsilon at delta by zCDP, for Gaussian, pure and mixed compositions; any adjacency."""
    return rho_to_epsilon(rho(mechanism), delta, tuning)


def _step_rho(mechanism: Mechanism) -> float:
    noise = gaussian_noise(mechanism)
    if noise is not None:
        return gaussian_rho(noise)
    epsilon = pure_epsilon(mechanism)
    if epsilon is None:
        raise InapplicableError(f"zcdp: {mechanism} has no finite rho; use naive or advanced composition")
    return epsilon**2 / 2


def kl_to_tvd(divergence: float) -> float:
    """min(sqrt(KL/2), sqrt(1 - e^-KL)): Pinsker's and Bretagnolle-Huber's bounds on total variation.

    Jia 2023 (Theorem 7) changes from one to the other at KL = 2; the smaller of the two is always valid (erratum 14).
    """
    positive("divergence", divergence, zero=True)
    return min(sqrt(divergence / 2), sqrt(-expm1(-divergence)))


def kl_tvd(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> float:
    """Jia 2023, Theorem 7: total variation (membership advantage) of the release is at most this."""
    return kl_to_tvd(kl_divergence(mechanism, adjacency))


def kl_divergence(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> float:
    """Sum over the runs of the larger KL divergence of the two directions (Jia 2023, Definition 4)."""
    kind = named_adjacency(mechanism, adjacency)
    return sum(steps * _step_kl(part, kind) for part, steps in runs_between(mechanism, kind))


def _step_kl(mechanism: Mechanism, adjacency: Adjacency) -> float:
    rate = sampling(mechanism)
    noise = gaussian_noise(mechanism)
    if noise is not None:
        return gaussian_rho(noise) if rate == 1 else max(sampled_gaussian_kl(noise, rate, adjacency))
    match base(mechanism):
        case Laplace(scale) if rate == 1:
            return float(np.exp(log_excess(-1 / scale)))
        case RandomizedResponse(epsilon, categories) if rate == 1:
            return epsilon * -expm1(-epsilon) / (1 + (categories - 1) * exp(-epsilon))
    epsilon_of_pure = pure_epsilon(mechanism)
    if epsilon_of_pure is None:
        raise InapplicableError(f"kl: {mechanism} may have infinite KL divergence; use naive or advanced composition")
    return epsilon_of_pure * tanh(epsilon_of_pure / 2)
