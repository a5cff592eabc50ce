"""Gaussian noise, alone or many times: one Gaussian shift."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, inf, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.moments.nodes import log_fall
from deniable.loss.pairs.step import Step


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
