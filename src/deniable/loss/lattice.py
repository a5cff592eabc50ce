"""Randomized response and bare guarantees, composed: losses on the lattice epsilon * {-n, -n+2, ..., n}."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log, log1p

import numpy as np
from scipy.special import gammaln

from deniable.loss.arrays import Floats
from deniable.loss.pair import Pair
from deniable.loss.steps import AtomStep
from deniable.loss.values import Upper, upper

__all__ = ["Lattice"]


@dataclass(frozen=True)
class Lattice(Pair):
    """`count` runs of a two-atom step: if j speak for P, L = (2j - count) epsilon (002 Theorem 18; ERRATA 12)."""

    step: AtomStep
    count: int
    method = "closed form"

    @cached_property
    def _losses(self) -> Floats:
        return (2 * np.arange(self.count + 1) - self.count) * self.step.epsilon

    @cached_property
    def _masses(self) -> Floats:
        """P-mass of every loss, summing to 1 - escape."""
        j = np.arange(self.count + 1)
        choose = gammaln(self.count + 1) - gammaln(j + 1) - gammaln(self.count - j + 1)
        return np.asarray(np.exp(choose + self.count * log(self.step.up) - (self.count - j) * self.step.epsilon))

    @cached_property
    def _accuracy(self) -> float:
        """Relative error of a mass: the logarithms above are as large as count * ln(count)."""
        return 4e-16 * (10 + self.count * (log(self.count + 1) + self.step.epsilon))

    @cached_property
    def escape(self) -> float:
        return -float(np.expm1(self.count * log1p(-self.step.hidden)))

    def _sum(self, values: Floats, extra: float = 0.0) -> Upper:
        total = float(values.sum()) + extra
        return upper(total, self._accuracy * total, high=1.0)

    def hockey_stick(self, k: float) -> Upper:
        above = self._losses > k
        return self._sum(self._masses[above] * -np.expm1(k - self._losses[above]), self.escape)

    def tail(self, t: float) -> Upper:
        return self._sum(self._masses[self._losses > t], self.escape)

    def null_tail(self, t: float) -> Upper:
        return self._sum(self._masses[::-1][self._losses > t])

    def exceeded(self, failure: float) -> float:
        survival = np.append(np.cumsum(self._masses[::-1])[::-1][1:], 0.0) * (1 + self._accuracy) + self.escape
        allowed = np.nonzero(survival <= failure)[0]
        return float(self._losses[allowed[0]]) if allowed.size else inf

    def reversed(self) -> Lattice:
        return self

    @property
    def largest(self) -> float:
        return inf if self.escape > 0 else self.largest_finite

    @property
    def largest_finite(self) -> float:
        return self.count * self.step.epsilon

    @property
    def scale(self) -> float:
        return max(self.step.epsilon, 1e-12)
