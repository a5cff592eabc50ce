"""A composition's cumulant function K(s) = log E_Q[e^{sL}], and its saddle points.

K of a composition is the sum of its steps' K, so no cost here grows with the number of steps.

Saddle points say where on the real axis to stand when inverting K, and how long its losses' period must be. They are
sought on a fixed ladder of points, so that the one that is found depends on the question alone, and
questions that differ a little share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import copysign, exp, inf, isfinite, log, log1p, pi, sqrt

import numpy as np

from deniable.effort import UnresolvedError, still_affordable
from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.compose.schedules import Schedule, together
from deniable.loss.moments.nodes import seen_from
from deniable.loss.pairs.pair import Functional
from deniable.loss.pairs.step import Step
from deniable.search import falls_to

TINY = 41.0  # e^-41 = 1.6e-18: what is left out is pushed below double precision
AXIS_SLACK_NATS = 1e-5  # granted to K on the real axis, beside round-off, where it bounds something (Lemma C2)
_NARROWEST = 1e-12  # what is narrower counts as an atom
_HIDDEN = 1e-12  # share of the variance under P or Q below which the one half-way tells nothing


@dataclass(frozen=True)
class Saddle:
    """K and its first two derivatives at a real point."""

    c: float
    value: float
    slope: float
    bend: float

    def target(self, functional: Functional) -> float:
        """The k whose integrand has its saddle exactly here."""
        return self.slope - functional.slope(self.c)

    def offset(self, functional: Functional, k: float) -> float:
        """How many standard widths the integrand's saddle for k lies away from c."""
        return (self.target(functional) - k) / sqrt(self.bend + functional.bend(self.c))

    def estimate(self, functional: Functional) -> float:
        """The line integral at its own k by the saddle-point approximation, right of all poles: to some per cent."""
        log_value = self.value - self.target(functional) * (self.c - functional.shift) + functional.log_weight(self.c)
        return exp(min(log_value - 0.5 * log(2 * pi * (self.bend + functional.bend(self.c))), 700.0))


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
        return 0.0 - float(np.expm1(sum(count * log1p(-step.escape) for step, count in self.parts)))

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
        rare, often = zip(*([count * centre for centre in term.centres] for term, count in self._terms), strict=True)
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

    def mean_under(self, functional: Functional) -> float:
        """E[L] under P or Q, whichever the functional counts."""
        return self.saddle(functional.shift).slope

    def reverse(self) -> Composition:
        return self._mirror

    @cached_property
    def _mirror(self) -> Composition:
        mirrored = Composition([(step.reverse(), count) for step, count in self.parts])
        if any(isinstance(moments, Schedule) for moments, _ in self._terms):
            mirrored.__dict__["_terms"] = [(moments.reverse(), count) for moments, count in self._terms]
        return mirrored

    @property
    def mass_noise(self) -> float:
        """Relative round-off of the masses."""
        return 2 * EPS

    @cached_property
    def _null_escape(self) -> float:
        """Q(L = -inf)."""
        return self.reverse().escape

    def cumulant(self, s: Complexes) -> Complexes:
        total = np.zeros(s.shape, dtype=np.complex128)
        for moments, count in self._terms:
            total += count * moments.cumulant(s)
        return total

    def log_height(self, c: float, omega: Floats) -> Floats:
        """ln of a bound on (|Im s| / omega) |e^{K(s)}| for Re s = c and all |Im s| >= omega (Lemma C4)."""
        return np.asarray(sum(count * moments.envelope(c, omega, self._share) for moments, count in self._terms))

    def seen_height(self, c: float, omega: Floats) -> Floats:
        """ln |e^K| from each of these ascending frequencies on, as far as it is seen (validated, not proved).

        Atoms make a moment come back between frequencies that are looked at: such steps count by their bound.
        """
        smooth = replace(self, parts=self.smooth_parts) if self.rough_parts else self
        return np.asarray(seen_from(smooth.cumulant, c, omega) + self.rough_bound(c, omega))

    @cached_property
    def rough_parts(self) -> list[tuple[Step, int]]:
        """Those whose atoms count."""
        return [(step, count) for step, count in self.parts if not step.fades(count)]

    def rough_bound(self, c: float, omega: Floats) -> Floats:
        """ln of a bound on their |e^K| from each of these frequencies on."""
        return np.asarray(sum(count * step.envelope(c, omega, 0.0) for step, count in self.rough_parts))

    @cached_property
    def smooth_parts(self) -> list[tuple[Step, int]]:
        return [(step, count) for step, count in self.parts if step.fades(count)]

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

    def saddle(self, c: float) -> Saddle:
        """K, K' and K'' at c; infinite where they cannot be had."""
        return self._saddles.get(c) or self.saddles([c])[0]

    def saddles(self, points: Sequence[float]) -> list[Saddle]:
        """The same at every point: much cheaper than one by one."""
        new = [c for c in dict.fromkeys(points) if c not in self._saddles]
        if new:
            found = np.full((3, len(new)), inf)
            with np.errstate(invalid="ignore", over="ignore"), suppress(UnresolvedError):
                found = self.tilted_moments(np.array(new))
            for c, value, slope, bend in zip(new, *found.tolist(), strict=True):
                if max(abs(value), abs(slope), abs(bend)) < inf:
                    self._saddles[c] = Saddle(c, value, slope, max(bend, 1e-300))
                else:  # or not numbers
                    self._saddles[c] = Saddle(c, inf, copysign(inf, c - 0.5), 1.0)
        return [self._saddles[c] for c in points]

    def tilted_moments(self, c: Floats) -> Floats:
        """K, K' and K'' (rows) at every c."""
        sums = np.zeros((3, c.size))
        for moments, count in self._terms:
            sums += count * moments.tilted_moments(c)
        return sums

    def roundoff(self, saddle: Saddle, omega: Floats | float = 0.0, grown: Floats | None = None) -> Floats | float:
        """Of K at c + i omega (Lemma C7): its own, and that of every step's moment, which enters K `steps` times.

        Exponents sL are wrong by EPS |sL|, with L about as large as one step's share of the spread. `grown` is the
        number of steps, each counted the more the smaller its moment has become off the axis. A density's own error
        counts as far as e^{sL} differs from 1 (Lemma A3).
        """
        loss = sqrt(saddle.bend / self.steps + (saddle.slope / self.steps) ** 2)
        turn = (abs(saddle.c) + omega) * loss
        moment = EPS * (2 + 4 * turn) + self._density_error * np.minimum(turn, 2.0)
        return EPS * (48 + 4 * abs(saddle.value)) + moment * (self.steps if grown is None else grown)

    @cached_property
    def _density_error(self) -> float:
        return max((step.density_error for step, _ in self.parts), default=0.0)

    def height(self, saddle: Saddle) -> float:
        """K at the saddle where it is to bound something (Lemma C2): its round-off is added."""
        return saddle.value + float(self.roundoff(saddle)) + AXIS_SLACK_NATS


Strip = tuple[float, float]
"""Part of the real axis between two neighbouring poles, or beyond the outermost one."""
NEAR_WIDTHS = 2.0  # from the integrand's own saddle within which a line serves: a few times the round-off
_RUNG = 0.25  # of the logarithm of a point's distance from the pole, from one rung of the ladder to the next
_RUNGS = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # at which the saddle of a level is first sought
_FINEST_RUNG = 1e-3  # where rungs are halved because K bends fast
_FARTHEST_SCALES = 1e4  # from the pole, in units of 1 / (spread of the loss)
_INSIDE = 0.95  # of the distance from the pole up to which K can be had
_NEAREST_NATS = 30.0  # e^-30 from the pole


def find_saddle(law: Composition, functional: Functional, k: float, strip: Strip) -> Saddle:
    """Nearly minimise the convex log-integrand on the real axis: Newton on the log of the distance to the pole.

    Where K cannot be had as far out as the saddle, the farthest point is given instead.
    """
    low, high = strip
    if strip == (0.0, 1.0):
        return law.saddle(0.5)
    sign, pole = (1.0, low) if high == inf else (-1.0, high)
    origin, rung, place = log(1.4 / law.scale), _RUNG, 0
    near: float = -inf  # rungs that lie on either side of the saddle
    far: float = inf
    while rung > _FINEST_RUNG and -_NEAREST_NATS < origin + rung * place < log(_FARTHEST_SCALES / law.scale):
        still_affordable()
        here = law.saddle(pole + sign * exp(origin + rung * place))
        offset = sign * here.offset(functional, k)
        if abs(offset) < NEAR_WIDTHS:
            return here
        near, far = (near, place) if offset > 0 or not isfinite(offset) else (place, far)  # K cannot be had so far out
        place -= _jump(offset, here, functional, pole, rung)
        if not near < place < far:  # K may bend much faster than its second derivative foretells
            if far - near == 1:
                near, far, rung = 2 * near, 2 * far, rung / 2
            place = int(far - round(1 / rung) if near == -inf else (near + far) // 2)
    if near == -inf:
        raise UnresolvedError(f"no saddle for {k:g} within reach")
    # a little inside, so that Chernoff's bound has points on both sides
    return law.saddle(pole + sign * _INSIDE * exp(origin + rung * near))


def _jump(offset: float, here: Saddle, functional: Functional, pole: float, rung: float) -> int:
    """Rungs towards the pole that Newton's method foretells, one at least; at most a factor e of the distance."""
    if not isfinite(offset):
        return round(1 / rung)
    move = offset / sqrt(here.bend + functional.bend(here.c)) / abs(here.c - pole)
    least = 0.5 if abs(offset) > 5 else 0.0  # where K is exploding, Newton's own steps are far too short
    rungs = max(1, round(min(max(abs(move), least), 1.0) / rung))
    return rungs if move > 0 else -rungs


def surround(law: Composition, saddle: Saddle, strip: Strip) -> tuple[Saddle, tuple[Floats, Floats]]:
    """The saddle and its rivals; one nearer to its pole where K cannot be had on the far side."""
    rivals = find_rivals(law, saddle, strip)
    low, high = strip
    least, most = rivals[0].min(initial=inf), rivals[0].max(initial=-inf)
    if (high == inf and most < saddle.c) or (low == -inf and least > saddle.c):
        pole = low if high == inf else high
        saddle = law.saddle(pole + _INSIDE * (saddle.c - pole))
        rivals = find_rivals(law, saddle, strip)
    return saddle, rivals


def find_rivals(law: Composition, saddle: Saddle, strip: Strip) -> tuple[Floats, Floats]:
    """Real points on both sides of c inside the strip, poles included, with K there, for Chernoff's bounds."""
    width = min(sqrt(2 * TINY / saddle.bend), 20 / law.scale)
    inside = (0.99 / _INSIDE - 1) * min(abs(saddle.c - end) for end in (*strip, inf))  # still where K can be had
    near_by = inside, 0.1 / sqrt(saddle.bend), 0.1 / law.scale, 0.5 / law.scale, 0.25 * width, width
    others: list[float] = []
    for sign, end in ((-1.0, strip[0]), (1.0, strip[1])):
        room = abs(end - saddle.c)
        offsets = near_by if room == inf else near_by[-2:]
        others += [saddle.c + sign * offset for offset in offsets if offset < room]
        others += [end] if room < inf else []
    kept = [rival for rival in law.saddles(sorted(set(others) - {saddle.c})) if rival.value < inf]
    return np.array([rival.c for rival in kept]), np.array([law.height(rival) for rival in kept])


def find_period(law: Composition, k: float, saddle: Saddle, rivals: tuple[Floats, Floats], tiny: float) -> float:
    """A length of losses around k beyond which, seen from this saddle, less than e^-tiny is left (Chernoff)."""
    others, cumulants = rivals
    excess = (cumulants - saddle.value - (others - saddle.c) * k + tiny) / np.abs(others - saddle.c)
    sides = excess[others > saddle.c], excess[others < saddle.c]
    return 1.2 * max(float(side.min()) if side.size else 1e3 * law.scale for side in sides)


def _crossing_rungs(law: Composition, functional: Functional, level: float, pole: float) -> float | None:
    """Where between two of a few rungs the approximation falls to the level, all of them looked at together."""
    rungs = law.saddles([pole + exp(rung) * 1.4 / law.scale for rung in _RUNGS])
    least = max(level, 1e-300)
    heights = [log(max(rung.estimate(functional), 1e-300) / least) if rung.value < inf else -inf for rung in rungs]
    for place in range(1, len(rungs)):
        above, below = heights[place - 1], heights[place]
        if above > 0 >= below > -inf:
            return _RUNGS[place - 1] + (_RUNGS[place] - _RUNGS[place - 1]) * above / (above - below)
    return None


def find_level_saddle(law: Composition, functional: Functional, level: float) -> Saddle:
    """The saddle of the k at which a functional falls to about the small `level`.

    Every saddle c belongs to one k, and there the saddle-point approximation tells the functional's value.
    """
    pole = max(functional.poles)

    def approximation(log_distance: float) -> float:
        here = law.saddle(pole + exp(log_distance))
        return here.estimate(functional) if here.value < inf else 0.0

    start = log(1.4 / law.scale)
    if (between := _crossing_rungs(law, functional, level, pole)) is not None:
        return law.saddle(pole + exp(start + between))
    within = start - 11, log(_FARTHEST_SCALES / law.scale)
    log_distance = falls_to(approximation, level, (start, 0.5), floor=start - 10, within=within, close=0.5)
    found = law.saddle(pole + exp(min(log_distance, within[1])))
    if inf in (log_distance, found.value):
        raise UnresolvedError(f"no saddle for the level {level:g} within reach")
    return found
