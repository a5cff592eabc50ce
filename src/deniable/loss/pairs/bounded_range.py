"""The exponential mechanism: losses within a range of known width."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log

import numpy as np

from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.pairs.step import Step

_FLAT = 1e-4


@dataclass(frozen=True)
class BoundedRangeStep(Step):
    """All that a range of width epsilon allows: H(k) = (e^{epsilon/2} - e^{k/2})^2 / (e^epsilon - 1), |k| <= epsilon.

    The largest divergence at every k of the pairs whose loss is t or t - epsilon (Dong, Durfee, Rogers 2020), as one
    pair (Lemma M1): a density e^{-k/2} without atoms. Advantage tanh(epsilon / 4).
    """

    epsilon: float

    @property
    def _log_width(self) -> float:
        """ln(e^epsilon - 1) - epsilon."""
        return log(-expm1(-self.epsilon))

    @property
    def log_share(self) -> float:
        """ln of its density over that of Laplace noise between the atoms."""
        return log(2) - self._log_width

    def sticks(self, k: Floats) -> Floats:
        inside = np.expm1((np.clip(k, -self.epsilon, self.epsilon) - self.epsilon) / 2) ** 2 / -expm1(-self.epsilon)
        return np.where(k <= -self.epsilon, -np.expm1(np.minimum(k, 0.0)), inside)

    def tails(self, t: Floats) -> Floats:
        inside = -np.expm1((np.clip(t, -self.epsilon, self.epsilon) - self.epsilon) / 2) / -expm1(-self.epsilon)
        return np.minimum(inside, 1.0)

    def null_tails(self, t: Floats) -> Floats:
        return np.minimum(np.exp(self.log_null_tails(t)), 1.0)

    def log_null_tails(self, t: Floats) -> Floats:
        """(e^{(epsilon - t)/2} - 1) / (e^epsilon - 1)."""
        left = (self.epsilon - np.clip(t, -self.epsilon, self.epsilon)) / 2
        with np.errstate(divide="ignore"):
            inside = left + np.log(-np.expm1(-left)) - self.epsilon - self._log_width
        return np.where(t >= self.epsilon, -inf, np.minimum(inside, 0.0))

    def blur(self, k: Floats) -> Floats:
        return 4 * EPS * (self.epsilon + np.abs(k))

    def cumulant(self, s: Complexes) -> Complexes:
        """ln of e^{epsilon/2} sinh(z) / z * epsilon / (e^epsilon - 1), z = (s - 1/2) epsilon."""
        z = (s - 0.5) * self.epsilon
        z = np.where(z.real < 0, -z, z)
        near = np.abs(z) < _FLAT
        far = np.where(near, 1.0, z)
        ratio = np.where(near, np.exp(-z) * (1 + z * z / 6), -np.expm1(-2 * far) / (2 * far))
        return np.asarray(z + np.log(ratio) + (log(self.epsilon) - 0.5 * self.epsilon - self._log_width))

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """A density between two ends: it falls like 1 / omega."""
        size = self.epsilon * np.abs(c - 0.5)
        z = np.abs(size + 1j * omega * self.epsilon)
        ends = size + np.log1p(np.exp(-2 * size)) - np.log(2 * z)
        fall = ends + (log(self.epsilon) - 0.5 * self.epsilon - self._log_width)
        return np.asarray(np.minimum(super().envelope(c, omega, share), fall))

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def scale(self) -> float:
        return self.epsilon
