"""Compositions of any steps on a grid of losses, by FFT: for losses with atoms, which no Gaussian smooths.

Guarantee. Each step's loss L is moved at random to one of the two ends of its cell, so that a cell's mass keeps both
its P- and its Q-mass (E_Q[e^xi | cell] = 1 for the move xi).

- Upper ends (Lemma G1). The hockey-stick divergence, convex in e^k, is thereby replaced by its chord ("connect the
  dots", Doroshenko et al. 2022): the pair (e^loss Q_grid, Q_grid) dominates the true one, and dominance survives
  composition. A move that goes up a little too often, as round-off is granted here, only adds to it.
- Lower ends (Lemma G2). The move is a channel: it may be applied to both sides of the true pair, and no channel raises
  a divergence. So P'(loss > k) - e^k Q_grid(loss > k), where P' is the true P-law of the moved loss, is at most H(k).
  Both ends are second order in the spacing.
- Tails (Lemmas G3, G4). The moves of unlike steps are independent and bounded by the spacing; Bernstein's inequality
  bounds their sum by some a except with probability eta, hence P(L > t) <= P'(loss > t - a) + eta, and likewise from
  below and under Q. Since H is convex in e^k with slope -Q(L > k), its own two ends bound the tail, too; the better
  bound is taken.

Mass above the grid is counted as P-mass at infinity, mass below it is rounded up (Lemma G6). The composition is tilted
by e^{cL} before the transform, so that round-off is relative to the tail that is asked for; all sums run over losses
above k and are relative to e^{K(c) - (c - 1) k}, so that no loss is too large. Wrap-around of the FFT is bounded by
Chernoff's inequality for the law on the grid (Lemma G5). Atoms that lie on the grid do not move at all: there the
result is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, floor, inf, log, log1p, log2, sqrt

import numpy as np
from numpy.fft import irfft, rfft

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.composed import ComposedPair
from deniable.loss.effort import is_spent, spend
from deniable.loss.laws import NULL_TAIL, STICK, TAIL
from deniable.loss.quadrature import UnresolvedError, log_mixture
from deniable.loss.saddle import EPS, TINY, Composition, Weight
from deniable.loss.sampled import Added, Removed
from deniable.loss.steps import AtomStep, Step
from deniable.loss.values import Upper

__all__ = ["Grid"]

_MOST_POINTS = 2**21  # of one transform, where a lattice asks for them
_WORK = 2**22  # points times unlike steps that one composition may cost
_FEWEST_POINTS = 2**11
_QUICK_POINTS = 2**13  # to look around with, and where a question's effort is spent
_POINT_COST = 5  # exponentials that one point of one step is worth
_CLOSE = 1e-7  # relative error with which no law is asked for
_SMALLEST = 5e-324
_BLOCK = 512
_MOST_LAWS = 4  # kept at a time, some 16 MB each
_SMALL_LEVEL = 0.2  # below it a level is found from its saddle
_SUMMED = 2000 * EPS  # relative round-off of a sum over blocks
_MOST_EXPONENT = 650.0
_LEFT_OUT_NATS = 60.0  # e^-60 of a sum is left out, far below its round-off
_ON_GRID = 1e-9  # share of a cell within which an atom counts as lying on its edge
_LOSS_ROUNDOFF = 16 * EPS  # relative, of a step's losses


@dataclass(frozen=True)
class _Cells:
    """One step on the grid: logarithms of masses at the losses (first + j) * spacing."""

    first: int
    log_masses: Floats
    """Of P where the loss is at least 0, of Q where it is below: the other one is e^-loss or e^loss times it."""
    log_true: Floats
    """What truly arrives there under P, in the same unit."""
    lost: float
    """P-mass above the grid."""
    moved: float
    """Variance of the move, the larger of both under P and Q."""
    drift: float
    """How far round-off may have put a loss that counts as lying on the grid."""

    def tilted(self, logs: Floats, spacing: float, c: float) -> Floats:
        """Logarithms of Q-mass times e^{c loss}."""
        losses = (self.first + np.arange(logs.size)) * spacing
        return logs + (c - (losses >= 0)) * losses


def _cells(step: Step, spacing: float, low: float, high: float) -> _Cells:
    """The chord discretisation of one step on [low, high].

    An atom on an edge belongs to the cell below it. Round-off could place it above for one tail and below for another,
    so cells are cut a little above their edges; losses in between move by no more, which counts as drift.
    """
    if _is_atomic(step):
        return _cells_of_atoms(step, *_atoms(step), spacing)
    first, last = floor(low / spacing), floor(high / spacing) + 1
    edges = np.arange(first, last + 1) * spacing
    shift = 0.0 if step.smooth else max(_ON_GRID * spacing, _LOSS_ROUNDOFF * float(np.abs(edges[[0, -1]]).max()))
    cuts = edges + shift
    masses = _cell_masses(step, edges, cuts, spacing)
    ends, trues, drift = _halves(masses, edges[:-1], edges[1:], spacing)
    logs, log_true = (_joined(*part) for part in (ends, trues))
    back = step.reversed()
    with np.errstate(divide="ignore"):
        below, unit = float(np.log(back.tails(-cuts[:1]) - back.escape)[0]), max(float(edges[0]), 0.0)
    logs[0] = np.logaddexp(logs[0], below + unit)
    log_true[0] = np.logaddexp(log_true[0], float(back.log_null_tails(-cuts[:1])[0]) - float(edges[0]) + unit)
    moved = 2 * _variance(masses, spacing)  # the move's own variance, and the loss's within its cell (Lemma G3)
    return _Cells(first, logs, log_true, float(step.tails(cuts[-1:])[0]), moved, drift + shift)


def _cells_of_atoms(step: Step, losses: Floats, log_null: Floats, spacing: float) -> _Cells:
    """The same of a few losses, each moved by itself."""
    places = np.ceil(losses / spacing - _ON_GRID) - 1
    first, lower = int(places.min()), places * spacing
    with np.errstate(over="ignore"):
        p, q = np.exp(log_null + losses), np.exp(log_null)
    log_base = np.where(lower >= 0, log_null + losses, log_null)
    masses = _Masses(p, q, log_base, losses - lower, 4 * EPS * np.abs(losses))
    ends, trues, drift = _halves(masses, lower, (places + 1) * spacing, spacing)
    index = (places - first).astype(np.int64)
    logs, log_true = np.full((2, int(index.max()) + 2), -inf)
    for found, (at_lower, at_upper) in ((logs, ends), (log_true, trues)):
        np.logaddexp.at(found, index, at_lower)
        np.logaddexp.at(found, index + 1, at_upper)
    return _Cells(first, logs, log_true, step.escape, _variance(masses, spacing), drift)


def _atoms(step: Step) -> tuple[Floats, Floats]:
    """Finite losses of a step that has a few, and the logarithms of their Q-masses."""
    if isinstance(step, Added):
        losses, log_null = _atoms(step.mirror)
        return -losses, log_null + losses
    if isinstance(step, Removed):
        losses, log_null = _atoms(step.base)
        hidden = step.base.escape  # of Q where the base's loss is -inf
        losses = log_mixture(step.rate, losses).real
        if hidden == 0:
            return losses, log_null
        return np.append(losses, log1p(-step.rate)), np.append(log_null, log(hidden))
    assert isinstance(step, AtomStep)
    return step.losses, step.log_null_masses


Ends = tuple[Floats, Floats]


def _halves(masses: _Masses, lower: Floats, upper: Floats, spacing: float) -> tuple[Ends, Ends, float]:
    """Logarithms of what goes to the lower and the upper end: what dominates, what truly goes; and the drift."""
    least, most, drift = _rises(masses, spacing)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        up = lower >= 0
        top = _null_share(most, spacing)
        own_top = np.where(up, np.expm1(-most) / np.expm1(-spacing), top)
        true = masses.log_base + np.where(up, 0.0, least)
        # an end at or above 0 has the unit P, one below it Q; only the upper end of the cell below 0 changes its unit
        turned = np.where(up | (upper < 0), 0.0, upper)
        ends = masses.log_base + np.log(1 - own_top), masses.log_base + np.log(own_top) + turned
        trues = true + np.log(1 - top), true + np.log(top) - np.where(up, 0.0, spacing) + turned
    return ends, trues, drift


def _null_share(rise: Floats, spacing: float) -> Floats:
    """The share of a cell's Q-mass that goes to its upper end."""
    return np.where(rise < spacing, np.exp(rise - spacing) * np.expm1(-rise) / np.expm1(-spacing), 1.0)


def _variance(masses: _Masses, spacing: float) -> float:
    """Of the move, the larger of both under P and Q: P weighs a cell's upper end up to e^spacing times as much.

    Where the spacing is above 1, a loss may vary in its cell under P by another such factor (Lemma G3).
    """
    top = _null_share(_rises(masses, spacing)[1], spacing)
    variance = top * (1 - top) * spacing**2 * exp(min(spacing if spacing <= 1 else 2 * spacing, 600.0))
    return max(float((masses.p * variance).sum()), float((masses.q * variance).sum()))


def _joined(lower: Floats, upper: Floats) -> Floats:
    """Logarithms of the masses at all edges from those at both ends of every cell."""
    return np.asarray(np.logaddexp(np.append(lower, -inf), np.append(-inf, upper)))


@dataclass(frozen=True)
class _Masses:
    """Of every cell: P- and Q-mass, the loss between them above the cell's lower edge, and that loss's round-off."""

    p: Floats
    q: Floats
    log_base: Floats
    """Of the P-mass where the lower edge is at least 0, else of the Q-mass."""
    rise: Floats
    doubt: Floats


def _cell_masses(step: Step, edges: Floats, cuts: Floats, spacing: float) -> _Masses:
    """Masses of the cells (cut_j, cut_j+1], with relative accuracy where they lie far out."""
    back = step.reversed()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p, p_doubt = _between(step.tails(cuts), back.null_tails(-cuts))
        q, q_doubt = _between(step.null_tails(cuts), back.tails(-cuts) - back.escape)
        log_q, log_q_doubt = _log_between(step.log_null_tails(cuts))
        log_p, log_p_doubt = _log_between(back.log_null_tails(-cuts)[::-1])
        log_p, log_p_doubt = log_p[::-1], log_p_doubt[::-1]
        up = edges[:-1] >= 0
        rise = np.where(up, np.log(p) - log_q, log_p - np.log(q)) - edges[:-1]
        doubt = np.where(up, p_doubt + log_q_doubt, q_doubt + log_p_doubt) + 4 * EPS * np.abs(edges[:-1])
        log_base = np.log(np.where(up, p, q))
        some = log_base > -inf
    rise, doubt = np.where(some & np.isfinite(rise), rise, 0.0), np.where(some & np.isfinite(doubt), doubt, spacing)
    return _Masses(p, q, log_base, rise, doubt)


def _between(above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """Mass of every cell, by whichever tail is the smaller one, and its relative round-off."""
    lower = below[1:] < above[:-1]
    mass = np.where(lower, np.diff(below), above[:-1] - above[1:]).clip(min=0.0)
    return mass, 8 * EPS * np.where(lower, below[1:], above[:-1]) / mass


def _log_between(log_above: Floats) -> tuple[Floats, Floats]:
    """The same in logarithms, from the upper tail's."""
    lost = -np.expm1(np.minimum(log_above[1:] - log_above[:-1], 0.0))
    return log_above[:-1] + np.log(lost), 4 * EPS * (2 + np.abs(log_above[:-1])) / lost


def _rises(masses: _Masses, spacing: float) -> tuple[Floats, Floats, float]:
    """Lower and upper bounds of the rise, nearly 0 or a cell taken for it, and how far round-off may move losses."""
    least, most = (np.clip(masses.rise + sign * masses.doubt, 0.0, spacing) for sign in (-1, 1))
    apart = np.clip(masses.rise, 0.0, spacing)
    snapped = np.where(apart < 0.5 * spacing, 0.0, spacing)
    near = np.abs(masses.rise - snapped) <= _ON_GRID * spacing
    some = (masses.p > 0) | (masses.q > 0)
    drift = float(np.where(near & some, np.abs(masses.rise - snapped) + masses.doubt, 0.0).max(initial=0.0))
    least, most = np.where(near, snapped, least), np.where(near, snapped, most)
    drift += max(float((mass * (most - least)).sum()) for mass in (masses.p, masses.q))  # mass that was moved up
    return least, most, min(drift, spacing)


class _Suffixes:
    """Sums of an array from any place to its end, block by block: little round-off, and no cost a question."""

    def __init__(self, array: Floats) -> None:
        blocks = -(-array.size // _BLOCK)
        self._padded = np.zeros((blocks, _BLOCK))
        self._padded.ravel()[: array.size] = array
        self._beyond = np.append(np.cumsum(self._padded.sum(1)[::-1])[::-1], 0.0)

    def total(self, first: int) -> float:
        block, place = divmod(first, _BLOCK)
        if block >= len(self._padded):
            return 0.0
        return float(self._padded[block, place:].sum() + self._beyond[block + 1])


@dataclass(frozen=True)
class _Law:
    """The composition on the grid, tilted by e^{cL}: Q-mass of loss_i is pmf_i e^{height - c loss_i}."""

    c: float
    height: float
    losses: Floats
    pmf: Floats
    true: Floats
    """What truly arrives under P, divided by e^loss, in the unit of `pmf`."""
    spacing: float
    lost: float
    """P-mass counted at infinity."""
    escape: float
    """P-mass that is truly there."""
    moved: float
    """Variance of all moves together."""
    drift: float
    """How far round-off may have put losses that count as lying on the grid, all steps together."""
    roundoff: float
    """Absolute, of each pmf entry."""
    wrapped: float
    """Tilted mass that may have been folded into the window, or lost in the steps' round-off."""
    cut_below: bool
    """Whether there are losses below the window."""

    def _misses(self, k: float, shift: float) -> bool:
        """Whether losses above k lie below the window, where the tilt has left next to nothing of much (Lemma G5)."""
        return self.cut_below and self.c > shift and k < float(self.losses[0])

    @cached_property
    def _middle(self) -> float:
        return float(self.losses[self.losses.size // 2])

    @cached_property
    def _suffixes(self) -> dict[tuple[str, float], _Suffixes]:
        return {}

    def _array(self, name: str) -> Floats:
        return np.ones_like(self.pmf) if name == "ones" else np.asarray(getattr(self, name))

    def _weighted(self, name: str, first: int, origin: float, shift: float) -> float:
        """Sum of an array times e^{-(c - shift)(loss - origin)} from `first` on; `origin` lies in the window."""
        rate = self.c - shift
        if rate * (self._middle - float(self.losses[0])) > _MOST_EXPONENT:  # weights fall fast: few of them matter
            part = slice(first, first + ceil(_LEFT_OUT_NATS / (rate * self.spacing)) + 1)
            return float((self._array(name)[part] * np.exp(-rate * np.maximum(self.losses[part] - origin, 0.0))).sum())
        if (name, shift) not in self._suffixes:
            weights = np.exp(-rate * (self.losses - self._middle))
            self._suffixes[name, shift] = _Suffixes(self._array(name) * weights)
        return self._suffixes[name, shift].total(first) * exp(rate * (origin - self._middle))

    def _above(self, k: float) -> tuple[int, float]:
        """The first point above k, and where in the window the weights are 1."""
        first = int(np.searchsorted(self.losses, k, side="right"))
        return first, min(max(k, float(self.losses[0])), float(self.losses[-1]))

    def _error(self, first: int, origin: float, shift: float) -> float:
        """Of a sum of the pmf from `first` on."""
        return self.roundoff * self._weighted("ones", first, origin, shift) + self.wrapped

    def stick(self, k: float) -> tuple[float, float]:
        """Lower and upper end of the divergence at k, of finite losses."""
        first, origin = self._above(k)
        growth = exp(min(k - origin, 0.0))
        p, true = (self._weighted(name, first, origin, 1.0) for name in ("pmf", "true"))
        q = growth * self._weighted("pmf", first, origin, 0.0)
        error = self._error(first, origin, 1.0) + growth * self._error(first, origin, 0.0)
        slip = (self.drift + _SUMMED + 4 * EPS * (abs(k) + self.spacing)) * p + error
        height = _bounded_exp(self.height - (self.c - 1) * origin)
        most = inf if self._misses(k, 1.0) else height * (max(p - q, 0.0) + slip)
        return max(height * (true - q - slip), 0.0), most

    def tail(self, t: float, shift: float) -> tuple[float, float]:
        """Lower and upper end of P(L > t) (shift 1) or Q(L > t) (shift 0), of finite losses."""
        eta = 1e-9 * max(self._mass(t, shift, "pmf")[0], 1e-300)
        move = self._reach(eta) + 4 * EPS * abs(t)  # an atom that round-off cannot tell from t counts for the upper end
        low, high = self._mass(t + move, shift, "true" if shift else "pmf"), self._mass(t - move, shift, "pmf")
        eta = eta if self.moved > 0 else 0.0
        most = inf if self._misses(t - move, shift) else high[0] + high[1] + eta
        return max(low[0] - low[1] - eta, 0.0), most

    def _mass(self, t: float, shift: float, name: str) -> tuple[float, float]:
        """Mass above t under P or Q and its error; what truly arrives under P, or what dominates it."""
        first, origin = self._above(t)
        total, height = (
            self._weighted(name, first, origin, shift),
            _bounded_exp(self.height - (self.c - shift) * origin),
        )
        return height * total, height * (self._error(first, origin, shift) + _SUMMED * total)

    def _reach(self, eta: float) -> float:
        """How far the moves may have carried the loss, except with probability eta (Bernstein)."""
        if self.moved == 0:
            return self.drift
        nats = log(1 / min(eta, 0.5))
        return self.drift + self.moved + sqrt(2 * self.moved * nats) + self.spacing * nats

    def slope(self, t: float) -> tuple[float, float]:
        """Lower and upper end of e^t Q(L > t) from those of the divergence around t, which is convex in e^t."""
        ends, move = [(0.0, inf)], sqrt(self.moved)
        here = self.stick(t)
        for width in (2 * move, 6 * move, 20 * move):
            before, after = self.stick(t - width), self.stick(t + width)
            rise = -np.expm1(-width)
            ends.append(((here[0] - after[1]) / np.expm1(min(width, 700.0)), (before[1] - here[0]) / rise))
        return max(low for low, _ in ends), min(high for _, high in ends)


def _bounded_exp(x: float) -> float:
    """e^x; at most about 1e304, which no probability needs."""
    return exp(min(x, 700.0))


@dataclass(frozen=True)
class _Spread(Composition):
    """A composition whose spread is the largest of three: half-way between Q and P an atom may hide all others."""

    @cached_property
    def scale(self) -> float:
        return max([super().scale, *(sqrt(saddle.bend) for saddle in self.saddles([0.0, 1.0]) if saddle.value < inf)])


@dataclass
class Grid(ComposedPair):
    """A composition of any steps on a grid of losses."""

    composition: Composition
    points: int = 2**18
    _laws: dict[tuple[float, int], _Law] = field(default_factory=dict, repr=False, compare=False)
    method = "grid"

    def __post_init__(self) -> None:
        self.composition = _Spread(self.composition.parts)

    def hockey_stick(self, k: float) -> Upper:
        if k >= self.largest_finite:
            return Upper(self.escape)
        if (single := self.by_single_steps(k, stick=True, null=False)) and single.error <= _CLOSE * single:
            return single
        law = self._law(k, 1.0)
        least, most = law.stick(k)
        most = min(most + law.lost, self.most_variation if k >= 0 else 1.0)
        return self._between(max(least + law.escape, -np.expm1(min(k, 0.0))), most)

    def tail(self, t: float) -> Upper:
        if t >= self.largest_finite or t == -inf:
            return Upper(self.escape if t > -inf else 1.0)
        if (single := self.by_single_steps(t, stick=False, null=False)) and single.error <= _CLOSE * single:
            return single
        law = self._law(t, 1.0)
        least, most = law.tail(t, 1.0)
        if law.moved > 0:
            stick, slope = law.stick(t), law.slope(t)
            least, most = max(least, stick[0] + slope[0]), min(most, stick[1] + slope[1])
        return self._between(least + law.escape, most + law.lost)

    def null_tail(self, t: float) -> Upper:
        if t >= self.largest_finite or t == -inf:
            return Upper(0.0 if t > -inf else 1 - self.mirror.escape)
        return self._between(*self._law(t, 0.0).tail(t, 0.0))

    @staticmethod
    def _between(least: float, most: float) -> Upper:
        most = min(max(most * (1 + 4 * EPS), _SMALLEST), 1.0)
        return Upper.between(min(max(least * (1 - 4 * EPS), 0.0), most), most)

    def reversed(self) -> Grid:
        return self.mirror

    @cached_property
    def mirror(self) -> Grid:
        mirrored = Grid(self.composition.reversed(), self.points)
        mirrored.__dict__["mirror"] = self
        return mirrored

    def near(self, functional: Callable[[float], Upper], level: float) -> tuple[float, float]:
        """By the saddle-point approximation where the level is small, so that few laws are needed."""
        weight = {"hockey_stick": STICK, "tail": TAIL, "null_tail": NULL_TAIL}[functional.__name__]
        if level < _SMALL_LEVEL:
            try:
                guess = self.composition.level_saddle(level, weight).target(weight)
                return min(max(guess, self.least), self.largest_finite), 0.1 * self.scale
            except UnresolvedError:
                pass
        mean = self.composition.null_mean if weight is NULL_TAIL else self.composition.mean
        return min(max(mean, self.least), self.largest_finite), self.scale / 2

    def _law(self, k: float, least: float) -> _Law:
        """The composition tilted to the saddle for k right of `least`; near-by k share one, on octaves."""
        c = least
        if k > (self.composition.mean if least == 1.0 else self.composition.null_mean):
            try:
                distance = self.composition.search(k, Weight((least,), least), (least, inf)).c - least
                c = least + 2.0 ** round(log2(distance))
            except UnresolvedError:
                c = least
        points = min(self.points, _QUICK_POINTS) if is_spent() else self.points
        if (c, self.points) in self._laws:
            points = self.points
        if (c, points) not in self._laws:
            while len(self._laws) >= _MOST_LAWS:
                self._laws.pop(next(iter(self._laws)))
            self._laws[c, points] = self._compose(c, points)
        return self._laws[c, points]

    def rough(self) -> Grid | None:
        """The same on fewer points."""
        return Grid(self.composition, _QUICK_POINTS) if self.points > _QUICK_POINTS else None

    def _compose(self, c: float, points: int) -> _Law:
        bounds = self._bounds(c)
        low, high = self._window(c, bounds)
        spacing = self._spacing(high - low, points)
        first = floor(low / spacing)
        size = 2 ** max(4, ceil(log2(high / spacing - first + 3)))
        spend(_POINT_COST * size * len(self.composition.parts))
        cells = [_cells(step, spacing, *ends) for (step, _), ends in zip(self.composition.parts, bounds, strict=True)]
        return _Composed(self.composition, cells, c, spacing, size, first).law()

    def _bounds(self, c: float) -> list[tuple[float, float]]:
        """The least and the largest loss of every step that matters."""
        saddle = self.composition.saddle(c)
        level = exp(max(min(saddle.value - (c - 1) * saddle.slope, 0.0), -600.0) - TINY)
        return [_range(step, max(level / self.composition.steps, 1e-300)) for step, _ in self.composition.parts]

    def _window(self, c: float, bounds: list[tuple[float, float]]) -> tuple[float, float]:
        """Its ends: all losses there are, or about all but e^-41 around the tilted mean (Chernoff)."""
        counts = [count for _, count in self.composition.parts]
        low, high = (sum(n * ends[side] for n, ends in zip(counts, bounds, strict=True)) for side in (0, 1))
        saddle = self.composition.saddle(c)
        if not low <= saddle.slope <= high:  # nor where it is infinite
            return low, high
        likely = self.composition.period(saddle.slope, saddle, self.composition.rivals(saddle, (-inf, inf)), TINY)
        reach = max(likely if likely > 0 else inf, *(end - start for start, end in bounds))
        return max(low, saddle.slope - reach), min(high, saddle.slope + reach)

    def _spacing(self, width: float, most: int) -> float:
        """So fine that the points suffice, and such that the atoms of the most frequent step lie on the grid."""
        parts = self.composition.parts
        points = max(min(most, _WORK // len(parts)), _FEWEST_POINTS)
        wanted = max(width / (0.97 * points - 4), 1e-300)
        atoms = [(n, step.largest_finite) for step, n in parts if not step.smooth and 0 < step.largest_finite < inf]
        if not atoms:
            return wanted
        atom = max(atoms)[1]
        if width / atom < _MOST_POINTS:
            if all(isinstance(step, AtomStep) and step.epsilon in (0.0, atom) for step, _ in parts):
                return atom  # all losses are on one lattice
            if len(parts) == 1 and _is_atomic(parts[0][0]):
                wanted = min(wanted, atom)
        return atom / ceil(atom / wanted * (1 - EPS)) if wanted <= atom else wanted


@dataclass(frozen=True)
class _Composed:
    """Steps on one grid, tilted by e^{cL} and convolved on a circle of `size` points from `first` on."""

    composition: Composition
    cells: list[_Cells]
    c: float
    spacing: float
    size: int
    first: int

    def law(self) -> _Law:
        counts = [count for _, count in self.composition.parts]
        pmf, height = self._convolved([cells.log_masses for cells in self.cells])
        steps = self.composition.steps
        moves = any(cells.moved > 0 for cells in self.cells)
        true, true_height = self._convolved([cells.log_true for cells in self.cells]) if moves else (pmf, height)
        lost = sum(n * log1p(-min(cells.lost, 1 - EPS)) for cells, n in zip(self.cells, counts, strict=True))
        moved, drift = (
            sum(n * getattr(cells, name) for cells, n in zip(self.cells, counts, strict=True))
            for name in ("moved", "drift")
        )
        roundoff = EPS * (16 + 4 * steps) * float(pmf.max())
        wrapped = self._folded(height) + 4 * steps * EPS
        losses = (self.first + np.arange(self.size)) * self.spacing
        same = true_height - height
        return _Law(
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
            self._ends[0] < self.first,
        )

    def _convolved(self, logs: list[Floats]) -> tuple[Floats, float]:
        """The normalised tilted law on the window, and the logarithm of what it was divided by."""
        transform, height = np.ones(self.size // 2 + 1, dtype=np.complex128), 0.0
        for cells, log_masses, (_, count) in zip(self.cells, logs, self.composition.parts, strict=True):
            tilted = cells.tilted(log_masses, self.spacing, self.c)
            top = float(tilted.max())
            weights = np.exp(tilted - top)
            total = float(weights.sum())
            place = (cells.first + np.arange(weights.size)) % self.size
            transform *= _power(rfft(np.bincount(place, weights / total, self.size)), count)
            height += count * (top + log(total))
        return np.roll(irfft(transform, self.size), -(self.first % self.size)).clip(min=0.0), height

    @property
    def _ends(self) -> tuple[int, int]:
        """The least and the largest loss that all steps may have together, in cells."""
        ends = [(cells.first, cells.first + cells.log_masses.size - 1) for cells in self.cells]
        counts = [count for _, count in self.composition.parts]
        low, high = (sum(n * end[side] for n, end in zip(counts, ends, strict=True)) for side in (0, 1))
        return low, high

    def _folded(self, height: float) -> float:
        """Chernoff's bound on the share of the tilted mass outside of the window."""
        low, high = self._ends
        folded = 0.0
        if low < self.first:
            folded += self._beyond(height, self.first * self.spacing)
        if high >= self.first + self.size:
            folded += self._beyond(height, (self.first + self.size) * self.spacing)
        return folded

    def _beyond(self, height: float, end: float) -> float:
        """The least e^{K(c') - K(c) - (c' - c) end} of a few c' on that side, on the scale of the window."""
        middle = (self.first + self.size / 2) * self.spacing
        logs = []
        for share in (1.0, 1.5, 2.0, 3.0, 5.0):
            other = self.c + share * TINY / (end - middle)
            moment = sum(
                n * _log_sum(cells.tilted(cells.log_masses, self.spacing, other))
                for cells, (_, n) in zip(self.cells, self.composition.parts, strict=True)
            )
            logs.append(moment - height - (other - self.c) * end)
        return exp(min(*logs, 0.0))


def _is_atomic(step: Step) -> bool:
    """Whether the loss takes a few values only."""
    base = step.mirror.base if isinstance(step, Added) else step.base if isinstance(step, Removed) else step
    return isinstance(base, AtomStep)


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


def _range(step: Step, failure: float) -> tuple[float, float]:
    """Losses of one step that matter: P exceeds the upper end, Q falls below the lower end at most so often."""
    back = step.reversed()
    high = step.largest_finite if step.largest_finite < inf else float(step.exceeded(failure))
    low = back.largest_finite if back.largest_finite < inf else float(back.exceeded(failure))
    return -low, high
