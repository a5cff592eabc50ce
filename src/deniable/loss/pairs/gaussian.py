"""Gaussian noise, alone or many times: one Gaussian shift."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, inf, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.moments.nodes import log_fall
from deniable.loss.pairs.step import Step

__all__ = ["GaussianStep"]


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
        a = self.mu / 2 - k / self.mu
        in_tail = a < 0
        with np.errstate(over="ignore", under="ignore"):
            safe = np.where(in_tail, a, 0.0)
            tail = 0.5 * np.exp(-safe * safe / 2) * (erfcx(-safe / sqrt(2)) - erfcx((self.mu - safe) / sqrt(2)))
            body = ndtr(a) - np.exp(np.minimum(k, 700) + log_ndtr(a - self.mu) + np.maximum(k - 700, 0))
        return np.asarray(np.clip(np.where(in_tail, tail, body), 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(self.mu / 2 - t / self.mu))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(-self.mu / 2 - t / self.mu))

    def log_null_tails(self, t: Floats) -> Floats:
        return np.asarray(log_ndtr(-self.mu / 2 - t / self.mu))

    def cumulant(self, s: Complexes) -> Complexes:
        return np.asarray(0.5 * self.mu**2 * s * (s - 1))

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return 0.5 * self.mu**2 * c * (c - 1) + log_fall(0.5 * (self.mu * omega) ** 2, share / 2)

    def tilted(self, c: Floats) -> Floats:
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
