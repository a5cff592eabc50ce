"""One run on a Poisson sample, `replace`, where nothing is known of what leaving a record out looks like.

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
from numpy.polynomial.legendre import leggauss

from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.densities import mirrored, sampled_density
from deniable.loss.quadrature import Nodes, log_mixture, log_moments, tilted_moments
from deniable.loss.sampled import FARTHEST, Removed
from deniable.loss.steps import AtomStep, GaussianStep, LaplaceStep, Step

__all__ = ["Replaced", "replaced"]

_MOST_PANELS = 256
_FARTHEST_LOSS = 1e200


def replaced(base: AtomStep | LaplaceStep | GaussianStep, rate: float) -> Step:
    """The sampled step of a symmetric base: three atoms and what is hidden remain so; a density is `Replaced`."""
    if not isinstance(base, AtomStep):
        return Replaced(base, rate)
    up, hidden = (1 - rate) * base.down + rate * base.up, rate * base.hidden
    loss = float(log_mixture(rate, np.array([base.epsilon]))[0])
    return AtomStep(loss, up, max(0.0, 1 - up - base.down - hidden), base.down, hidden)


@dataclass(frozen=True)
class Replaced(Step):
    """Noise on a Poisson sample: the halves of `Removed` and of its mirror image, joined at 0, where an atom is."""

    base: LaplaceStep | GaussianStep
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

    def log_null_tails(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            below = np.log(1 - self._half.tails(_just_below(-t)))
        return np.where(t >= 0, self._half.log_null_tails(np.abs(t)), below)

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._nodes(s), s)

    def tilted(self, c: Floats) -> Floats:
        return tilted_moments(self._nodes(c), c)

    def _nodes(self, s: Numbers) -> Nodes:
        """Losses above 0, their mirror image, and what is left at 0."""
        losses, weights = self._half_nodes(s)
        still = 1 - float(self._half.null_tails(np.zeros(1))[0]) - float(self._half.tails(np.zeros(1))[0])
        halves = [(losses, weights), mirrored(losses, weights), (np.zeros(1), np.log([max(still, 1e-300)]))]
        joined = [np.concatenate(parts) for parts in zip(*halves, strict=True)]
        return Nodes(joined[0], joined[1])

    def _half_nodes(self, s: Numbers) -> tuple[Numbers, Numbers]:
        """Of the losses above 0: the atom at a Laplace law's end and nodes for its density, or a Gaussian's half."""
        if isinstance(self.base, GaussianStep):
            base, log_null = _gaussian_half(self.base.mu)
            return log_mixture(self.rate, base), log_null
        end, heavy = log_mixture(self.rate, np.array([self.base.epsilon])), np.array([-log(2) - self.base.epsilon])
        between, log_weights = sampled_density(self.base.epsilon, self.rate, 0.0, s)
        return np.concatenate([end, between]), np.concatenate([heavy, log_weights])

    @property
    def largest(self) -> float:
        return self._half.largest

    @property
    def scale(self) -> float:
        return self._half.scale


def _gaussian_half(mu: float) -> tuple[Floats, Floats]:
    """Losses above 0 of N(mu, 1) against N(0, 1) and the logarithms of their Q-weights, panel by panel."""
    nodes, weights = leggauss(16)
    low, high = mu / 2, mu + FARTHEST
    edges = np.linspace(low, high, min(max(32, int(high - low)), _MOST_PANELS) + 1)
    half = np.diff(edges)[:, None] / 2
    x, w = (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
    return mu * x - mu * mu / 2, np.log(w / np.sqrt(2 * np.pi)) - x**2 / 2


def _just_below(t: Floats) -> Floats:
    return np.nextafter(np.minimum(np.abs(t), _FARTHEST_LOSS), -np.inf)
