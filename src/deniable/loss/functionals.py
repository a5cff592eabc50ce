"""The three functionals of the privacy loss from which every score follows.

Each falls with k, is an integral of e^{K(s) - k (s - shift)} times a weight along a vertical line (Lemma C1), and is
asked of a pair or, in closed form and for whole arrays, of a single step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from deniable.loss.arrays import Complexes, Floats
from deniable.upper import Upper

if TYPE_CHECKING:
    from deniable.loss.pairs.pair import Pair
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
