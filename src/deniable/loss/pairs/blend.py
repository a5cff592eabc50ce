"""A release that draws one of several pairs, tells which one, and then runs it.

Its divergences and tails are means of theirs, and so is its moment function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log

import numpy as np

from deniable.effort import spend
from deniable.loss.arrays import Complexes, Floats, expm1, log1p, multiply
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional
from deniable.loss.pairs.step import Moments, Step

_LARGE_NATS = 30.0  # moments up to e^30 are summed as differences from 1
_SUNK = -0.9  # differences below have lost digits of their own
_PART_COST = 100  # exponentials that asking one part is worth
_UNSEEN = 1e-20  # of a sum: below its round-off


@dataclass(frozen=True)
class Blend(Step):
    """Steps with the probabilities that each of them is drawn, which sum to 1."""

    parts: tuple[tuple[float, Step], ...]

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return all(step.smooth for _, step in self.parts)

    @property
    def tail_cost(self) -> int:  # type: ignore[override]
        return sum(step.tail_cost for _, step in self.parts)

    def sticks(self, k: Floats) -> Floats:
        return self._sum_parts(STICK, k)

    def tails(self, t: Floats) -> Floats:
        return self._sum_parts(TAIL, t)

    def null_tails(self, t: Floats) -> Floats:
        return self._sum_parts(NULL_TAIL, t)

    def _sum_parts(self, functional: Functional, k: Floats) -> Floats:
        """Of the likely ones first; a part is left out where its share alone shows that it adds nothing."""
        spend((k.size + _PART_COST) * len(self.parts))
        found = np.zeros(k.shape)
        most = np.exp(-np.maximum(k, 0.0)) if functional is NULL_TAIL else np.ones(k.shape)
        for share, step in self._by_share:
            counts = share * most > _UNSEEN * found
            if counts.any():
                found[counts] += share * functional.on_step(step, k[counts])
        return found

    def log_null_tails(self, t: Floats) -> Floats:
        found = np.full(t.shape, -inf)
        for share, step in self._by_share:
            counts = log(share / _UNSEEN) - np.maximum(t, 0.0) > found
            found[counts] = np.logaddexp(found[counts], log(share) + step.log_null_tails(t[counts]))
        return found

    @cached_property
    def _by_share(self) -> list[tuple[float, Step]]:
        return sorted(self.parts, key=lambda part: -part[0])

    def blur(self, k: Floats) -> Floats:
        return np.asarray(np.max([step.blur(k) for _, step in self.parts], axis=0))

    def cumulant(self, s: Complexes) -> Complexes:
        return _Mean(self.parts).cumulant(s)

    def tilted_moments(self, c: Floats) -> Floats:
        return _Mean(self.parts).tilted_moments(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        logs = [np.log(own) + step.envelope(c, omega, share) for own, step in self.parts]
        return np.asarray(np.logaddexp.reduce(logs))

    def damp(self, decay: float) -> Step:
        return Blend(tuple((share, step.damp(decay)) for share, step in self.parts))

    def jumps(self, decay: float) -> Moments | None:
        parts = [(share, step.jumps(decay)) for share, step in self.parts]
        return None if any(jumps is None for _, jumps in parts) else _Mean(tuple(parts))  # type: ignore[arg-type]

    def jump_size(self, probability: float) -> float:
        return max(step.jump_size(min(probability / share, 0.99)) for share, step in self.parts)

    def jump_probability(self, size: float) -> float:
        return sum(share * step.jump_probability(size) for share, step in self.parts)

    @property
    def presence(self) -> float:  # type: ignore[override]
        return sum(share * step.presence for share, step in self.parts)

    def sampled_like(self, mu: float, presence: float) -> Step:
        return max(self.parts)[1].sampled_like(mu, presence)

    @property
    def variation(self) -> float:
        return sum(share * step.variation for share, step in self.parts)

    @property
    def escape(self) -> float:
        return sum(share * step.escape for share, step in self.parts)

    def reverse(self) -> Step:
        return Blend(tuple((share, step.reverse()) for share, step in self.parts))

    @property
    def largest(self) -> float:
        return max(step.largest for _, step in self.parts)

    @property
    def largest_finite(self) -> float:
        return max(step.largest_finite for _, step in self.parts)

    @property
    def scale(self) -> float:
        return sum(share * step.scale for share, step in self.parts)


@dataclass(frozen=True)
class _Mean:
    """A mean of measures, each known by its moments."""

    parts: tuple[tuple[float, Moments], ...]

    def cumulant(self, s: Complexes) -> Complexes:
        found = np.array([moments.cumulant(s) for _, moments in self.parts])
        shares = np.array([share for share, _ in self.parts])
        tops = found.real.max(axis=0)
        gained = multiply(shares, expm1(np.where(tops < _LARGE_NATS, found, 0.0)))
        near = (tops < _LARGE_NATS) & (gained.real > _SUNK)
        if near.all():
            return np.asarray(log1p(gained), dtype=np.complex128)
        far = tops + np.log(multiply(shares, np.exp(found - tops)))
        return np.asarray(np.where(near, log1p(np.where(near, gained, 0.0)), far), dtype=np.complex128)

    def tilted_moments(self, c: Floats) -> Floats:
        """ln of the mean, and mean and variance of the mixture of the tilted laws."""
        values, means, variances = np.array([moments.tilted_moments(c) for _, moments in self.parts]).swapaxes(0, 1)
        shares = np.array([share for share, _ in self.parts])
        known = np.isfinite(values).all(axis=0)
        values = np.where(known, values, 0.0)
        tops = values.max(axis=0)
        terms = shares[:, None] * np.exp(values - tops)
        totals = terms.sum(axis=0)
        gained = multiply(shares, np.expm1(np.minimum(values, _LARGE_NATS)))
        near = (tops < _LARGE_NATS) & (gained > _SUNK)
        total = np.where(near, np.log1p(np.maximum(gained, _SUNK)), tops + np.log(totals))
        mean = (terms * means).sum(axis=0) / totals
        variance = (terms * (variances + (means - mean) ** 2)).sum(axis=0) / totals
        return np.where(known, np.array([total, mean, variance]), inf)
