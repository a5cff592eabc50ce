"""The three functionals of the privacy loss from which every score follows."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from deniable.loss.arrays import Complexes

__all__ = ["NULL_TAIL", "STICK", "TAIL", "Functional"]


@dataclass(frozen=True)
class Functional:
    """Its weight on a vertical line is 1/(s (s-1)), 1/(s-1) or 1/s, times e^{-k (s - shift)} (Lemma C1)."""

    poles: tuple[float, ...]
    shift: float

    def __call__(self, s: Complexes) -> Complexes:
        product = np.ones_like(s)
        for pole in self.poles:
            product = product * (s - pole)
        return 1 / product

    def log_size(self, c: float) -> float:
        return -sum(log(abs(c - pole)) for pole in self.poles)

    def slope(self, c: float) -> float:
        """Derivative of -log |weight| on the real axis."""
        return sum(1 / (c - pole) for pole in self.poles)

    def bend(self, c: float) -> float:
        return sum(1 / (c - pole) ** 2 for pole in self.poles)


STICK = Functional((0.0, 1.0), 1.0)
"""The hockey-stick divergence."""
TAIL = Functional((1.0,), 1.0)
"""P(L > k)."""
NULL_TAIL = Functional((0.0,), 0.0)
"""Q(L > k)."""
