"""A composition's cumulant function K(s) = log E_Q[e^{sL}] and where on the real axis to stand when inverting it.

K of a composition is the sum of its steps' K, so no cost here grows with the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, log1p, pi, sqrt

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

    @cached_property
    def _saddles(self) -> dict[float, Saddle]:
        return {}

    def saddle(self, c: float) -> Saddle:
        """K, K' and K'' at c."""
        if c not in self._saddles:
            sums = np.zeros(3)
            for step, count in self.parts:
                sums += count * np.array(step.tilted(c))
            value, slope, bend = sums
            self._saddles[c] = Saddle(c, float(value), float(slope), max(float(bend), 1e-300))
        return self._saddles[c]

    def search(self, k: float, weight: Weight, region: Region) -> Saddle:
        """Nearly minimise the convex log-integrand on the real axis: Newton on the log of the distance to the pole."""
        low, high = region
        if low == 0.0 and high == 1.0:
            return self.saddle(0.5)
        sign, pole = (1.0, low) if high == inf else (-1.0, high)
        position, near, far = log(1.4 / self.scale), -inf, inf
        for _ in range(60):
            here = self.saddle(pole + sign * exp(position))
            offset = here.offset(k, weight)
            if abs(offset) < 0.5:
                break
            near, far = (near, position) if sign * offset > 0 else (position, far)
            move = -sign * offset / sqrt(here.bend + weight.bend(here.c)) / exp(position)
            position += min(max(move, -1.0), 1.0)
            if not near < position < far:  # K may bend much faster than its second derivative foretells
                position = 0.5 * (near + far)
        return here

    def rivals(self, saddle: Saddle, region: Region) -> tuple[Floats, Floats]:
        """Real points on both sides of c inside the region, poles included, with K there."""
        width = min(sqrt(2 * TINY / saddle.bend), 100 / self.scale)
        others = []
        for sign, end in ((-1.0, region[0]), (1.0, region[1])):
            room = abs(end - saddle.c)
            others += [saddle.c + sign * width * part for part in (0.25, 1.0) if width * part < room]
            others += [end] if room < inf else []
        others = [c for c in others if c != saddle.c]
        return np.array(others), np.array([self.saddle(c).value for c in others])

    def period(self, k: float, saddle: Saddle, rivals: tuple[Floats, Floats]) -> float:
        """A length of losses around k beyond which, seen from this saddle, less than e^-41 is left (Chernoff)."""
        others, cumulants = rivals
        excess = (cumulants - saddle.value - (others - saddle.c) * k + TINY) / np.abs(others - saddle.c)
        return 1.2 * max(float(excess[others > saddle.c].min()), float(excess[others < saddle.c].min()))

    @cached_property
    def _chernoff_points(self) -> tuple[Floats, Floats]:
        points = 1 + np.array([0.5, 2.0, 8.0]) / self.scale
        return points, np.array([self.saddle(float(c)).value for c in points])

    def ceiling(self, k: float) -> float:
        """Chernoff's bound on P(L > k), and so on the divergence, at a few points."""
        if k >= self.largest:
            return self.escape
        points, cumulants = self._chernoff_points
        return min(1.0, self.escape + exp(min(0.0, float((cumulants - (points - 1) * k).min()))))

    def level_point(self, level: float, weight: Weight, pole: float) -> tuple[float, float]:
        """About where a functional right of its pole falls to a small `level`, and how sure that is.

        By the saddle-point approximation e^{K(c) - k (c - shift)} weight(c) / sqrt(2 pi (K'' + bend)), read backwards:
        every c has its k, and c is moved until the value is `level`.
        """
        position, near, far = log(1.4 / self.scale), -inf, inf
        for _ in range(60):
            here = self.saddle(pole + exp(position))
            k = here.slope - weight.slope(here.c)
            bend = here.bend + weight.bend(here.c)
            height = here.value - k * (here.c - weight.shift) + log(weight(np.array([complex(here.c)]))[0].real)
            missing = height - 0.5 * log(2 * pi * bend) - log(level)
            if abs(missing) < 0.3:
                break
            near, far = (position, far) if missing > 0 else (near, position)
            position += min(max(missing / (bend * exp(2 * position)), -1.0), 1.0)
            if not near < position < far:
                position = 0.5 * (near + far)
        return k, 0.3 / sqrt(bend) + 0.1 / exp(position)
