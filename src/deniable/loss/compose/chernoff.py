"""Chernoff's inequality: quick bounds on tails and divergences from a few real points (Lemma C2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf

import numpy as np

from deniable.loss.arrays import Floats
from deniable.loss.compose.cumulants import Composition
from deniable.loss.functionals import Functional


@dataclass(frozen=True)
class Chernoff:
    """Bounds on the functionals of a composition."""

    law: Composition

    def log_bound(self, k: float, shift: float, right: bool) -> float:
        """Logarithm of a bound on e^{shift k} Q(L > k) and P(L > k), or on the same of L < k."""
        points, cumulants = (self._right if shift else self._null_right) if right else self._left
        return float((cumulants - (points - shift) * k).min())  # Lemma C2

    def ceiling(self, functional: Functional, k: float) -> float:
        """A bound on a tail, and so on the divergence, with the mass at L = inf where it counts."""
        escape = self.law.escape if functional.shift else 0.0
        if k >= self.law.largest:
            return escape
        if k == -inf:
            return 1.0
        return min(1.0, escape + exp(min(0.0, self.log_bound(k, functional.shift, right=True))))

    @cached_property
    def _right(self) -> tuple[Floats, Floats]:
        return self._outwards(1.0, 1.0)

    @cached_property
    def _null_right(self) -> tuple[Floats, Floats]:
        return self._outwards(0.0, 1.0)

    @cached_property
    def _left(self) -> tuple[Floats, Floats]:
        return self._outwards(0.0, -1.0)

    def _outwards(self, pole: float, sign: float) -> tuple[Floats, Floats]:
        """Real points from the pole away from the other one, with K there."""
        points = pole + sign * np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) / self.law.scale
        return points, np.array([self.law.height(saddle) for saddle in self.law.saddles(points.tolist())])
