"""A composition's cumulant function K(s) = log E_Q[e^{sL}].

K of a composition is the sum of its steps' K, so no cost here grows with the number of steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import copysign, exp, inf, log, log1p, pi, sqrt

import numpy as np

from deniable.effort import UnresolvedError
from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.compose.schedules import Schedule, together
from deniable.loss.functionals import Functional
from deniable.loss.moments.nodes import seen_from
from deniable.loss.pairs.step import Step

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
            for c, value, slope, bend in zip(new, *self._tilted_moments(np.array(new)).tolist(), strict=True):
                if max(abs(value), abs(slope), abs(bend)) < inf:
                    self._saddles[c] = Saddle(c, value, slope, max(bend, 1e-300))
                else:  # or not numbers
                    self._saddles[c] = Saddle(c, inf, copysign(inf, c - 0.5), 1.0)
        return [self._saddles[c] for c in points]

    def _tilted_moments(self, c: Floats) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):
            try:
                return self.tilted_moments(c)
            except UnresolvedError:
                return np.full((3, c.size), inf)

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
