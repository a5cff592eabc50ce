"""Kullback-Leibler divergence: it adds under composition and bounds total variation.

Jia 2023, Section 2.4, Theorem 7.
"""

from __future__ import annotations

from math import exp, expm1, sqrt, tanh

import numpy as np

from deniable.bounds.numeric import InapplicableError, gaussian_rho, log_excess
from deniable.bounds.runs import base, gaussian_noise, pure_epsilon, runs_between, sampling
from deniable.bounds.sampled import sampled_gaussian_kl
from deniable.checks import positive
from deniable.mechanisms import Adjacency, Laplace, Mechanism, RandomizedResponse, named_adjacency


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
