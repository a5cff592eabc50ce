"""Gaussian noise on a Poisson sample: how far out it matters, and how rare large losses, *jumps*, are."""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import ndtr, ndtri

from deniable.loss.arrays import Numbers

REACH_SIGMAS = 14.0  # beyond lies 1e-44 of a Gaussian (Lemma C8)
FARTHEST_SIGMAS = 26.0  # beyond, 1e-149 of a Gaussian is left out even where e^{cL} would magnify it (Lemma C8)
MOST_BLURRED_MU = 25.0  # up to which one jump is blurred enough for a tapered line (V1): beyond, they are counted
_LOG_ROOT_TWO_PI = 0.5 * log(2 * np.pi)


def log_normal(x: Numbers) -> Numbers:
    return -x * x / 2 - _LOG_ROOT_TWO_PI


def jump_size(probability: float, mu: float, rate: float) -> float:
    """rate * e^{mu x - mu^2 / 2} at the noise x that is exceeded with this probability."""
    return float(np.exp(min(log(rate) - mu * mu / 2 - mu * float(ndtri(probability)), 300.0)))


def jump_probability(size: float, mu: float, rate: float) -> float:
    return float(ndtr(-(log(size / rate) + mu * mu / 2) / mu))


def lift(mu: float) -> float:
    """How far to leave the real axis: well short of the mixture's first zero, and cheap in the Gaussian weight."""
    return min(1.0, np.pi / (2 * mu))
