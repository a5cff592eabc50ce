"""Gaussian noise, alone or many times: one Gaussian shift.

On a Poisson sample: how far out the noise matters, and how rare large losses, *jumps*, are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, inf, log, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from deniable.loss.arrays import EPS, Complexes, Floats, Numbers
from deniable.loss.moments.nodes import log_fall
from deniable.loss.pairs.step import Step

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


@dataclass(frozen=True)
class GaussianStep(Step):
    """N(mu, 1) against N(0, 1): L is N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q.

    Covers any composition of Gaussian mechanisms, mu^2 = sum of 1/noise^2.
    """

    mu: float
    smooth = True
    centres = 0.0, 0.0

    def sticks(self, k: Floats) -> Floats:
        """Phi(mu/2 - k/mu) - e^k Phi(-mu/2 - k/mu) (erratum 3), by scaled functions where it would cancel."""
        a = self.mu / 2 - self._per_mu(k)
        right, left = np.minimum(a, 0.0), np.maximum(a, self.mu)
        with np.errstate(over="ignore", under="ignore"):
            null = erfcx((self.mu - np.minimum(a, self.mu)) / sqrt(2))  # times e^{-a^2/2} / 2 it is e^k Q(L > k)
            tail = 0.5 * np.exp(-right * right / 2) * (erfcx(-right / sqrt(2)) - null)
            body = ndtr(a) - 0.5 * np.exp(-a * a / 2) * null
            below = ndtr(left) - np.exp(np.minimum(k, 0.0)) * ndtr(left - self.mu)
        return np.asarray(np.clip(np.select([a < 0, a <= self.mu], [tail, body], below), 0.0, 1.0))

    def blur(self, k: Floats) -> Floats:
        """mu and both terms of mu/2 - k/mu are rounded."""
        return 3 * EPS * (self.mu**2 / 2 + np.abs(k))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(self.mu / 2 - self._per_mu(t)))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(-self.mu / 2 - self._per_mu(t)))

    def log_null_tails(self, t: Floats) -> Floats:
        return np.asarray(log_ndtr(-self.mu / 2 - self._per_mu(t)))

    def _per_mu(self, k: Floats) -> Floats:
        """k / mu, which may be infinite beside large losses of other steps."""
        with np.errstate(over="ignore"):
            return np.asarray(k / self.mu)

    def cumulant(self, s: Complexes) -> Complexes:
        return np.asarray(0.5 * self.mu**2 * s * (s - 1))

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return 0.5 * self.mu**2 * c * (c - 1) + log_fall(0.5 * (self.mu * omega) ** 2, share / 2)

    def tilted_moments(self, c: Floats) -> Floats:
        return self.mu**2 * np.array([0.5 * c * (c - 1), c - 0.5, np.ones_like(c)])

    @property
    def variation(self) -> float:
        return erf(self.mu / sqrt(8))

    @property
    def largest(self) -> float:
        return inf

    @property
    def scale(self) -> float:
        return self.mu
