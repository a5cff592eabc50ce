"""The contract between a release and its scores: its dominating pair, and three functionals of the privacy loss.

A release is known here by its *dominating pair*: two distributions, P for the data with the person and Q for the
data without, that are at least as easy to tell apart as any neighbouring data sets. Its privacy loss is
L = ln dP/dQ. Everything a person can be told follows from three functions of L, each given on the safe side.

Each of the three falls with k, is an integral of e^{K(s) - k (s - shift)} times a weight along a vertical line (Lemma
C1), and is asked of a pair or, in closed form and for whole arrays, of a single step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, inf, isfinite, log, nextafter
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from deniable.loss.arrays import Complexes, Floats
from deniable.search import falls_to, surely_above
from deniable.upper import Upper

if TYPE_CHECKING:
    from deniable.loss.pairs.step import Step


@dataclass(frozen=True)
class Functional(ABC):
    """Its weight on the line is 1/(s (s-1)), 1/(s-1) or 1/s: one factor for each pole."""

    poles: ClassVar[tuple[float, ...]]
    shift: ClassVar[float]
    """The pole whose residue is the mass that it counts: 1 for P, which may have mass at L = inf, 0 for Q."""
    misses_below: ClassVar[float] = -1.0
    """What losses below k add to it beside the masses of P and Q, as a sign: a tail lacks them."""

    @abstractmethod
    def at(self, pair: Pair, k: float) -> Upper:
        """The functional of a pair."""

    @abstractmethod
    def on_step(self, step: Step, k: Floats) -> Floats:
        """The functional of one step at every k."""

    def residue(self, pole: float, k: float) -> float:
        """What each unit of mass at a pole adds once a line has passed it (Lemma C1)."""
        return 1.0

    def weight(self, s: Complexes) -> Complexes:
        product = np.ones_like(s)
        for pole in self.poles:
            product = product * (s - pole)
        return 1 / product

    def log_weight(self, c: float) -> float:
        """ln |weight| on the real axis."""
        return -sum(log(abs(c - pole)) for pole in self.poles)

    def slope(self, c: float) -> float:
        """Derivative of -ln |weight|."""
        found = 0.0
        for pole in self.poles:
            found += 1 / (c - pole)
        return found

    def bend(self, c: float) -> float:
        """Second derivative of ln |weight|."""
        found = 0.0
        for pole in self.poles:
            found += 1 / (c - pole) ** 2
        return found


@dataclass(frozen=True)
class _HockeyStick(Functional):
    poles = 0.0, 1.0
    shift = 1.0
    misses_below = 1.0  # (e^L - e^k)^+ has them in addition to e^L - e^k

    def at(self, pair: Pair, k: float) -> Upper:
        return pair.hockey_stick(k)

    def on_step(self, step: Step, k: Floats) -> Floats:
        return step.sticks(k)

    def residue(self, pole: float, k: float) -> float:
        return 1.0 if pole else -exp(min(k, 700.0))


@dataclass(frozen=True)
class _Tail(Functional):
    poles = (1.0,)
    shift = 1.0

    def at(self, pair: Pair, k: float) -> Upper:
        return pair.tail(k)

    def on_step(self, step: Step, k: Floats) -> Floats:
        return step.tails(k)


@dataclass(frozen=True)
class _NullTail(Functional):
    poles = (0.0,)
    shift = 0.0

    def at(self, pair: Pair, k: float) -> Upper:
        return pair.null_tail(k)

    def on_step(self, step: Step, k: Floats) -> Floats:
        return step.null_tails(k)


STICK = _HockeyStick()
"""The hockey-stick divergence E_Q[(e^L - e^k)^+]."""
TAIL = _Tail()
"""P(L > k)."""
NULL_TAIL = _NullTail()
"""Q(L > k)."""
FUNCTIONALS: tuple[Functional, ...] = STICK, TAIL, NULL_TAIL


PRECISION = 1e-13  # relative, of a search
_ROUNDOFF = 1e-14
_NEAR_LEVEL = 1.01  # times a level, from where the way down to it is straight


class Pair(ABC):
    """A dominating pair (P, Q) seen through its privacy loss L = ln dP/dQ."""

    method: str = "closed form"

    @abstractmethod
    def hockey_stick(self, k: float) -> Upper:
        """sup over events of P(event) - e^k Q(event), for any real k."""

    def rough_stick(self, k: float, negligible: float) -> Upper:
        """The hockey-stick divergence, with any error where it is below `negligible`."""
        return self.hockey_stick(k)

    @abstractmethod
    def tail(self, t: float) -> Upper:
        """P(L > t)."""

    @abstractmethod
    def null_tail(self, t: float) -> Upper:
        """Q(L > t)."""

    @abstractmethod
    def reverse(self) -> Pair:
        """The pair (Q, P)."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest value that L can take (inf where there is none)."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """A positive number of the size of L's spread: where searches begin."""

    @property
    @abstractmethod
    def escape(self) -> float:
        """P(L = inf): mass where Q cannot have produced the output."""

    slip: float = 0.0
    """How far P(L = inf) may be off, relative to it: 0 where it is given."""

    @property
    def least_escape(self) -> float:
        """What P(L = inf) is at least."""
        return self.escape * (1 - self.slip)

    @property
    def most_variation(self) -> float:
        """A quick upper bound on the total variation between P and Q."""
        return 1.0

    @property
    def jump_test(self) -> tuple[float, float]:
        """False positive rate, at most, and true positive rate, at least, of one attack that is known at no cost."""
        return 0.0, self.least_escape

    def jump_test_near(self, fpr: float) -> tuple[float, float]:
        """The same of another such attack, whose rate is about `fpr`."""
        return self.jump_test

    @property
    def stands_apart(self) -> bool:
        """Whether that attack is nearly the best of all."""
        return False

    def ceiling(self, k: float) -> float:
        """A quick upper bound on hockey_stick(k) and tail(k), to rule this direction out where the other is worse."""
        return self.escape if k >= self.largest else 1.0

    def surely_tells_more(self, delta: float) -> bool:
        """Whether a quick look shows that hockey_stick(0) is above delta."""
        return False

    def enough(self, delta: float) -> Upper:
        """Smallest k >= 0 with hockey_stick(k) <= delta, where hockey_stick(0) > delta."""
        if self.escape > delta:
            return self._never(delta)
        return self._fall(STICK, delta, floor=0.0)

    def exceeded_loss(self, failure: float) -> Upper:
        """Smallest t with P(L > t) <= failure: the loss that is exceeded with probability at most `failure`."""
        return self._never(failure) if self.escape > failure else self._where(TAIL, failure)

    def null_exceeded(self, failure: float, hint: float | None = None) -> Upper:
        """Smallest t with Q(L > t) <= failure: the threshold of the best attack with that false positive rate.

        `hint` is where a similar release has it: the search begins there.
        """
        return self._where(NULL_TAIL, failure, hint=hint)

    def _never(self, level: float) -> Upper:
        """No finite loss is enough where P(L = inf) is above the level; within round-off of it, one may be."""
        return Upper(inf, 0.0 if self.escape * (1 - max(_ROUNDOFF, self.slip)) > level else inf)

    def _where(
        self, tail: Functional, failure: float, precision: float = PRECISION, hint: float | None = None
    ) -> Upper:
        floor = nextafter(self.least, -inf)
        if tail.at(self, floor) <= failure:
            return Upper(-inf)
        return self._fall(tail, failure, floor, precision, hint)

    def _fall(
        self,
        functional: Functional,
        level: float,
        floor: float,
        precision: float = PRECISION,
        hint: float | None = None,
    ) -> Upper:
        """Where a functional falls to `level`, from the safe side, with an error that reaches the other one."""

        looks: dict[float, Upper] = {}

        def falling(k: float) -> Upper:
            if k not in looks:
                looks[k] = self._look(functional, k, level)
            return looks[k]

        start = self.near(functional, level) if hint is None else (hint, 0.02 * abs(hint) + 1e-6)
        found = falls_to(falling, level, start, floor=floor, precision=precision)
        value = min(found, self.largest)
        if not isfinite(value):
            return Upper.between(-inf, value)
        slope = _slope_before(looks, value, level)
        return Upper.between(surely_above(falling, level, value, floor, precision=4 * precision, slope=slope), value)

    def _look(self, functional: Functional, k: float, level: float) -> Upper:
        """The functional, as closely as a search for where it falls to `level` needs it."""
        return functional.at(self, k)

    @property
    def least(self) -> float:
        """The least finite value that L can take (-inf where there is none)."""
        return -self.reverse().largest_finite

    @property
    def largest_finite(self) -> float:
        """The largest value of L apart from inf at an atom."""
        return self.largest

    def near(self, functional: Functional, level: float) -> tuple[float, float]:
        """Where to begin looking for the point at which a functional falls to `level`, and how far to step."""
        return 0.0, self.scale


def _slope_before(looks: dict[float, Upper], safe: float, level: float) -> float:
    """About how steeply a function falls to `level` just before `safe`, by the nearest look that tells; 0 if none."""
    telling = [k for k, value in looks.items() if k < safe and level < value - 10 * value.error < _NEAR_LEVEL * level]
    return (looks[max(telling)] - level) / (safe - max(telling)) if telling else 0.0
