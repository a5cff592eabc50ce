"""One run on a Poisson sample, `replace`, for noise that is not Gaussian.

Guarantee. With and without the sampled record, and with the record that replaces it, the output is P0, R0 or Q0, any
two as hard to tell apart as the base mechanism says: leaving a record out may look like any other record's presence
(a count, where the other record counts nothing, attains it). The releases are (1 - rate) R0 + rate P0 and
(1 - rate) R0 + rate Q0; by advanced joint convexity (Balle, Barthe, Gaboardi 2018, Theorem 2) their divergence at
k >= 0 is at most that of `Removed`, and for k < 0 the same holds with the records exchanged. Both halves together are
again the divergences of one pair: losses above 0 as in `Removed`, losses below 0 their mirror image, the rest at 0.
At rate 1 it is the base pair, and a smaller rate never raises it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.densities import mirrored, sampled_density
from deniable.loss.quadrature import Nodes, log_mixture, log_moments, tilted_moments
from deniable.loss.sampled import Removed
from deniable.loss.steps import AtomStep, LaplaceStep, Step

__all__ = ["Replaced", "replaced"]


def replaced(base: AtomStep | LaplaceStep, rate: float) -> Step:
    """The sampled step of a symmetric base: three atoms and what is hidden remain so; Laplace is `Replaced`."""
    if isinstance(base, LaplaceStep):
        return Replaced(base, rate)
    up, hidden = (1 - rate) * base.down + rate * base.up, rate * base.hidden
    loss = float(log_mixture(rate, np.array([base.epsilon]))[0])
    return AtomStep(loss, up, max(0.0, 1 - up - base.down - hidden), base.down, hidden)


@dataclass(frozen=True)
class Replaced(Step):
    """Laplace noise on a Poisson sample: the halves of `Removed` and of its mirror image, joined at 0."""

    base: LaplaceStep
    rate: float

    @cached_property
    def _half(self) -> Removed:
        return Removed(self.base, self.rate)

    def sticks(self, k: Floats) -> Floats:
        above, below = self._half.sticks(np.abs(k)), np.minimum(k, 0.0)
        return np.asarray(np.exp(below) * above - np.expm1(below))

    def tails(self, t: Floats) -> Floats:
        return np.where(t >= 0, self._half.tails(np.abs(t)), 1 - self._half.null_tails(_just_below(-t)))

    def null_tails(self, t: Floats) -> Floats:
        return np.where(t >= 0, self._half.null_tails(np.abs(t)), 1 - self._half.tails(_just_below(-t)))

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._nodes(s), s)

    def tilted(self, c: Floats) -> Floats:
        return tilted_moments(self._nodes(c), c)

    def _nodes(self, s: Numbers) -> Nodes:
        """The atom at the end, nodes for the density between 0 and it, their mirror image, and what is left at 0."""
        end, heavy = log_mixture(self.rate, np.array([self.base.epsilon])), np.array([-log(2) - self.base.epsilon])
        between, log_weights = sampled_density(self.base.epsilon, self.rate, 0.0, s)
        losses, weights = np.concatenate([end, between]), np.concatenate([heavy, log_weights])
        still = 1 - float(self._half.null_tails(np.zeros(1))[0]) - float(self._half.tails(np.zeros(1))[0])
        halves = [(losses, weights), mirrored(losses, weights), (np.zeros(1), np.log([max(still, 1e-300)]))]
        joined = [np.concatenate(parts) for parts in zip(*halves, strict=True)]
        return Nodes(joined[0], joined[1])

    @property
    def largest(self) -> float:
        return self._half.largest

    @property
    def scale(self) -> float:
        return self._half.scale


def _just_below(t: Floats) -> Floats:
    return np.nextafter(np.abs(t), -np.inf)
