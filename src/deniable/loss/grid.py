"""Compositions of any steps on a grid of losses, by FFT: the general fallback.

Guarantee. Every result is an upper bound. Each step's loss is moved to a grid so that a cell's mass goes to the
cell's two ends with P- and Q-mass both kept; the hockey-stick divergence, convex in e^k, is thereby replaced by its
chord ("connect the dots", Doroshenko et al. 2022), so the discrete pair dominates the true one, and dominance
survives composition. Mass above the grid is counted as P-mass at infinity, mass below it is rounded up.
Wrap-around of the FFT is bounded by Chernoff's inequality. The composition is tilted by e^{c L} before the
transform, so that round-off is relative to the tail that is asked for. The excess over the truth falls with the
square of the spacing; it is measured by doing the same on a grid of twice the spacing, whose excess is four times as
large, and reported (as the whole difference, three times the expected excess) in `error`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, inf, log2, sqrt

import numpy as np
from numpy.fft import irfft, rfft

from deniable.loss.pair import Pair
from deniable.loss.saddle import EPS, TINY, Composition, Weight
from deniable.loss.steps import Floats, Step
from deniable.loss.values import Upper

__all__ = ["Grid"]


@dataclass(frozen=True)
class _Cells:
    """One step on the grid: the loss `(first + j) * spacing` has Q-mass `mass[j]`; `lost` P-mass lies above."""

    first: int
    mass: Floats
    lost: float


def _cells(step: Step, spacing: float, low: float, high: float) -> _Cells:
    """The chord discretisation of one step on [low, high]."""
    first, last = int(np.floor(low / spacing)), int(np.ceil(high / spacing))
    edges = np.arange(first, last + 1) * spacing
    p, q = _between(step, edges), _null_between(step, edges)
    top, bottom = np.exp(edges[1:]), np.exp(edges[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        to_top = np.clip(np.where(q > 0, (p - q * bottom) / (top - bottom), 0.0), 0.0, q)
    mass = np.zeros(edges.size)
    mass[1:] += to_top
    mass[:-1] += q - to_top
    mass[0] += 1 - step.reversed().escape - float(step.null_tails(edges[:1])[0])
    return _Cells(first, mass, float(step.tails(edges[-1:])[0]))


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
    """The composed, tilted distribution on a window of the grid: Q-mass of loss_i is pmf_i e^{height - c loss_i}."""

    c: float
    height: float
    losses: Floats
    pmf: Floats
    lost: float  # P-mass counted at infinity
    roundoff: float  # absolute, of each pmf entry
    wrapped: float  # tilted mass that may have been folded into the window, or lost in the steps' round-off

    def above(self, k: float, shift: float, sloped: bool) -> tuple[float, float]:
        """Sum over losses above k of e^{shift * loss} Q-mass, times 1 - e^{k - loss} if `sloped`; and its error."""
        first = int(np.searchsorted(self.losses, k, side="right"))
        losses, pmf = self.losses[first:], self.pmf[first:]
        weight = np.exp(np.minimum(self.height - (self.c - shift) * losses, 700.0))
        if sloped:
            weight = weight * -np.expm1(k - losses)
        largest = float(weight.max(initial=0.0))
        return float(weight @ pmf), self.roundoff * float(weight.sum()) + self.wrapped * largest


@dataclass
class Grid(Pair):
    """A composition of any steps on a grid of losses."""

    composition: Composition
    points: int = 2**18
    _laws: dict[tuple[float, int], _Law] = field(default_factory=dict)
    method = "grid"

    def hockey_stick(self, k: float) -> Upper:
        return self._bounded(k, 1.0, sloped=True)

    def tail(self, t: float) -> Upper:
        return self._bounded(t, 1.0, sloped=False)

    def null_tail(self, t: float) -> Upper:
        return self._bounded(t, 0.0, sloped=False)

    def reversed(self) -> Grid:
        return self.mirror

    @cached_property
    def mirror(self) -> Grid:
        mirrored = Grid(self.composition.reversed(), self.points)
        mirrored.__dict__["mirror"] = self
        return mirrored

    @property
    def largest(self) -> float:
        return self.composition.largest

    @property
    def largest_finite(self) -> float:
        return self.composition.largest_finite

    @property
    def escape(self) -> float:
        return self.composition.escape

    def ceiling(self, k: float) -> float:
        return self.composition.ceiling(k)

    @property
    def scale(self) -> float:
        return self.composition.scale

    def _bounded(self, k: float, shift: float, sloped: bool) -> Upper:
        """The functional under P (shift 1) or Q (shift 0), an upper bound, and its excess from a coarser grid."""
        tilt = self._tilt(k, shift)
        laws = [self._law(tilt, points) for points in (self.points, self.points // 2)]
        (fine, error), (coarse, _) = (law.above(k, shift, sloped) for law in laws)
        lost = laws[0].lost if shift == 1.0 else 0.0
        top = min(fine + lost + error, 1.0)
        return Upper(top, min(top, abs(coarse - fine) + 2 * error))

    def _tilt(self, k: float, shift: float) -> float:
        """The saddle for k right of `shift`, on a ladder of half octaves so that neighbouring k share a transform."""
        if k <= (self.composition.mean if shift == 1.0 else self.composition.null_mean):
            return shift
        distance = self.composition.search(k, Weight((shift,), shift), (shift, inf)).c - shift
        return shift + 2.0 ** (round(2 * log2(distance)) / 2)

    def _law(self, c: float, points: int) -> _Law:
        if (c, points) not in self._laws:
            self._laws[c, points] = self._compose(c, points)
        return self._laws[c, points]

    def _compose(self, c: float, points: int) -> _Law:
        saddle = self.composition.saddle(c)
        reach = self.composition.period(saddle.slope, saddle, self.composition.rivals(saddle, (-inf, inf)))
        failure = max(exp(max(saddle.value - (c - 1) * saddle.slope, -600.0) - TINY) / self.composition.steps, 1e-300)
        bounds = [_range(step, failure) for step, _ in self.composition.parts]
        reach = max(reach, *(high - low for low, high in bounds))
        spacing = self._spacing(2 * reach / points)
        size = 2 ** ceil(log2(2 * reach / spacing))
        transform, height, lost = np.ones(size // 2 + 1, dtype=np.complex128), 0.0, 0.0
        for (step, count), (low, high) in zip(self.composition.parts, bounds, strict=True):
            cells = _cells(step, spacing, low, high)
            circle, moment = _tilted(cells, spacing, c, size)
            transform *= rfft(circle) ** count
            height += count * moment
            lost += count * cells.lost
        first = round((saddle.slope - reach) / spacing)
        pmf = np.roll(irfft(transform, size), -first).clip(min=0.0)
        losses = (first + np.arange(size)) * spacing
        steps = self.composition.steps
        roundoff = EPS * (16 + 2 * steps) * float(pmf.max())
        return _Law(c, height, losses, pmf, min(lost, 1.0), roundoff, 4 * exp(-TINY) + 4 * steps * EPS * sqrt(size))

    def _spacing(self, wanted: float) -> float:
        """About `wanted`, such that the atoms of the steps, where there are any, lie on this grid and on its half."""
        atoms = [
            step.largest for step, _ in self.composition.parts if not step.smooth and 2 * wanted < step.largest < inf
        ]
        return atoms[0] / (2 * ceil(atoms[0] / (2 * wanted))) if atoms else wanted


def _range(step: Step, failure: float) -> tuple[float, float]:
    """Losses of one step that matter: P exceeds the upper end, Q falls below the lower end with probability `failure`."""
    back = step.reversed()
    high = step.largest if step.largest < inf else _finite(step, failure)
    low = back.largest if back.largest < inf else _finite(back, failure)
    return -low, high


def _finite(step: Step, failure: float) -> float:
    """The loss exceeded with probability `failure`, leaving aside what lies at infinity."""
    return step.exceeded(min(failure + step.escape, 1.0) * (1 + 1e-9) if step.escape else failure)


def _tilted(cells: _Cells, spacing: float, c: float, size: int) -> tuple[Floats, float]:
    """The step's Q-masses times e^{c loss}, normalised, laid on a circle of `size` points; and the log of their sum."""
    index = cells.first + np.arange(cells.mass.size)
    with np.errstate(divide="ignore"):
        logs = np.log(cells.mass) + c * index * spacing
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    circle = np.bincount(index % size, weights / total, minlength=size)
    return circle, top + float(np.log(total))
