"""Compositions of any steps on a grid of losses, by FFT: for losses with atoms, which no Gaussian smooths.

Guarantee. Each step's loss L is moved to a grid, L + xi, so that a cell's mass goes to the cell's two ends with P-
and Q-mass both kept: E_Q[e^xi | L] = 1. The hockey-stick divergence, convex in e^k, is thereby replaced by its chord
("connect the dots", Doroshenko et al. 2022): the discrete pair dominates the true one, and dominance survives
composition, so divergences are upper bounds. The moves xi are independent, centred and bounded by the spacing;
Bernstein's inequality bounds their sum by some a except with probability eta, hence P(L > t) <= P_grid(L > t - a) +
eta. The divergence changes only where a move crosses k, and then by the crossing alone:

    0 <= H_grid(k) - H(k) <= (1 - e^-a) (e^k Q_grid(k - a < L <= k) + P_grid(k < L <= k + a)) + (1 + e^k) eta.

Mass above the grid is counted as P-mass at infinity, mass below it is rounded up, wrap-around of the FFT is bounded
by Chernoff's inequality. The composition is tilted by e^{cL} before the transform, so that round-off is relative to
the tail that is asked for. Atoms that lie on the grid do not move at all: there the result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, inf, log, log1p, log2, sqrt

import numpy as np
from numpy.fft import irfft, rfft

from deniable.loss.arrays import Floats
from deniable.loss.composed import ComposedPair
from deniable.loss.saddle import EPS, TINY, Composition, Weight
from deniable.loss.steps import Step
from deniable.loss.values import Upper

__all__ = ["Grid"]


@dataclass(frozen=True)
class _Cells:
    """One step on the grid: loss (first + j) * spacing has Q-mass mass[j]; `lost` P-mass lies above the grid."""

    first: int
    mass: Floats
    lost: float
    moved: float  # variance of the move xi, the larger of both under P and Q


def _cells(step: Step, spacing: float, low: float, high: float) -> _Cells:
    """The chord discretisation of one step on [low, high]."""
    first, last = int(np.floor(low / spacing)), int(np.floor(high / spacing)) + 1
    edges = np.arange(first, last + 1) * spacing
    p, q = _between(step, edges), _null_between(step, edges)
    top, bottom = np.exp(edges[1:]), np.exp(edges[:-1])
    width = np.maximum((top - bottom) * q, 1e-300)  # it underflows far below zero, where there is no mass to move
    share = np.clip((p - q * bottom) / width, 0.0, 1.0)
    share = np.where(share < 1e-9, 0.0, np.where(share > 1 - 1e-9, 1.0, share))  # an atom on an edge stays there
    mass = np.zeros(edges.size)
    mass[1:] += q * share
    mass[:-1] += q * (1 - share)
    mass[0] += max(0.0, 1 - step.reversed().escape - float(step.null_tails(edges[:1])[0]))
    variance = share * (1 - share) * spacing**2 * exp(spacing)  # e^spacing: P weighs a cell's upper end a little more
    moved = max(float((p * variance).sum()), float((q * variance).sum()))
    return _Cells(first, mass, float(step.tails(edges[-1:])[0]), moved)


def _between(step: Step, edges: Floats) -> Floats:
    """P-mass of (edge_j, edge_j+1], by whichever tail is the smaller one."""
    above = step.tails(edges)
    below = step.reversed().null_tails(-np.nextafter(edges, inf))
    return np.where(edges[:-1] > 0, above[:-1] - above[1:], np.diff(below)).clip(min=0.0)


def _null_between(step: Step, edges: Floats) -> Floats:
    above = step.null_tails(edges)
    below = step.reversed().tails(-np.nextafter(edges, inf)) - step.reversed().escape
    return np.where(edges[:-1] > 0, above[:-1] - above[1:], np.diff(below)).clip(min=0.0)


@dataclass(frozen=True)
class _Law:
    """The composition on the grid, tilted by e^{cL}: Q-mass of loss_i is pmf_i e^{height - c loss_i}."""

    c: float
    height: float
    losses: Floats
    pmf: Floats
    spacing: float
    lost: float  # P-mass counted at infinity
    moved: float  # variance of all moves together
    roundoff: float  # absolute, of each pmf entry
    wrapped: float  # tilted mass that may have been folded into the window, or lost in the steps' round-off

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        """What turns the tilted pmf into P- and Q-mass."""
        exponent = self.height - self.c * self.losses
        return np.exp(np.clip(exponent + self.losses, -700.0, 600.0)), np.exp(np.clip(exponent, -700.0, 600.0))

    @cached_property
    def _suffixes(self) -> list[Floats]:
        """Sums from each loss upwards of P-mass, Q-mass and of their weights."""
        p, q = self._weights
        return [np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (p * self.pmf, q * self.pmf, p, q)]

    def above(self, k: float) -> tuple[float, float, float, float]:
        """P-mass and Q-mass of losses above k, and the error of each."""
        first = int(np.searchsorted(self.losses, k + 1e-9 * self.spacing, side="right"))
        p, q, p_weight, q_weight = (float(sums[first]) for sums in self._suffixes)
        folded = [self.wrapped * float(weight[min(first, weight.size - 1)]) for weight in self._weights]
        return p, q, self.roundoff * p_weight + folded[0], self.roundoff * q_weight + folded[1]

    def shift(self, eta: float) -> float:
        """How far the moves may have carried the loss, except with probability eta (Bernstein)."""
        if self.moved == 0:
            return 0.0
        eta = min(eta, 0.5)
        return self.moved + sqrt(2 * self.moved * log(1 / eta)) + self.spacing * log(1 / eta)


@dataclass
class Grid(ComposedPair):
    """A composition of any steps on a grid of losses."""

    composition: Composition
    points: int = 2**18
    _laws: dict[float, _Law] = field(default_factory=dict)
    method = "grid"

    def hockey_stick(self, k: float) -> Upper:
        if k >= self.largest_finite:
            return Upper(self.escape)
        law = self._law(k, 1.0)
        value, error = self._stick(law, k)
        least = value - error - self._crossed(law, k, 1e-9 * max(value, 1e-290))
        top = min(value + error, 1.0)
        return Upper(top, max(0.0, min(top, top - max(least, self.escape))))

    @staticmethod
    def _crossed(law: _Law, k: float, chance: float) -> float:
        """What moves across k may have added to the divergence; unlikely long moves are granted `chance`."""
        growth = exp(min(k, 700.0))
        eta = max(chance / (1 + growth), 1e-300)
        shift = law.shift(eta)
        if shift == 0:
            return 0.0
        below, here, above = law.above(k - shift), law.above(k), law.above(k + shift)
        null = max(below[1] - here[1], 0.0) + below[3]
        crossed = max(here[0] - above[0], 0.0) + here[2]
        return -float(np.expm1(-shift)) * (growth * null + crossed) + (1 + growth) * eta

    @staticmethod
    def _stick(law: _Law, k: float) -> tuple[float, float]:
        p, q, p_error, q_error = law.above(k)
        growth = exp(min(k, 700.0))
        return max(p - growth * q, 0.0) + law.lost, p_error + growth * q_error

    def tail(self, t: float) -> Upper:
        if t >= self.largest_finite:
            return Upper(self.escape)
        return self._tail(self._law(t, 1.0), t, 0)

    def null_tail(self, t: float) -> Upper:
        if t >= self.largest_finite:
            return Upper(0.0)
        return self._tail(self._law(t, 0.0), t, 1)

    def _tail(self, law: _Law, t: float, under: int) -> Upper:
        """P(L > t) (under 0) or Q(L > t) (under 1), with the moves on the safe side."""
        eta = 1e-9 * max(law.above(t)[under], 1e-290)
        shift = law.shift(eta)
        high, low = law.above(t - shift), law.above(t + shift)
        top = high[under] + high[under + 2] + (law.lost if under == 0 else 0.0) + (eta if shift else 0.0)
        return Upper(min(top, 1.0), max(0.0, min(top, 1.0) - max(low[under] - low[under + 2] - eta, 0.0)))

    def reversed(self) -> Grid:
        return self.mirror

    @cached_property
    def mirror(self) -> Grid:
        mirrored = Grid(self.composition.reversed(), self.points)
        mirrored.__dict__["mirror"] = self
        return mirrored

    def _law(self, k: float, least: float) -> _Law:
        """The composition tilted to the saddle for k right of `least`; near-by k share one, on half octaves."""
        c = least
        if k > (self.composition.mean if least == 1.0 else self.composition.null_mean):
            distance = self.composition.search(k, Weight((least,), least), (least, inf)).c - least
            c = least + 2.0 ** (round(2 * log2(distance)) / 2)
        if c not in self._laws:
            self._laws[c] = self._compose(c)
        return self._laws[c]

    def _compose(self, c: float) -> _Law:
        saddle = self.composition.saddle(c)
        level = exp(max(saddle.value - (c - 1) * saddle.slope, -600.0) - TINY)
        bounds = [_range(step, max(level / self.composition.steps, 1e-300)) for step, _ in self.composition.parts]
        reach = self._reach(c, bounds)
        spacing = self._spacing(2 * reach / self.points)
        size = 2 ** max(4, ceil(log2(2 * reach / spacing + 2)))
        transform, height, lost, moved = np.ones(size // 2 + 1, dtype=np.complex128), 0.0, 0.0, 0.0
        for (step, count), (low, high) in zip(self.composition.parts, bounds, strict=True):
            cells = _cells(step, spacing, low, high)
            circle, moment = _tilted(cells, spacing, c, size)
            transform *= rfft(circle) ** count
            height, moved = height + count * moment, moved + count * cells.moved
            lost += count * log1p(-min(cells.lost, 1 - EPS))
        first = round((saddle.slope - reach) / spacing)
        pmf = np.roll(irfft(transform, size), -first).clip(min=0.0)
        losses = (first + np.arange(size)) * spacing
        steps = self.composition.steps
        roundoff = EPS * (16 + 2 * steps) * float(pmf.max())
        wrapped = 4 * exp(-TINY) + 4 * steps * EPS
        return _Law(c, height, losses, pmf, spacing, -float(np.expm1(lost)), moved, roundoff, wrapped)

    def _reach(self, c: float, bounds: list[tuple[float, float]]) -> float:
        """Half the window around the tilted mean: all losses there are, or all but e^-41 (Chernoff)."""
        counts = [count for _, count in self.composition.parts]
        everything = sum(count * (high - low) for count, (low, high) in zip(counts, bounds, strict=True))
        saddle = self.composition.saddle(c)
        likely = self.composition.period(saddle.slope, saddle, self.composition.rivals(saddle, (-inf, inf)), TINY)
        widest = max(high - low for low, high in bounds)
        return max(min(everything, likely) if likely > 0 else everything, widest)

    def _spacing(self, wanted: float) -> float:
        """About `wanted`, such that the atoms of a step, where there are any, lie on the grid."""
        atoms = [step.largest_finite for step, _ in self.composition.parts if not step.smooth]
        atoms = [atom for atom in atoms if wanted < atom < inf]
        return atoms[0] / ceil(atoms[0] / wanted) if atoms else wanted


def _range(step: Step, failure: float) -> tuple[float, float]:
    """Losses of one step that matter: P exceeds the upper end, Q falls below the lower end at most so often."""
    back = step.reversed()
    high = step.largest_finite if step.largest_finite < inf else step.exceeded(failure)
    low = back.largest_finite if back.largest_finite < inf else back.exceeded(failure)
    return -low, high


def _tilted(cells: _Cells, spacing: float, c: float, size: int) -> tuple[Floats, float]:
    """The step's Q-masses times e^{c loss}, normalised, laid on a circle of `size` points; and the log of their sum."""
    index = cells.first + np.arange(cells.mass.size)
    logs = np.log(np.maximum(cells.mass, 1e-320)) + c * index * spacing
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    circle = np.zeros(size)
    np.add.at(circle, index % size, weights / total)
    return circle, top + log(total)
