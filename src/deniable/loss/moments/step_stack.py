"""Some sampled Gaussian steps side by side: K of each along one line, and its derivatives at real points.

The integrals are trapezoidal rules like those beside this file, over the same noise for all steps, and halved until
they no longer move. Error: validated, not proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Complexes, Floats, expm1, log1p, log_mixture
from deniable.loss.moments.nodes import sum_waves

_REACH_DEVIATIONS = (-14.0, 26.0)
NEGLIGIBLE_NATS = 44.0  # below the largest mass; what is smaller does not matter
_WIDEST_SPACING = 0.4  # standard deviations between the nodes of an integral
_FINEST_SPACING = 0.01
_AXIS_SPACING = 0.53  # between every second node on the real axis
_REUSED = 4.0  # times as fast as needed may be the waves that the nodes at hand serve
_MARGIN = 4  # nodes more, for steps that are not extreme
_NODES_TOGETHER = 2**12  # of some steps, whose tables of waves fit the processor's cache
_CLOSE = 1e-15  # what halving the spacing may still change in a moment near 1


@dataclass
class StepStack:
    """Some sampled Gaussian steps side by side, all integrated over the same noise."""

    mus: Floats
    rates: Floats
    exchanged: bool
    _latest: tuple[float, float, tuple[Complexes, Complexes, Complexes]] | None = None

    @cached_property
    def _reach(self) -> tuple[float, float]:
        low, high = _REACH_DEVIATIONS
        return (-high - self._most if self.exchanged else low), high + self._most

    @cached_property
    def _most(self) -> float:
        return float(self.mus.max())

    @cached_property
    def _lift(self) -> float:
        """How far to leave the real axis: well short of the first zero of any of the mixtures."""
        return min(1.0, pi / (2 * self._most))

    def _at(self, x: Any) -> tuple[Any, Any]:
        """Losses at the noise x, and the logarithms of Q's density there; one row a step, or one row for all."""
        mu, rate = self.mus[:, None], self.rates[:, None]
        normal = -x * x / 2 - 0.5 * log(2 * pi)
        if not self.exchanged:
            return log_mixture(rate, mu * x - mu * mu / 2), normal[None, :]
        up, down = (log_mixture(rate, sign * mu * x / 2 - mu * mu / 8) for sign in (1.0, -1.0))
        return up - down, normal + down

    @cached_property
    def _axis(self) -> tuple[Floats, Floats, Floats]:
        """Real noise, losses, and logarithms of the masses."""
        low, high = self._reach
        x = np.linspace(low, high, 1 + 2 * int(np.ceil((high - low) / (_AXIS_SPACING * self._lift))))
        losses, log_density = self._at(x)
        return x, losses, log_density + log(x[1] - x[0])

    def tilted_moments(self, c: Floats) -> Floats:
        """K, K' and K'' at every real c: an array (steps, 3, c.size); inf where it cannot be had."""
        found = np.full((self.mus.size, 3, c.size), np.inf)
        for place, point in enumerate(c.tolist()):
            moments = self._moments_at(point, self._matter_at(point))
            moments = self._moments_at(point, slice(None)) if moments is None else moments
            if moments is not None:
                found[:, :, place] = moments
        return found

    def _moments_at(self, c: float, nodes: slice) -> Floats | None:
        """The same at one point from every second one of some nodes; None where these do not tell."""
        losses, log_masses = (part[:, nodes][:, ::2] for part in self._axis[1:])
        spend(losses.size // 4)  # real ones, in long rows
        heights = log_masses + c * losses
        tops = heights.max(axis=1)
        terms = np.exp(heights - tops[:, None])
        totals = terms.sum(axis=1)
        ends = np.maximum(heights[:, 0], heights[:, -1])
        inside = np.isfinite(tops) & (ends <= tops - NEGLIGIBLE_NATS + 2)
        if not inside.all() or self._is_coarse(c, nodes, tops, totals):
            return None
        means = np.einsum("ij,ij->i", terms, losses) / totals
        spreads = np.einsum("ij,ij->i", terms, (losses - means[:, None]) ** 2) / totals
        return np.stack([tops + np.log(2 * totals), means, spreads], axis=1)

    def _is_coarse(self, c: float, nodes: slice, tops: Floats, totals: Floats) -> bool:
        """Whether the other half of the nodes gives other moments of the extreme steps."""
        losses, log_masses = (part[:, nodes][:, 1::2] for part in self._axis[1:])
        rows = self._extremes
        heights = np.broadcast_to(log_masses, losses.shape)[rows] + c * losses[rows]
        others = np.exp(heights - tops[rows, None]).sum(axis=1)
        return bool((np.abs(others / totals[rows] - 1) > 2e-9).any())

    def _matter_at(self, c: float) -> slice:
        """The nodes where the moments at c of the extreme steps come from, and some more."""
        _, losses, log_masses = self._axis
        heights = np.broadcast_to(log_masses, losses.shape)[self._extremes] + c * losses[self._extremes]
        kept = np.flatnonzero((heights >= heights.max(axis=1, keepdims=True) - NEGLIGIBLE_NATS).any(axis=0))
        return slice(max(int(kept[0]) - _MARGIN, 0), int(kept[-1]) + _MARGIN) if kept.size else slice(None)

    @cached_property
    def _extremes(self) -> NDArray[np.int64]:
        order = np.argsort(self.mus * self.rates)
        return np.unique([order[0], order[-1], self.mus.argmax(), self.rates.argmax(), self.mus.argmin()])

    def cumulants(self, s: Complexes) -> Complexes:
        """K at every s of one vertical line: an array (steps, s.size)."""
        gain, losses, weights = self._weigh_losses(float(s[0].real), float(np.abs(s.imag).max()))
        waves = [
            sum_waves(losses[rows], weights[rows], s.imag)
            for rows in np.array_split(np.arange(self.mus.size), 1 + losses.size // _NODES_TOGETHER)
        ]
        return np.asarray(log1p(gain[:, None] + np.concatenate(waves)))

    def _weigh_losses(self, c: float, fastest: float) -> tuple[Complexes, Complexes, Complexes]:
        """E[e^{cL}] - 1, losses, and their weights times e^{cL}; those found last serve its slower waves."""
        if self._latest is None or self._latest[0] != c or not fastest <= self._latest[1] <= _REUSED * fastest:
            low, high = self._range(c)
            spacing = self._spacing(c, fastest, low, high)
            losses, log_density = self._at(np.arange(low, high, spacing) + 1j * self._lift)
            masses, growth = np.exp(log_density) * spacing, expm1(c * losses)
            self._latest = c, fastest, ((masses * growth).sum(axis=1), losses, masses * (1 + growth))
        return self._latest[2]

    def _range(self, c: float) -> tuple[float, float]:
        """Where some of the moments at c, or the masses themselves, come from."""
        x, losses, log_masses = self._axis
        heights = np.maximum(log_masses + c * losses, log_masses)
        tops = heights.max(axis=1, keepdims=True)
        if not (np.isfinite(tops).all() and tops.max() < 10):
            raise UnresolvedError(f"the moment at {c:g} is too large")
        kept = np.flatnonzero((heights >= tops - NEGLIGIBLE_NATS).any(axis=0))
        if kept[-1] == x.size - 1:
            raise UnresolvedError(f"the moment at {c:g} comes from the ends of the range")
        return float(x[kept[0]]) - 0.5, float(x[kept[-1]]) + 0.5

    def _spacing(self, c: float, fastest: float, low: float, high: float) -> float:
        """Halved until the moments of the extreme steps at a few points of the line no longer move."""
        some = StepStack(self.mus[self._extremes], self.rates[self._extremes], self.exchanged)
        probes = c + 1j * fastest * np.array([0.0, 0.1, 0.5, 1.0])
        spacing, before = _WIDEST_SPACING, np.full((self._extremes.size, probes.size), np.inf)
        while spacing > _FINEST_SPACING:
            losses, log_density = some._at(np.arange(low, high, spacing) + 1j * self._lift)
            grown = expm1(probes[:, None] * losses[:, None, :])
            here = (np.exp(log_density)[:, None, :] * grown).sum(axis=2) * spacing
            if np.abs(here - before).max() <= _CLOSE * (1 + np.abs(here).max()):
                return 2 * spacing
            spacing, before = spacing / 2, here
        raise UnresolvedError(f"more nodes needed at frequency {fastest:g}")
