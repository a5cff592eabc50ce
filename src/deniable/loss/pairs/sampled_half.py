"""The losses above 0 of Gaussian noise on a sample: nodes for their moments, with or without rare large ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from deniable.effort import UnresolvedError
from deniable.loss.arrays import Floats, Numbers, log_mixture
from deniable.loss.moments.analytic_noise import Jumps, NoiseLaw
from deniable.loss.moments.half_line import DAMPED_LESS, half_line
from deniable.loss.moments.nodes import NEGLIGIBLE_NATS, log_sums
from deniable.loss.pairs.gaussian import FARTHEST_SIGMAS, lift, log_normal

_RARE_NATS = 60.0  # e^-60 = 9e-27: chance of a part that no moment may come from
_MOST_MU = 250.0  # in standard deviations of the noise: nodes grow with its square
_NODES_A_SIGMA, _MOST_NODES = 1500, 2**19  # on a line; nodes of one half number about 1,500 mu
_SLACK_NATS = 6.0  # by which the largest term may exceed those that are looked at


@dataclass(frozen=True)
class SampledHalf:
    """L = ln(1 - rate + rate e^{mu x - mu^2/2}), x standard normal above mu/2; damped unless `decay` is 0."""

    mu: float
    rate: float
    decay: float = 0.0

    def nodes(self, s: Numbers, decay: float = 0.0) -> tuple[Numbers, Numbers]:
        """Losses and the logarithms of their Q-weights for moments at s; with `decay`, of what it takes away."""
        line = half_line(self.mu, self.rate, max(decay, self.decay), self.decay)
        x, log_weights = line.nodes(s)
        if not decay:
            return self._law.loss(x), log_weights + self._law.log_damped_density(x)
        taken = x.real > line.undamped_from if not self.decay else np.zeros(x.shape, dtype=bool)
        logs = Jumps(self._law, decay).log_density(np.where(taken, self.mu / 2, x))
        return self._law.loss(x), log_weights + np.where(taken, self._law.log_density(x), logs)

    def heights(self, tilts: Floats) -> Floats:
        """About the largest logarithms of terms at the ends of the tilts, from either side, and of the mass."""
        return np.asarray(half_line(self.mu, self.rate, least_decay=self.decay).heights(tilts).max(axis=1))

    def tops(self, c: Floats) -> tuple[Floats, Floats]:
        """About the largest logarithms of a term at every c, or 1 - c if that is larger, and where the noise ends."""
        return half_line(self.mu, self.rate, least_decay=self.decay).tops(c)

    def log_envelope(self, c: float, omega: Floats) -> Floats:
        """Of the moments of the losses above 0 (Lemma A9)."""
        on_axis = replace(self, decay=DAMPED_LESS * self.decay)
        return half_line(self.mu, self.rate, least_decay=self.decay).log_envelope(c, omega, _log_moment(on_axis, c))

    @cached_property
    def _law(self) -> NoiseLaw:
        mu, rate = self.mu, self.rate
        return NoiseLaw(
            loss=lambda x: log_mixture(rate, mu * x - mu * mu / 2),
            log_density=log_normal,
            log_jump=lambda x: mu * x + (log(rate) - mu * mu / 2),
            reach=(mu / 2, FARTHEST_SIGMAS + mu),
            lift=lift(mu),
            decay=self.decay,
        )


@lru_cache(maxsize=2048)
def _log_moment(half: SampledHalf, c: float) -> float:
    """ln of the moment of the losses above 0 at a real c; lines ask for it again and again."""
    losses, weights = half.nodes(np.array([c]))
    return float(log_sums((weights + c * losses).real))


def are_known(parts: Sequence[tuple[float, SampledHalf]], c: Floats) -> NDArray[np.bool_]:
    """Whether moments at c come neither from noise that is left out nor from parts that are next to impossible.

    The list of a blend's parts may end at the latter. Of noise so faint that nodes number a million nothing is known.
    """
    if min(half.mu for _, half in parts) > _MOST_MU:
        return np.zeros(c.shape, dtype=bool)
    found = [half.tops(c) for _, half in parts]
    tops = np.array([log(share) + top for (share, _), (top, _) in zip(parts, found, strict=True)])
    ends = np.array([log(share) + end for (share, _), (_, end) in zip(parts, found, strict=True)])
    rare = np.array([log(share) for share, _ in parts]) < -_RARE_NATS
    beside = np.concatenate([ends, tops[rare]]).max(axis=0)
    return np.asarray(beside <= tops.max(axis=0) - NEGLIGIBLE_NATS + 2)


def join_halves(parts: Sequence[tuple[float, SampledHalf]], s: Numbers, decay: float = 0.0) -> tuple[Numbers, Numbers]:
    """The nodes of a blend, without those that are nothing beside the others at every tilt that is asked."""
    if len(parts) > 1:
        tops = np.array([log(share) + half.heights(s.real) for share, half in parts])
        kept = (tops > tops.max(axis=0) - NEGLIGIBLE_NATS - _SLACK_NATS).any(axis=1)
        parts = [part for part, matters in zip(parts, kept, strict=True) if matters]
    if np.iscomplexobj(s) and _NODES_A_SIGMA * sum(half.mu for _, half in parts) > _MOST_NODES:
        raise UnresolvedError(f"{len(parts)} parts of faint noise need too many nodes")
    found = [(losses, weights + log(share)) for share, half in parts for losses, weights in (half.nodes(s, decay),)]
    losses, weights = (np.concatenate(columns) for columns in zip(*found, strict=True))
    ends = float(s.real.min()), float(s.real.max())
    heights = np.array([weights.real + at * losses.real for at in (0.0, 1.0, *ends, 1 - ends[0], 1 - ends[1])])
    kept = (heights > heights.max(axis=1, keepdims=True) - NEGLIGIBLE_NATS).any(axis=0)
    return losses[kept], weights[kept]
