"""A composition's cumulant function K(s) = log E_Q[e^{sL}] and where on the real axis to stand when inverting it.

K of a composition is the sum of its steps' K, so no cost here grows with the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log1p, sqrt

import numpy as np

from deniable.loss.steps import Complexes, Floats, Step

__all__ = ["EPS", "TINY", "Composition", "Region", "Saddle", "Weight"]

TINY = 41.0  # e^-41 = 1.6e-18: what is left out is pushed below double precision
EPS = 2.2e-16
Region = tuple[float, float]


@dataclass(frozen=True)
class Weight:
    """A functional's weight on the line: 1/(s (s-1)), 1/(s-1) or 1/s, times e^{-k (s - shift)}."""

    poles: tuple[float, ...]
    shift: float

    def __call__(self, s: Complexes) -> Complexes:
        product = np.ones_like(s)
        for pole in self.poles:
            product = product * (s - pole)
        return 1 / product

    def slope(self, c: float) -> float:
        """Derivative of -log |weight| on the real axis."""
        return sum(1 / (c - pole) for pole in self.poles)

    def bend(self, c: float) -> float:
        return sum(1 / (c - pole) ** 2 for pole in self.poles)


@dataclass(frozen=True)
class Saddle:
    """K and its first two derivatives at a real point."""

    c: float
    value: float
    slope: float
    bend: float

    def offset(self, k: float, weight: Weight) -> float:
        """How many standard widths the integrand's saddle for k lies away from c."""
        return (self.slope - k - weight.slope(self.c)) / sqrt(self.bend + weight.bend(self.c))


@dataclass(frozen=True)
class Composition:
    """Independent steps, each run a number of times."""

    parts: Sequence[tuple[Step, int]]

    @cached_property
    def steps(self) -> int:
        return sum(count for _, count in self.parts)

    @cached_property
    def escape(self) -> float:
        """P(L = inf)."""
        return -float(np.expm1(sum(count * log1p(-step.escape) for step, count in self.parts)))

    @cached_property
    def largest(self) -> float:
        return sum(count * step.largest for step, count in self.parts)

    @cached_property
    def scale(self) -> float:
        """Standard deviation of L half-way between Q and P."""
        return sqrt(self.saddle(0.5).bend)

    @cached_property
    def mean(self) -> float:
        """E_P[L]."""
        return self.saddle(1.0).slope

    @cached_property
    def null_mean(self) -> float:
        """E_Q[L]."""
        return self.saddle(0.0).slope

    def reversed(self) -> Composition:
        return Composition([(step.reversed(), count) for step, count in self.parts])

    def cumulant(self, s: Complexes) -> Complexes:
        total = np.zeros(s.shape, dtype=np.complex128)
        for step, count in self.parts:
            total += count * step.cumulant(s)
        return total

    def saddle(self, c: float, width: float = 1e-4) -> Saddle:
        """K, K' and K'' at c from one complex neighbour: K(c + ih) = K + ih K' - h^2 K''/2 + ..."""
        for _ in range(60):
            at, near = self.cumulant(np.array([complex(c), complex(c, width)]))
            drop = float(at.real - near.real)
            if drop > 1e-2:
                width /= 4
            elif drop < 1e-7 and width < 1e6:
                width *= 16
            else:
                break
        tiny = 1e-6 * width
        slope = float(self.cumulant(np.array([complex(c), complex(c, tiny)]))[1].imag) / tiny
        return Saddle(c, float(at.real), slope, max(2 * drop / width**2, 1e-300))

    def search(self, k: float, weight: Weight, region: Region) -> Saddle:
        """Minimise the convex log-integrand on the real axis: Newton on the logarithm of the distance to the pole."""
        low, high = region
        if low == 0.0 and high == 1.0:
            return self.saddle(0.5)
        sign, pole = (1.0, low) if high == inf else (-1.0, high)
        distance = min(1.4 / self.scale, 1e6)
        here = self.saddle(pole + sign * distance)
        for _ in range(40):
            offset = here.offset(k, weight)
            if abs(offset) < 0.5:
                break
            move = -sign * offset / sqrt(here.bend + weight.bend(here.c)) / distance
            distance *= exp(min(max(move, -1.0), 1.0))
            here = self.saddle(pole + sign * distance)
        return here

    def rivals(self, saddle: Saddle, region: Region) -> tuple[Floats, Floats]:
        """Real points on both sides of c inside the region, poles included, with K there."""
        width = min(sqrt(2 * TINY / saddle.bend), 100 / self.scale)
        others = []
        for sign, end in ((-1.0, region[0]), (1.0, region[1])):
            room = abs(end - saddle.c)
            others += [saddle.c + sign * width * part for part in (0.1, 0.3, 1.0) if width * part < room]
            others += [end] if room < inf else []
        return np.array(others), np.array([float(self.cumulant(np.array([complex(c)]))[0].real) for c in others])

    def period(self, k: float, saddle: Saddle, rivals: tuple[Floats, Floats]) -> float:
        """A length of losses around k beyond which, seen from this saddle, less than e^-41 is left (Chernoff)."""
        others, cumulants = rivals
        excess = (cumulants - saddle.value - (others - saddle.c) * k + TINY) / np.abs(others - saddle.c)
        return 1.2 * max(float(excess[others > saddle.c].min()), float(excess[others < saddle.c].min()))
