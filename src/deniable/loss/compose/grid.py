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

Where steps are so many that a grid's cells blur the sum, a bracket comes from the normal law (Lemma G7): the law tilted
to the saddle is nearly normal, and the theorem of Berry and Esseen says how nearly: proved, at the cost of one moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, erf, exp, floor, inf, log, log2, nan, sqrt

import numpy as np
from scipy.special import log_ndtr

from deniable.effort import UnresolvedError, left_effort, spend
from deniable.loss.arrays import EPS
from deniable.loss.compose.cells import Cells, is_atomic, put_on_grid
from deniable.loss.compose.composed_pair import Chernoff, ComposedPair
from deniable.loss.compose.cumulants import (
    AXIS_SLACK_NATS,
    TINY,
    Composition,
    Saddle,
    find_level_saddle,
    find_period,
    find_rivals,
    find_saddle,
)
from deniable.loss.compose.transform import GridComposition, GridLaw
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.masses import MassStep
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional
from deniable.loss.pairs.step import Step
from deniable.upper import Upper

_BERRY_ESSEEN = 0.56  # for sums of unlike variables (Shevtsova 2010)
_ROUNDINGS = 16.0  # of a step's mean, relative to its largest loss
_VARIANCE_SLACK = 1e-9  # relative
_USEFUL = 0.1  # distance from the normal law, from which on nothing is learnt


def normal_bracket(law: Composition, functional: Functional, k: float) -> Upper:
    """The functional at k; from 0 to 1 where the losses are not bounded or too few."""
    nothing = Upper(1.0, 1.0)
    largest = max(_largest(law), _largest(law.reverse()))
    if inf in (largest, k):
        return nothing
    try:
        saddle = _saddle(law, functional, k)
    except UnresolvedError:
        return nothing
    spread = sqrt(saddle.bend)
    apart = _BERRY_ESSEEN * 2 * largest / spread + _VARIANCE_SLACK + _ROUNDINGS * EPS * law.steps * largest / spread
    if saddle.value == inf or not apart < _USEFUL:
        return nothing
    middle, error = _normal(saddle, functional, k, apart)
    a = saddle.c - functional.shift
    slack = float(law.roundoff(saddle)) + AXIS_SLACK_NATS + 4 * EPS * (a * a * saddle.bend + abs(a * k))
    height = saddle.value - a * k
    least, most = (exp(min(height + sign * slack, 700.0)) * max(middle + sign * error, 0.0) for sign in (-1, 1))
    escape = law.escape if functional.shift else 0.0
    most = min(most + escape, 1.0)
    return Upper.between(min(least + escape * (1 - 1e-12), most), most)


def _largest(law: Composition) -> float:
    """The largest finite loss of a single step, 0 at least."""
    return max(0.0, *(step.largest_finite for step, _ in law.parts))


def _saddle(law: Composition, functional: Functional, k: float) -> Saddle:
    """Right of the pole of P or Q that the functional counts, or on it."""
    tail = TAIL if functional is STICK else functional
    (pole,) = tail.poles
    if k <= law.mean_under(tail):
        return law.saddle(pole)
    return find_saddle(law, tail, k, (pole, inf))


def _normal(saddle: Saddle, functional: Functional, k: float, apart: float) -> tuple[float, float]:
    """E[g(L - k); L > k] of the tilted law as if it were normal, and the error: its distance times g's variation.

    g is e^{-a y}, and e^{-a y} - e^{-(a + 1) y} for a divergence, with a the distance of the saddle from the pole.
    """
    a = saddle.c - functional.shift
    middle, variation = _damped_tail(saddle, k, a), 2.0 if a > 0 else 1.0
    if functional is STICK:
        top = exp(a * log(a) - (a + 1) * log(a + 1)) if a > 0 else 1.0
        middle, variation = middle - _damped_tail(saddle, k, a + 1), 2 * top if a > 0 else 1.0
    return middle, variation * apart


def _damped_tail(saddle: Saddle, k: float, a: float) -> float:
    """E[e^{-a (L - k)}; L > k] of a normal law with the saddle's mean and variance."""
    ahead, spread = saddle.slope - k, sqrt(saddle.bend)
    if a == 0:
        return 0.5 * (1 + erf(ahead / spread / sqrt(2)))
    return exp(min(a * (a * saddle.bend / 2 - ahead) + float(log_ndtr(ahead / spread - a * spread)), 0.0))


_MOST_POINTS = 2**21  # of one transform, where a lattice asks for them
_WORK = 2**22  # points times unlike steps that one composition may cost
_FEWEST_POINTS = 2**11
_QUICK_POINTS = 2**13  # to look around with, and where a question's effort is spent
_POINT_COST = 5  # exponentials that one point of one step is worth
_CLOSE = 1e-7  # relative error with which no law is asked for
_LOOSE = 1e-3  # relative error from which on other bounds may say more
_SMALLEST = 5e-324
_MOST_LAWS = 4  # kept at a time, some 16 MB each
_MOST_SPREAD = 100.0  # variance of a tilted law over that of one tilted half as much
_LEAST_TILT = 1e-3
_LITTLE = 0.01  # share of the points by which a window may be longer so that nothing lies below it
_SMALL_LEVEL = 0.2  # below it a level is found from its saddle


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
    _laws: dict[tuple[float, int], GridLaw | None] = field(default_factory=dict, repr=False, compare=False)
    method = "grid"

    def __post_init__(self) -> None:
        self.composition = _Spread(self.composition.parts)

    def hockey_stick(self, k: float) -> Upper:
        if k >= self.largest_finite:
            return self.doubt_escape(Upper(self.escape))
        if (single := self.by_single_steps(STICK, k)) and single.error <= _CLOSE * single:
            return single
        if (law := self._law(TAIL, k)) is None:
            return self._tighten_bracket(STICK, k, Upper(1.0, 1.0))
        least, most = law.stick(k)
        most = min(most + law.lost, self.most_variation if k >= 0 else 1.0)
        found = self.doubt_escape(self._between(max(least + law.escape, -np.expm1(min(k, 0.0))), most))
        return self._tighten_bracket(STICK, k, found)

    def tail(self, t: float) -> Upper:
        if t >= self.largest_finite or t == -inf:
            return self.doubt_escape(Upper(self.escape)) if t > -inf else Upper(1.0)
        if (single := self.by_single_steps(TAIL, t)) and single.error <= _CLOSE * single:
            return single
        if (law := self._law(TAIL, t)) is None:
            return self._tighten_bracket(TAIL, t, Upper(1.0, 1.0))
        least, most = law.tail(t, 1.0)
        if law.moved > 0:
            stick, slope = law.stick(t), law.slope(t)
            least, most = max(least, stick[0] + slope[0]), min(most, stick[1] + slope[1])
        return self._tighten_bracket(TAIL, t, self.doubt_escape(self._between(least + law.escape, most + law.lost)))

    def null_tail(self, t: float) -> Upper:
        if t >= self.largest_finite or t == -inf:
            return Upper(0.0 if t > -inf else 1 - self.mirror.escape)
        if (law := self._law(NULL_TAIL, t)) is None:
            return self._tighten_bracket(NULL_TAIL, t, Upper(1.0, 1.0))
        least, most = law.tail(t, 0.0)
        most += law.lost * exp(-max(t, 0.0))  # Q is at most e^-t P where L > t
        return self._tighten_bracket(NULL_TAIL, t, self._between(least, most))

    def _tighten_bracket(self, functional: Functional, k: float, found: Upper) -> Upper:
        """What single steps and Chernoff's bound leave of a loose bracket."""
        if found.error <= _LOOSE * found:
            return found
        found = found.meet(Upper(ceiling := self._chernoff.ceiling(functional, k), ceiling))
        found = found.meet(normal_bracket(self.composition, functional, k))
        return found if k < 0 else found.meet(self.bracket_by_steps(functional, k))

    @cached_property
    def _chernoff(self) -> Chernoff:
        return Chernoff(self.composition)

    @staticmethod
    def _between(least: float, most: float) -> Upper:
        """Nothing is known from below where the lower end is above the upper one by more than round-off."""
        least = least if least <= most * (1 + _CLOSE) else 0.0
        most = min(max(most * (1 + 4 * EPS), _SMALLEST), 1.0)
        return Upper.between(min(max(least * (1 - 4 * EPS), 0.0), most), most)

    def _exchange_sides(self) -> Grid:
        return Grid(self.composition.reverse(), self.points)

    def near(self, functional: Functional, level: float) -> tuple[float, float]:
        """By the saddle-point approximation where the level is small, so that few laws are needed."""
        if level < _SMALL_LEVEL:
            try:
                guess = find_level_saddle(self.composition, functional, level).target(functional)
                return min(max(guess, self.least), self.largest_finite), 0.1 * self.scale
            except UnresolvedError:
                pass
        return min(max(self.composition.mean_under(functional), self.least), self.largest_finite), self.scale / 2

    def _law(self, tail: Functional, k: float) -> GridLaw | None:
        """The composition tilted to the saddle for k right of the tail's pole; near-by k share one, on octaves.

        None where losses are beyond what a grid can hold.
        """
        c = self._tilt(tail, k)
        points = max([self._affordable_points(), *(known for at, known in self._laws if at == c)])
        if (c, points) not in self._laws:
            while len(self._laws) >= _MOST_LAWS:
                self._laws.pop(next(iter(self._laws)))
            try:
                self._laws[c, points] = self._compose(c, points)
            except (ArithmeticError, ValueError):
                self._laws[c, points] = None
        return self._laws[c, points]

    def _affordable_points(self) -> int:
        """As many as half of the effort pays for, by halves; a few in any case."""
        point = _POINT_COST * sum(step.tail_cost for step, _ in self.composition.parts)
        points = self.points
        while points > _QUICK_POINTS and 2 * points * point > left_effort():
            points //= 2
        return points

    def _tilt(self, tail: Functional, k: float) -> float:
        """The tail's pole plus a power of two, the one near the saddle or, where K cannot be had there, half of it."""
        (pole,) = tail.poles
        if k <= self.composition.mean_under(tail):
            return pole
        try:
            c = pole + 2.0 ** round(log2(find_saddle(self.composition, tail, k, (pole, inf)).c - pole))
        except UnresolvedError:
            return pole
        lower = (c + pole) / 2
        while self._spreads(c, lower):
            c, lower = lower, (lower + pole) / 2
        return c

    def _spreads(self, c: float, lower: float) -> bool:
        """Whether the tilt c, unlike a lower one, brings out rare losses so large that no grid is fine enough."""
        high, low = self.composition.saddles([c, lower])
        return high.value == inf or (c - lower > _LEAST_TILT and high.bend > _MOST_SPREAD * low.bend)

    def with_fewer_points(self) -> Grid | None:
        """To look around with; None where there are few already."""
        return Grid(self.composition, _QUICK_POINTS) if self.points > _QUICK_POINTS else None

    def _compose(self, c: float, points: int) -> GridLaw:
        bounds = self._bounds(c)
        low, high = self._window(c, bounds)
        spacing = self._spacing(high - low, points)
        cells = [
            put_on_grid(step, spacing, *ends) for (step, _), ends in zip(self.composition.parts, bounds, strict=True)
        ]
        first = self._first_point(cells, floor(low / spacing), points)
        size = 2 ** max(4, ceil(log2(high / spacing - first + 3)))
        spend(_POINT_COST * size * len(self.composition.parts))
        return GridComposition(self.composition, cells, c, spacing, size, first).law()

    def _first_point(self, cells: list[Cells], wanted: int, points: int) -> int:
        """Of the window: the least loss of all steps, in cells, if that is but little below what is wanted."""
        least = sum(count * cell.first for cell, (_, count) in zip(cells, self.composition.parts, strict=True))
        return least if wanted - _LITTLE * points <= least < wanted else wanted

    def _bounds(self, c: float) -> list[tuple[float, float]]:
        """The least and the largest loss of every step that matters."""
        saddle = self.composition.saddle(c)
        height = saddle.value - (c - 1) * saddle.slope if saddle.value < inf else 0.0
        level = exp(max(min(height, 0.0), -600.0) - TINY)
        return [_range(step, max(level / self.composition.steps, 1e-300)) for step, _ in self.composition.parts]

    def _window(self, c: float, bounds: list[tuple[float, float]]) -> tuple[float, float]:
        """Its ends: all losses there are, or about all but e^-41 around the tilted mean (Chernoff)."""
        counts = [count for _, count in self.composition.parts]
        low, high = (sum(n * ends[side] for n, ends in zip(counts, bounds, strict=True)) for side in (0, 1))
        saddle = self.composition.saddle(c)
        if not low <= saddle.slope <= high:  # nor where it is infinite
            return low, high
        likely = find_period(
            self.composition, saddle.slope, saddle, find_rivals(self.composition, saddle, (-inf, inf)), TINY
        )
        reach = max(likely if likely > 0 else inf, *(end - start for start, end in bounds))
        return max(low, saddle.slope - reach), min(high, saddle.slope + reach)

    def _spacing(self, width: float, most: int) -> float:
        """So fine that the points suffice, and such that the atoms of the most frequent step lie on the grid."""
        parts = self.composition.parts
        lattices = {_lattice(step) for step, _ in parts} - {0.0}
        if len(lattices) == 1 and width / (unit := lattices.pop()) < _MOST_POINTS:
            return unit  # all losses are on one lattice
        points = max(min(most, _WORK // len(parts)), _FEWEST_POINTS)
        wanted = max(width / (0.97 * points - 4), 1e-300 if width > 0 else 1.0)
        atoms = [(n, step.largest_finite) for step, n in parts if not step.smooth and 0 < step.largest_finite < inf]
        if not atoms:
            return wanted
        atom = max(atoms)[1]
        if width / atom < _MOST_POINTS and len(parts) == 1 and is_atomic(parts[0][0]):
            wanted = min(wanted, atom)
        return atom / ceil(atom / wanted * (1 - EPS)) if wanted <= atom else wanted


def _lattice(step: Step) -> float:
    """Of what all its losses are multiples; 0 where they are 0, NaN where there is no such number."""
    if isinstance(step, AtomStep):
        return step.epsilon
    if isinstance(step, MassStep) and step.losses.size == 1:
        return abs(step.largest_finite)
    return step.lattice if isinstance(step, MassStep) and step.lattice > 0 else nan


def _range(step: Step, failure: float) -> tuple[float, float]:
    """Losses of one step that matter: P exceeds the upper end, Q falls below the lower end at most so often."""
    back = step.reverse()
    high = step.largest_finite if step.largest_finite < inf else float(step.exceeded_loss(failure))
    low = back.largest_finite if back.largest_finite < inf else float(back.exceeded_loss(failure))
    return -low, high
