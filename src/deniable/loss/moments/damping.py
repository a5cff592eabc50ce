"""The law of a loss that is an analytic function of Gaussian noise, and its rare large losses apart from the rest.

A record that is sampled with a small rate moves the release by a tiny loss nearly always and by a large one, a *jump*,
hardly ever. Moments E[e^{cL}] magnify the jumps and hide everything else, so compositions are taken apart by their
largest jump (Lemma J1): e^{-(decay * jump)^8} takes jumps above 1/decay out of a law and leaves the small
ones; being analytic, it leaves the moments of both parts as easy to have as those of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.effort import UnresolvedError
from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.moments.nodes import log_moments
from deniable.loss.moments.trapezoid import NodeRule

_LARGEST = 690.0  # exponents beyond overflow
_POWER = 8  # of the jump in the damping
_NOTHING = 1000.0  # nats
_LOWER = 16.0  # by which damped laws' nodes stay nearer to the axis: half-way to where the power turns negative

Function = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class NoiseLaw:
    """The loss L(x), the logarithms of Q's density at x and of the jump at x, all analytic around the real axis."""

    loss: Function
    log_density: Function
    log_jump: Function
    reach: tuple[float, float]
    """Where moments may have their mass: noise beyond is left out."""
    lift: float
    """How far the nodes may leave the real axis."""
    decay: float = 0.0

    def damping(self, decay: float, x: Numbers) -> Numbers:
        """(decay * jump)^8."""
        exponent = _POWER * (self.log_jump(x) + np.log(decay))
        return np.asarray(np.exp(exponent - np.maximum(exponent.real - _LARGEST, 0.0)))

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._rule.nodes(s), s)

    def tilted_moments(self, c: Floats) -> Floats:
        return self._rule.tilted_moments(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self._rule.envelope(c, omega, share)

    @cached_property
    def _rule(self) -> NodeRule:
        if not self.decay:
            return NodeRule(self.loss, self.log_density, self.reach, self.lift)
        return NodeRule(self.loss, self.log_damped_density, self.kept, self.lift / _LOWER, self._missing)

    @cached_property
    def kept(self) -> tuple[float, float]:
        """The part of `reach` where damping leaves anything."""
        if not self.decay:
            return self.reach
        x = np.linspace(*self.reach, 257)
        alive = np.flatnonzero(self.damping(self.decay, x).real < _NOTHING)
        return float(x[max(alive[0] - 1, 0)]), float(x[min(alive[-1] + 1, 256)])

    def log_damped_density(self, x: Numbers) -> Numbers:
        """Logarithm of the damped density."""
        return self.log_density(x) - self.damping(self.decay, x) if self.decay else self.log_density(x)

    @cached_property
    def _missing(self) -> float:
        """Mass that damping takes away."""
        whole = NoiseLaw(self.loss, self.log_density, self.log_jump, self.reach, self.lift)
        log_mass = float(Jumps(whole, self.decay).tilted_moments(np.zeros(1))[0, 0])
        if log_mass == np.inf:
            raise UnresolvedError("the mass of the jumps cannot be had")
        return float(np.exp(log_mass))


@dataclass(frozen=True)
class Jumps:
    """What damping by `decay` takes away from a law that is damped less, or not at all."""

    law: NoiseLaw
    decay: float

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._rule.nodes(s), s)

    def tilted_moments(self, c: Floats) -> Floats:
        return self._rule.tilted_moments(c)

    @cached_property
    def _rule(self) -> NodeRule:
        return NodeRule(self.law.loss, self.log_density, self.law.kept, self.law.lift / _LOWER, None)

    def log_density(self, x: Numbers) -> Numbers:
        law = self.law
        step = self.decay * (1 - (law.decay / self.decay) ** _POWER) ** (1 / _POWER)
        taken = law.damping(step, x)
        small = taken.real < 1e-9
        share = np.log(-np.expm1(-np.where(small, 1.0, taken)))
        share = np.where(small, _POWER * (law.log_jump(x) + np.log(step)), share)
        return law.log_damped_density(x) + share
