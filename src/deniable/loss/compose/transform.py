"""Convolution on a circle of losses, by FFT."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log1p

import numpy as np
from numpy.fft import irfft, rfft

from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.compose.cells import Cells
from deniable.loss.compose.cumulants import TINY, Composition
from deniable.loss.compose.grid_law import GridLaw


@dataclass(frozen=True)
class GridComposition:
    """Steps on one grid, tilted by e^{cL} and convolved on a circle of `size` points from `first` on."""

    composition: Composition
    cells: list[Cells]
    c: float
    spacing: float
    size: int
    first: int

    def law(self) -> GridLaw:
        counts = [count for _, count in self.composition.parts]
        pmf, height = self._convolve_law([cells.log_masses for cells in self.cells])
        steps = self.composition.steps
        moves = any(cells.moved > 0 for cells in self.cells)
        true, true_height = self._convolve_law([cells.log_true for cells in self.cells]) if moves else (pmf, height)
        lost = sum(n * log1p(-min(cells.lost, 1 - EPS)) for cells, n in zip(self.cells, counts, strict=True))
        moved, drift = (
            sum(n * getattr(cells, name) for cells, n in zip(self.cells, counts, strict=True))
            for name in ("moved", "drift")
        )
        roundoff = EPS * (16 + 4 * steps) * float(pmf.max())
        wrapped = self._folded_mass([cells.log_masses for cells in self.cells], height) + 4 * steps * EPS
        losses = (self.first + np.arange(self.size)) * self.spacing
        same = true_height - height
        true_wrapped = self._folded_mass([cells.log_true for cells in self.cells], true_height) if moves else 0.0
        return GridLaw(
            self.c,
            height,
            losses,
            pmf,
            true * exp(min(same, 0.0)),
            self.spacing,
            -float(np.expm1(lost)),
            self.composition.escape,
            moved,
            drift,
            roundoff,
            wrapped,
            wrapped + true_wrapped,
            self._ends[0] < self.first,
        )

    def _convolve_law(self, logs: list[Floats]) -> tuple[Floats, float]:
        """The normalised tilted law on the window, and the logarithm of what it was divided by."""
        transform, height = np.ones(self.size // 2 + 1, dtype=np.complex128), 0.0
        for cells, log_masses, (_, count) in zip(self.cells, logs, self.composition.parts, strict=True):
            tilted = cells.tilt_masses(log_masses, self.spacing, self.c)
            top = float(tilted.max())
            weights = np.exp(tilted - top)
            total = float(weights.sum())
            place = (cells.first + np.arange(weights.size)) % self.size
            transform *= _power(rfft(np.bincount(place, weights / total, self.size)), count)
            height += count * (top + log(total))
        return np.roll(irfft(transform, self.size), -(self.first % self.size)).clip(min=0.0), height

    @property
    def _ends(self) -> tuple[int, int]:
        """The least and the largest loss of all steps together, in cells."""
        ends = [(cells.first, cells.first + cells.log_masses.size - 1) for cells in self.cells]
        counts = [count for _, count in self.composition.parts]
        low, high = (sum(n * end[side] for n, end in zip(counts, ends, strict=True)) for side in (0, 1))
        return low, high

    def _folded_mass(self, logs: list[Floats], height: float) -> float:
        """Chernoff's bound on the share of the tilted mass outside of the window."""
        low, high = self._ends
        folded = 0.0
        if low < self.first:
            folded += self._beyond(logs, height, self.first * self.spacing)
        if high >= self.first + self.size:
            folded += self._beyond(logs, height, (self.first + self.size) * self.spacing)
        return folded

    def _beyond(self, logs: list[Floats], height: float, end: float) -> float:
        """The least e^{K(c') - K(c) - (c' - c) end} of a few c' on that side, on the scale of the window."""
        middle = (self.first + self.size / 2) * self.spacing
        bounds = []
        for share in (1.0, 1.5, 2.0, 3.0, 5.0):
            other = self.c + share * TINY / (end - middle)
            moment = sum(
                n * _log_sum(cells.tilt_masses(masses, self.spacing, other))
                for cells, masses, (_, n) in zip(self.cells, logs, self.composition.parts, strict=True)
            )
            bounds.append(moment - height - (other - self.c) * end)
        return exp(min(*bounds, 0.0))


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).sum()))


def _power(base: Complexes, exponent: int) -> Complexes:
    """By squaring: many times as fast as through logarithms."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result
