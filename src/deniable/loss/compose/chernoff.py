"""Chernoff's inequality: quick bounds on tails and divergences from a few real points (Lemma C2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp

import numpy as np

from deniable.loss.arrays import Floats
from deniable.loss.compose.cumulants import Composition

__all__ = ["Chernoff"]


@dataclass(frozen=True)
class Chernoff:
    """Bounds on the functionals of a composition."""

    law: Composition

    def log_bound(self, k: float, shift: float, right: bool) -> float:
        """Logarithm of a bound on e^{shift k} Q(L > k) and P(L > k), or on the same of L < k."""
        points, cumulants = self._right if right else self._left
        return float((cumulants - (points - shift) * k).min())  # Lemma C2

    def ceiling(self, k: float) -> float:
        """Chernoff's bound on P(L > k), and so on the divergence, at a few points."""
        if k >= self.law.largest:
            return self.law.escape
        return min(1.0, self.law.escape + exp(min(0.0, self.log_bound(k, 1.0, right=True))))

    def null_ceiling(self, k: float) -> float:
        """The same bound on Q(L > k)."""
        return min(1.0, exp(min(0.0, self.log_bound(k, 0.0, right=True))))

    @cached_property
    def _right(self) -> tuple[Floats, Floats]:
        return self._outwards(1.0, 1.0)

    @cached_property
    def _left(self) -> tuple[Floats, Floats]:
        return self._outwards(0.0, -1.0)

    def _outwards(self, pole: float, sign: float) -> tuple[Floats, Floats]:
        """Real points from the pole away from the other one, with K there."""
        points = pole + sign * np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) / self.law.scale
        return points, np.array([self.law.height(saddle) for saddle in self.law.saddles(points.tolist())])
