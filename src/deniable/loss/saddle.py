"""A composition's cumulant function K(s) = log E_Q[e^{sL}] and where on the real axis to stand when inverting it.

K of a composition is the sum of its steps' K, so no cost here grows with the number of steps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import copysign, exp, inf, log, log1p, pi, sqrt
from operator import attrgetter

import numpy as np

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.effort import UnresolvedError, still_affordable
from deniable.loss.roots import falls_to
from deniable.loss.schedules import Schedule, together
from deniable.loss.steps import Step

__all__ = ["AXIS_SLACK_NATS", "EPS", "TINY", "Composition", "Region", "Saddle", "Weight"]

TINY = 41.0  # e^-41 = 1.6e-18: what is left out is pushed below double precision
EPS = 2.2e-16
AXIS_SLACK_NATS = 1e-5  # granted to K on the real axis, beside round-off, where it bounds something (Lemma C2)
Region = tuple[float, float]
_NARROWEST = 1e-12  # what is narrower counts as an atom
_HIDDEN = 1e-12  # share of the variance under P or Q below which the one half-way tells nothing
_FARTHEST = 1e4  # saddles are not sought farther out than this, in units of 1 / (spread of the loss)


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

    def log_size(self, c: float) -> float:
        return -sum(log(abs(c - pole)) for pole in self.poles)

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

    def target(self, weight: Weight) -> float:
        """The k whose integrand has its saddle exactly here."""
        return self.slope - weight.slope(self.c)

    def offset(self, k: float, weight: Weight) -> float:
        """How many standard widths the integrand's saddle for k lies away from c."""
        return (self.target(weight) - k) / sqrt(self.bend + weight.bend(self.c))

    def estimate(self, weight: Weight) -> float:
        """The line integral at its own k by the saddle-point approximation, right of all poles: to some per cent."""
        log_value = self.value - self.target(weight) * (self.c - weight.shift) + weight.log_size(self.c)
        return exp(min(log_value - 0.5 * log(2 * pi * (self.bend + weight.bend(self.c))), 700.0))


@dataclass(frozen=True)
class Composition:
    """Independent steps, each run a number of times."""

    parts: Sequence[tuple[Step, int]]

    @cached_property
    def steps(self) -> int:
        return sum(count for _, count in self.parts)

    @cached_property
    def runs(self) -> dict[int, int]:
        """How many steps belong to parts that run so often."""
        counts = Counter(count for _, count in self.parts)
        return {count: count * parts for count, parts in counts.items()}

    @cached_property
    def escape(self) -> float:
        """P(L = inf)."""
        return -float(np.expm1(sum(count * log1p(-step.escape) for step, count in self.parts)))

    @cached_property
    def presence(self) -> float:
        """Probability that the person takes part in some step."""
        absent = [count * log1p(-step.presence) if step.presence < 1 else -inf for step, count in self.parts]
        return -float(np.expm1(sum(absent)))

    @cached_property
    def largest(self) -> float:
        return sum(count * step.largest for step, count in self.parts)

    @cached_property
    def largest_finite(self) -> float:
        return sum(count * step.largest_finite for step, count in self.parts)

    @cached_property
    def centres(self) -> tuple[float, float]:
        """Two guesses at the loss of outcomes without large jumps, where the law is rough (see `Step.centres`)."""
        rare, often = zip(*([count * centre for centre in step.centres] for step, count in self.parts), strict=True)
        return sum(rare), sum(often)

    @cached_property
    def scale(self) -> float:
        """Standard deviation of L half-way between Q and P, or under these where half-way an atom hides all others."""
        null, middle, own = self.saddles([0.0, 0.5, 1.0])  # the means will be asked for, too
        outer = max((end.bend for end in (null, own) if end.value < inf), default=0.0)
        bend = middle.bend if middle.bend > _HIDDEN * outer else outer
        return max(sqrt(bend), _NARROWEST)

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

    @property
    def mass_noise(self) -> float:
        """Relative round-off of the masses."""
        return 2 * EPS

    @cached_property
    def _null_escape(self) -> float:
        """Q(L = -inf)."""
        return self.reversed().escape

    def cumulant(self, s: Complexes) -> Complexes:
        total = np.zeros(s.shape, dtype=np.complex128)
        for moments, count in self._terms:
            total += count * moments.cumulant(s)
        return total

    def log_height(self, c: float, omega: Floats) -> Floats:
        """ln of a bound on (|Im s| / omega) |e^{K(s)}| for Re s = c and all |Im s| >= omega (Lemma C4)."""
        return np.asarray(sum(count * moments.envelope(c, omega, self._share) for moments, count in self._terms))

    @cached_property
    def _share(self) -> float:
        """Of the decay like 1 / omega, what each smooth step contributes."""
        return 1 / max(1, sum(count for step, count in self.parts if step.smooth))

    @cached_property
    def _terms(self) -> list[tuple[Step | Schedule, int]]:
        return together(self.parts)

    @cached_property
    def schedule_error(self) -> float:
        """Error of K where polynomials stand for many unlike steps."""
        return sum(moments.error for moments, _ in self._terms if isinstance(moments, Schedule))

    def mass(self, pole: float) -> float:
        """Mass of finite losses under P (pole 1) or Q (pole 0)."""
        return 1 - (self.escape if pole else self._null_escape)

    @cached_property
    def _saddles(self) -> dict[float, Saddle]:
        return {}

    @cached_property
    def _known(self) -> list[Saddle]:
        """The finite ones of them, by c."""
        return []

    def saddle(self, c: float) -> Saddle:
        """K, K' and K'' at c; infinite where they cannot be had."""
        return self.saddles([c])[0]

    def saddles(self, points: Sequence[float]) -> list[Saddle]:
        """The same at every point: much cheaper than one by one."""
        new = [c for c in dict.fromkeys(points) if c not in self._saddles]
        if new:
            for c, value, slope, bend in zip(new, *self._tilted(np.array(new)).tolist(), strict=True):
                if max(abs(value), abs(slope), abs(bend)) < inf:
                    self._saddles[c] = Saddle(c, value, slope, max(bend, 1e-300))
                    insort(self._known, self._saddles[c], key=attrgetter("c"))
                else:  # or not numbers
                    self._saddles[c] = Saddle(c, inf, copysign(inf, c - 0.5), 1.0)
        return [self._saddles[c] for c in points]

    def _tilted(self, c: Floats) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):
            try:
                return self.tilted(c)
            except UnresolvedError:
                return np.full((3, c.size), inf)

    def tilted(self, c: Floats) -> Floats:
        """K, K' and K'' (rows) at every c."""
        sums = np.zeros((3, c.size))
        for moments, count in self._terms:
            sums += count * moments.tilted(c)
        return sums

    def search(self, k: float, weight: Weight, region: Region) -> Saddle:
        """Nearly minimise the convex log-integrand on the real axis: Newton on the log of the distance to the pole.

        Where K cannot be had as far out as the saddle, the farthest point is given instead.
        """
        low, high = region
        if low == 0.0 and high == 1.0:
            return self.saddle(0.5)
        sign, pole = (1.0, low) if high == inf else (-1.0, high)
        limit = self._limits.get(region)
        if limit and sign * limit.offset(k, weight) < 0:
            return limit
        start = self._nearest(k, weight, region) or pole + sign * 1.4 / self.scale
        position, near, far = log(abs(start - pole)), -inf, inf
        for _ in range(60):
            still_affordable()
            here = self.saddle(pole + sign * exp(position))
            offset = here.offset(k, weight)
            if abs(offset) < 1.0:
                return here
            near, far = (near, position) if sign * offset > 0 else (position, far)
            move = -sign * offset / sqrt(here.bend + weight.bend(here.c)) / exp(position)
            least = 0.5 if abs(offset) > 5 else 0.0  # where K is exploding, Newton's own steps are far too short
            move = copysign(min(max(abs(move), least), 1.0), move)
            position += move
            if not near < position < far:  # K may bend much faster than its second derivative foretells
                position = far - 1.0 if near == -inf else 0.5 * (near + far)
            if far - near < 1e-3 or not -30 < position < log(_FARTHEST / self.scale):
                break
        if near == -inf:
            raise UnresolvedError(f"no saddle for {k:g} within reach")
        # a little inside, so that Chernoff's bound has points on both sides
        self._limits[region] = self.saddle(pole + sign * 0.95 * exp(near))
        return self._limits[region]

    def _nearest(self, k: float, weight: Weight, region: Region) -> float | None:
        """Of the points known inside the region, the one whose own k is nearest: the integrand is convex."""
        first = bisect_right(self._known, region[0], key=attrgetter("c"))
        last = bisect_left(self._known, region[1], key=attrgetter("c"))
        place = bisect_left(self._known, k, first, last, key=lambda saddle: saddle.target(weight))
        around = self._known[max(first, place - 1) : min(last, place + 1)]
        return min(around, key=lambda saddle: abs(saddle.offset(k, weight))).c if around else None

    @cached_property
    def _limits(self) -> dict[Region, Saddle]:
        """How far from its pole K can be had, where that is not far enough for some saddle."""
        return {}

    def surrounded(self, saddle: Saddle, region: Region) -> tuple[Saddle, tuple[Floats, Floats]]:
        """The saddle and its rivals; one nearer to its pole where K cannot be had on the far side."""
        rivals = self.rivals(saddle, region)
        low, high = region
        least, most = rivals[0].min(initial=inf), rivals[0].max(initial=-inf)
        if (high == inf and most < saddle.c) or (low == -inf and least > saddle.c):
            pole = low if high == inf else high
            saddle = self.saddle(pole + 0.95 * (saddle.c - pole))
            rivals = self.rivals(saddle, region)
        return saddle, rivals

    def rivals(self, saddle: Saddle, region: Region) -> tuple[Floats, Floats]:
        """Real points on both sides of c inside the region, poles included, with K there."""
        width = min(sqrt(2 * TINY / saddle.bend), 20 / self.scale)
        near_by = 0.1 / sqrt(saddle.bend), 0.1 / self.scale, 0.5 / self.scale, 0.25 * width, width
        others: list[float] = []
        for sign, end in ((-1.0, region[0]), (1.0, region[1])):
            room = abs(end - saddle.c)
            offsets = near_by if room == inf else near_by[-2:]
            others += [saddle.c + sign * offset for offset in offsets if offset < room]
            others += [end] if room < inf else []
        self.saddles(others)
        first = bisect_left(self._known, region[0], key=attrgetter("c"))
        last = bisect_right(self._known, region[1], key=attrgetter("c"))
        kept = [rival for rival in self._known[first:last] if rival.c != saddle.c]
        return np.array([rival.c for rival in kept]), np.array([self.height(rival) for rival in kept])

    def period(self, k: float, saddle: Saddle, rivals: tuple[Floats, Floats], tiny: float) -> float:
        """A length of losses around k beyond which, seen from this saddle, less than e^-tiny is left (Chernoff)."""
        others, cumulants = rivals
        excess = (cumulants - saddle.value - (others - saddle.c) * k + tiny) / np.abs(others - saddle.c)
        sides = excess[others > saddle.c], excess[others < saddle.c]
        return 1.2 * max(float(side.min()) if side.size else 1e3 * self.scale for side in sides)

    @cached_property
    def _right(self) -> tuple[Floats, Floats]:
        return self._outwards(1.0, 1.0)

    @cached_property
    def _left(self) -> tuple[Floats, Floats]:
        return self._outwards(0.0, -1.0)

    def _outwards(self, pole: float, sign: float) -> tuple[Floats, Floats]:
        """Real points from the pole away from the other one, with K there."""
        points = pole + sign * np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) / self.scale
        return points, np.array([self.height(saddle) for saddle in self.saddles(points.tolist())])

    def roundoff(self, saddle: Saddle, omega: Floats | float = 0.0, grown: Floats | None = None) -> Floats | float:
        """Of K at c + i omega (Lemma C7): its own, and that of every step's moment, which enters K `steps` times.

        Exponents sL are wrong by EPS |sL|, with L about as large as one step's share of the spread. `grown` is the
        number of steps, each counted the more the smaller its moment has become off the axis.
        """
        loss = sqrt(saddle.bend / self.steps + (saddle.slope / self.steps) ** 2)
        moment = EPS * (2 + 4 * (abs(saddle.c) + omega) * loss)
        return EPS * (48 + 4 * abs(saddle.value)) + moment * (self.steps if grown is None else grown)

    def height(self, saddle: Saddle) -> float:
        """K at the saddle where it is to bound something (Lemma C2): its round-off is added."""
        return saddle.value + float(self.roundoff(saddle)) + AXIS_SLACK_NATS

    def chernoff(self, k: float, shift: float, right: bool) -> float:
        """Logarithm of a bound on e^{shift k} Q(L > k) and P(L > k), or on the same of L < k."""
        points, cumulants = self._right if right else self._left
        return float((cumulants - (points - shift) * k).min())  # Lemma C2

    def ceiling(self, k: float) -> float:
        """Chernoff's bound on P(L > k), and so on the divergence, at a few points."""
        if k >= self.largest:
            return self.escape
        return min(1.0, self.escape + exp(min(0.0, self.chernoff(k, 1.0, right=True))))

    def null_ceiling(self, k: float) -> float:
        """The same bound on Q(L > k)."""
        return min(1.0, exp(min(0.0, self.chernoff(k, 0.0, right=True))))

    def level_saddle(self, level: float, weight: Weight) -> Saddle:
        """The saddle of the k at which a functional falls to about the small `level`.

        Every saddle c belongs to one k, and there the saddle-point approximation tells the functional's value.
        """
        pole = max(weight.poles)

        def approximation(log_distance: float) -> float:
            here = self.saddle(pole + exp(log_distance))
            return here.estimate(weight) if here.value < inf else 0.0

        start = log(1.4 / self.scale)
        within = start - 11, log(_FARTHEST / self.scale)
        log_distance = falls_to(approximation, level, (start, 0.5), floor=start - 10, within=within, close=0.5)
        found = self.saddle(pole + exp(min(log_distance, within[1])))
        if inf in (log_distance, found.value):
            raise UnresolvedError(f"no saddle for the level {level:g} within reach")
        return found
