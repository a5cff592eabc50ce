"""Nodes for the noise above which a sampled Gaussian's loss is positive, whatever the frequency.

The loss L(x) = ln(1 - rate + rate e^{mu x - mu^2/2}) is 0 at x = mu/2. Moments of the losses above 0 are integrals from
there on, of a density times e^{sL}. Off the real axis of s the path is lifted: up from mu/2 to mu/2 + iY, and across.
On the way up e^{i omega L} dies out instead of turning, and where the path runs across only frequencies below 45 / Y
are left of it. A few hundred nodes serve every frequency.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, inf, log, pi, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Floats, Numbers, log_mixture
from deniable.loss.moments.laplace_density import rising_panels
from deniable.loss.moments.nodes import NEGLIGIBLE_NATS

_FARTHEST_SIGMAS = 26.0  # beyond P's mean; 1e-149 of a Gaussian is left out
_GONE = 45.0  # e^-45 is nothing
_HIGHEST_SIGMAS = 1.0  # Y: cheap in the Gaussian weight
_MOST_TURN = pi / 2  # mu Y: the mixture has no zero there
_MOST_GROWTH = 2.0  # mu Y sqrt(c): by which |e^{cL}| grows above the axis, at most e^{1/2}
_PROBES = 257
_KINK_NATS = 40.0  # around where P's and Q's shares in the mixture are equal; beyond, one of them is nothing
_NODES, _WEIGHTS = leggauss(32)
_NODE_COST = 4  # exponentials that a node's loss and weight are worth, ...
_LINE_COST = 1_500  # ... and that laying out a line is
_MOST_PANELS = 2**14
_PANEL_SIGMAS = 4.0  # width of a panel of 32 nodes at most, ...
_PANEL_NATS = 4.0  # ... in base losses, whose mixture is singular pi from the axis, ...
_PANEL_RADIANS = 24.0  # ... and in turns of the integrand
_DAMPED_TURN = pi / 32  # mu Y where damping takes the eighth power of the jump
DAMPED_LESS = 0.5**0.0625  # by which |damping| may be weaker there: cos(pi / 4) of the eighth power is left
_DAMPED_NATS = 0.5  # width of a panel there
_DAMPED_REACH = 4.0  # nats around 1 / decay, mostly below it, where damping neither takes nothing nor all
_DAMPED_AWAY = _GONE**0.125  # decay * jump from where on damping leaves nothing


@dataclass(frozen=True)
class HalfLine:
    """The noise above mu/2; `decay` is the larger one of those by which the density is damped, `least_decay` the other.

    What is beyond jumps of about 1.6 / `least_decay` is nothing.
    """

    mu: float
    rate: float
    decay: float = 0.0
    least_decay: float = 0.0

    def nodes(self, s: Numbers) -> tuple[Numbers, Numbers]:
        """Noise and the logarithms of quadrature weights, for moments at real s, or on one vertical line upwards."""
        spend(_LINE_COST)
        x = self._probes[: 1 + self._last(s.real)]
        if not np.iscomplexobj(s):
            points, weights = self._across(x, 0.0)
            return points, np.log(weights)
        c, top = float(s[0].real), float(np.abs(s.imag).max())
        turns = top * self.mu * self._share(x)
        if self.decay and not self.least_decay and self.undamped_from < x[-1]:
            low = x < self.undamped_from
            parts = [(x[: low.sum() + 1], _DAMPED_TURN), (x[low.sum() :], _MOST_TURN)]
        else:
            parts = [(x, _DAMPED_TURN if self.decay else _MOST_TURN)]
        found, height = [], 0.0
        for points, turn in parts:
            before, height = height, self._height(c, turn)
            finest = 1 / max(top * self.mu * self.rate, 1e-300) if before == 0 else before / 16
            if height > before:
                up, up_weights = rising_panels(height - before, min(height - before, finest))
                found.append((points[0] + 1j * (before + up), np.log(up_weights) + 0.5j * pi))
            fastest = np.minimum(_GONE / height, turns[-points.size :] if before else turns[: points.size])
            across, weights = self._across(points, fastest + height + self.mu * sqrt(_size(c)))
            found.append((across + 1j * height, np.log(weights)))
        return np.concatenate([x for x, _ in found]), np.concatenate([weights for _, weights in found])

    @property
    def undamped_from(self) -> float:
        """Noise from which on all is taken away by `decay`."""
        return (log(_DAMPED_AWAY / self.decay / self.rate) + self.mu**2 / 2) / self.mu

    @cached_property
    def _probes(self) -> Floats:
        far = self.mu + _FARTHEST_SIGMAS
        if self.least_decay:
            far = min(far, (log(_DAMPED_AWAY / self.least_decay / self.rate) + self.mu**2 / 2) / self.mu)
        low, far = self.mu / 2, max(far, self.mu / 2 + 1e-3)
        near = (np.linspace(-_KINK_NATS, _KINK_NATS, _PROBES // 4) + self._kink + self.mu**2 / 2) / self.mu
        return np.unique(np.concatenate([np.linspace(low, far, _PROBES), near[(near > low) & (near < far)]]))

    @property
    def _kink(self) -> float:
        """The base loss at which the mixture's loss turns from nearly none to nearly the base's own."""
        return log(1 / self.rate - 1) if self.rate < 1 else -inf

    def _share(self, x: Floats) -> Floats:
        """P's share of the mixture at x: the loss grows by mu times it."""
        return np.asarray(1 / (1 + (1 / self.rate - 1) * np.exp(-np.clip(self.mu * x - self.mu**2 / 2, -600, 600))))

    def _across(self, x: Floats, turns: Floats | float) -> tuple[Floats, Floats]:
        """Nodes and weights on panels between the ends of x that are as narrow as the integrand turns."""
        panels = np.maximum(np.maximum(1 / _PANEL_SIGMAS, self.mu / self._nats(x)), turns / _PANEL_RADIANS)
        passed = np.append(0.0, np.cumsum(np.maximum(panels[1:], panels[:-1]) * np.diff(x)))
        if passed[-1] > _MOST_PANELS:
            raise UnresolvedError(f"{passed[-1]:.0f} panels needed where losses are as small as the rate {self.rate:g}")
        edges = np.interp(np.linspace(0.0, passed[-1], 1 + ceil(passed[-1])), passed, x)
        half = 0.5 * np.diff(edges)[:, None]
        spend(_NODE_COST * half.size * _NODES.size)
        return (edges[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()

    def _nats(self, x: Floats) -> Floats:
        """How wide a panel may be, in base losses: narrow near the mixture's singularity and where damping sets in."""
        found = np.where(np.abs(self.mu * x - self.mu**2 / 2 - self._kink) < _KINK_NATS, _PANEL_NATS, inf)
        for decay in {self.decay, self.least_decay} - {0.0}:
            apart = self.mu * x - self.mu**2 / 2 + log(self.rate * decay)
            found[np.abs(apart + _DAMPED_REACH / 2) < _DAMPED_REACH] = _DAMPED_NATS
        return found

    def _last(self, tilts: Floats) -> int:
        """The probe beyond which nothing is left of the moments at these tilts and 1 less them, and of the mass."""
        heights = self.heights(tilts)
        kept = (heights > heights.max(axis=1, keepdims=True) - NEGLIGIBLE_NATS - 2).any(axis=0)
        return int(min(np.flatnonzero(kept)[-1] + 1, kept.size - 1))

    def heights(self, tilts: Floats) -> Floats:
        """Logarithms of the integrand on the real axis at some x (columns), at the tilts that matter (rows)."""
        ends = float(tilts.min()), float(tilts.max())
        return self._heights(np.array([0.0, 1.0, *ends, 1 - ends[0], 1 - ends[1]]))

    def tops(self, c: Floats) -> tuple[Floats, Floats]:
        """The largest of them at every c, or at 1 - c, and the one at the end (none where damping makes the end)."""
        heights = np.maximum(self._heights(c), self._heights(1 - c))
        return heights.max(axis=1), heights[:, -1] if not self.least_decay else np.full(c.shape, -inf)

    def _heights(self, c: Floats) -> Floats:
        spend(c.size * self._probes.size // 32)
        return np.asarray(np.multiply.outer(c, self._probe_losses) - self._probes**2 / 2)

    @cached_property
    def _probe_losses(self) -> Floats:
        return np.asarray(log_mixture(self.rate, self.mu * self._probes - self.mu**2 / 2))

    def _height(self, c: float, most_turn: float) -> float:
        return min(_HIGHEST_SIGMAS, min(most_turn, _MOST_GROWTH / sqrt(_size(c))) / self.mu)

    def log_envelope(self, c: float, omega: Floats, log_moment: float) -> Floats:
        """ln of a bound on (|Im s| / omega) |integral of phi e^{sL}| at Re s = c and all |Im s| >= omega (Lemma A9).

        `log_moment` is ln of the integral on the real axis; of a damped law, of the one that is damped by DAMPED_LESS.
        """
        spend(omega.size)
        height = self._height(c, _DAMPED_TURN if self.least_decay else _MOST_TURN)
        turn, rate = self.mu * height, self.rate
        argument = float(np.arctan2(rate * np.sin(turn), 1 - rate + rate * np.cos(turn)))
        slope = min(rate * self.mu, argument / height)
        grown = height * height / 2 + min(c, 0.0) * float(np.log(np.cos(turn / 2)))
        up = -(self.mu**2) / 8 - 0.5 * log(2 * pi) - np.log(slope * omega)
        turned = np.maximum(omega * argument, 1e-300)
        across = log_moment + np.where(turned >= 1, -turned, -1 - np.log(turned))
        return np.asarray(grown + np.logaddexp(up, across))


@lru_cache(maxsize=512)
def half_line(mu: float, rate: float, decay: float = 0.0, least_decay: float = 0.0) -> HalfLine:
    """The same one for the same numbers: its probes are found once."""
    return HalfLine(mu, rate, decay, least_decay)


def _size(c: float) -> float:
    return max(abs(c), abs(1 - c), 1.0) if abs(c) < inf else 1.0
