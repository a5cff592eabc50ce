"""Laplace noise: two atoms and a density between them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

import numpy as np

from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.pairs.step import Step


@dataclass(frozen=True)
class LaplaceStep(Step):
    """Laplace noise of scale 1/epsilon on a shift of 1: atoms at +-epsilon, a density between.

    Jia 2023, Theorem 11.
    """

    epsilon: float
    has_joint_sticks = True

    def sticks(self, k: Floats) -> Floats:
        inside = -np.expm1(np.minimum(k - self.epsilon, 0) / 2)
        below = -np.expm1(np.minimum(k, 0))
        return np.where(k >= self.epsilon, 0.0, np.where(k <= -self.epsilon, below, inside))

    def tails(self, t: Floats) -> Floats:
        inside = 1 - 0.5 * np.exp((np.minimum(t, self.epsilon) - self.epsilon) / 2)
        return np.where(t >= self.epsilon, 0.0, np.where(t < -self.epsilon, 1.0, inside))

    def null_tails(self, t: Floats) -> Floats:
        inside = 0.5 * np.exp(-(self.epsilon + np.clip(t, -self.epsilon, self.epsilon)) / 2)
        return np.where(t >= self.epsilon, 0.0, np.where(t < -self.epsilon, 1.0, inside))

    def log_null_tails(self, t: Floats) -> Floats:
        inside = -(self.epsilon + np.clip(t, -self.epsilon, self.epsilon)) / 2 - log(2)
        return np.where(t >= self.epsilon, -inf, np.where(t < -self.epsilon, 0.0, inside))

    def blur(self, k: Floats) -> Floats:
        """Of the density; the atoms are where they are."""
        between = np.minimum(np.abs(k - self.epsilon), np.abs(k + self.epsilon))
        return np.asarray(np.minimum(2 * EPS * (self.epsilon + np.abs(k)), between))

    def cumulant(self, s: Complexes) -> Complexes:
        left, right = -s * self.epsilon, (s - 1) * self.epsilon
        top = np.maximum(left.real, right.real)
        a, b = np.exp(left - top), np.exp(right - top)
        half = 2 * s - 1
        near = np.abs(half) < 1e-8
        middle = np.where(near, self.epsilon * np.exp(0.5 * (left + right) - top), (b - a) / np.where(near, 1.0, half))
        return np.asarray(top + np.log(0.5 * (a + b + middle)))

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Both atoms in phase, and the density, whose share falls like 1 / omega."""
        atoms = np.logaddexp(-c * self.epsilon, (c - 1) * self.epsilon) - log(2)
        alone = atoms + np.log1p(1 / np.abs(2 * c - 1 + 2j * omega))
        return np.asarray(np.minimum(super().envelope(c, omega, share), alone))

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def scale(self) -> float:
        return self.epsilon
