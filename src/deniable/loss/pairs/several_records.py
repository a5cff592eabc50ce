"""One run on a Poisson sample of a person with several records: as many of them take part as chance will have it.

With Gaussian noise on a sum, m of `records` records shift it by at most m mu: the pair is the mixture over m, binomial,
of N(m mu, 1) against N(0, 1) (Lemma A6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log1p, pi

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr, ndtri

from deniable.effort import spend
from deniable.loss.arrays import EPS, Complexes, Floats, Numbers, expm1
from deniable.loss.arrays import log1p as complex_log1p
from deniable.loss.moments.analytic_noise import Jumps, NoiseLaw
from deniable.loss.pairs.gaussian import FARTHEST_SIGMAS, MOST_BLURRED_MU, REACH_SIGMAS, GaussianStep, log_normal
from deniable.loss.pairs.step import Moments, Step
from deniable.loss.pairs.subsampled import ReversedStep, SubsampledAdd, SubsampledRemove

_LARGE_NATS = 30.0
_SUNK = -0.9  # of e^L - 1: little of 1 is left, and its digits are lost
_MOST_MOVES = 60
_LARGEST_LOSS = 1e15
_FAR_SIGMAS = 1e8


@dataclass(frozen=True)
class SeveralRemove(Step):
    """The mixture over a person's records in the batch against none of them (add-remove and zero-out, `remove`)."""

    mu: float
    rate: float
    records: int
    decay: float = 0.0
    smooth = True

    @property
    def tail_cost(self) -> int:  # type: ignore[override]
        return 10 * self.records  # by Newton's method

    @cached_property
    def _log_weights(self) -> Floats:
        """Of 0 to `records` records in the batch."""
        m = np.arange(self.records + 1.0)
        ways = gammaln(self.records + 1) - gammaln(m + 1) - gammaln(self.records - m + 1)
        return np.asarray(ways + m * log(self.rate) + (self.records - m) * log1p(-self.rate))

    @cached_property
    def weights(self) -> Floats:
        return np.exp(self._log_weights)

    @property
    def least_loss(self) -> float:
        """ln of the probability that no record is in the batch."""
        return self.records * log1p(-self.rate)

    def _exponents(self, x: Numbers) -> Numbers:
        """Losses of m records against none at noise x (last axis: m)."""
        m = np.arange(self.records + 1.0)
        spend(2 * x.size * m.size)  # they are made into exponentials, and summed
        return np.asarray(np.multiply.outer(x, m * self.mu) - (m * self.mu) ** 2 / 2)

    def loss(self, x: Numbers) -> Numbers:
        """L at noise x: as a difference from 1, unless e^L is large or little of 1 is left."""
        exponents = self._exponents(x)
        tops = (exponents.real + self._log_weights).max(axis=-1)
        large = tops > _LARGE_NATS
        gained = self._gain(np.where(large[..., None], 0.0, exponents))
        far = large | (gained.real < _SUNK)
        small = complex_log1p(np.where(far, 0.0, gained))
        if not far.any():
            return small
        terms = np.exp(np.where(far[..., None], exponents + self._log_weights - tops[..., None], 0.0))
        return np.asarray(np.where(far, tops + np.log(terms.sum(axis=-1)), small))

    def _gain(self, exponents: Numbers) -> Numbers:
        """e^L - 1."""
        steep = exponents.real > _LARGE_NATS  # where e^x - 1 is e^x, and may overflow beside the least weights
        mild = self.weights * expm1(np.where(steep, 0.0, exponents))
        grown = np.where(steep, np.exp(np.where(steep, exponents + self._log_weights, 0.0)), mild)
        return np.asarray(grown.sum(axis=-1))

    def _log_jump(self, x: Numbers) -> Numbers:
        """ln of what one or more records add to e^L."""
        terms = self._exponents(x)[..., 1:] + self._log_weights[1:]
        tops = terms.real.max(axis=-1)
        return np.asarray(tops + np.log(np.exp(terms - tops[..., None]).sum(axis=-1)))

    def threshold(self, k: Floats) -> Floats:
        """The noise x at which the loss is k; -inf (as a number) up to the least loss.

        ln of what one or more records add to e^L is convex in x and rises by at least mu, so Newton's method comes down
        to the solution from where the first number of records alone would add as much.
        """
        gap = np.clip(k - self.least_loss, 1e-300, _LARGEST_LOSS)
        steep = np.maximum(gap, 1.0)
        wanted = np.where(gap < 1, np.log(np.expm1(np.minimum(gap, 1.0))), steep + np.log1p(-np.exp(-steep)))
        wanted = wanted + self.least_loss
        m = np.arange(1, self.records + 1.0)
        x = ((wanted[..., None] - self._log_weights[1:]) / (m * self.mu) + m * self.mu / 2).min(axis=-1)
        for _ in range(_MOST_MOVES):
            terms = self._exponents(x)[..., 1:] + self._log_weights[1:]
            tops = terms.max(axis=-1)
            sums = np.exp(terms - tops[..., None])
            move = (tops + np.log(sums.sum(axis=-1)) - wanted) * sums.sum(axis=-1) / (self.mu * (sums @ m))
            x = x - move
            if (self.mu * np.abs(move) <= 4 * EPS * (1 + np.abs(wanted) + self.mu * np.abs(x))).all():
                break
        return np.where(k <= self.least_loss, -1e300, x)

    def sticks(self, k: Floats) -> Floats:
        x, small = self.threshold(k), np.minimum(k, 1.0)
        shifted = ndtr(np.multiply.outer(-x, np.ones(self.records + 1)) + np.arange(self.records + 1) * self.mu)
        own = ((shifted - shifted[..., :1]) * self.weights).sum(axis=-1) - np.expm1(small) * shifted[..., 0]
        with np.errstate(over="ignore", under="ignore"):
            large = self.tails(k) - np.exp(np.minimum(k + log_ndtr(-x), 0.0))
        return np.asarray(np.clip(np.where(k > 1, large, own), 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        x = self.threshold(t)
        return np.asarray((ndtr(np.arange(self.records + 1) * self.mu - x[..., None]) * self.weights).sum(axis=-1))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(-self.threshold(t)))

    def log_null_tails(self, t: Floats) -> Floats:
        return np.asarray(log_ndtr(-self.threshold(t)))

    def blur(self, k: Floats) -> Floats:
        """Of k, of the logarithms on the way, and of x, which moves the loss by at most all records times mu."""
        x = np.clip(self.threshold(k), -40.0, _FAR_SIGMAS)
        slope, share = self.records * self.mu, -np.expm1(np.minimum(self.least_loss - k, 0.0))
        return np.asarray(8 * EPS * (np.abs(k) + share * abs(self._log_weights[1]) + slope * (np.abs(x) + slope)))

    def cumulant(self, s: Complexes) -> Complexes:
        return self._law.cumulant(s)

    def tilted_moments(self, c: Floats) -> Floats:
        return self._law.tilted_moments(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self._law.envelope(c, omega, share)

    def damp(self, decay: float) -> Step:
        return replace(self, decay=decay)

    def jumps(self, decay: float) -> Moments | None:
        return Jumps(self._law, decay)

    def jump_size(self, probability: float) -> float:
        x = np.array([-float(ndtri(probability))])
        return float(np.exp(np.minimum(self._log_jump(x), 300.0))[0])

    def jump_probability(self, size: float) -> float:
        return float(self.null_tails(np.array([np.logaddexp(self.least_loss, log(size))]))[0])

    @cached_property
    def _law(self) -> NoiseLaw:
        """The mixture has no zero within pi / (2 records mu) of the real axis: all terms point to the right there."""
        return NoiseLaw(
            loss=self.loss,
            log_density=log_normal,
            log_jump=self._log_jump,
            reach=(-REACH_SIGMAS, FARTHEST_SIGMAS + self.records * self.mu),
            lift=min(1.0, pi / (2 * self.records * self.mu)),
            decay=self.decay,
        )

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        if self.mu > MOST_BLURRED_MU:
            return super().centres
        return self.least_loss, float(self.tilted_moments(np.zeros(1))[1, 0])

    @property
    def presence(self) -> float:  # type: ignore[override]
        return -float(np.expm1(self.least_loss))

    def sampled_like(self, mu: float, presence: float) -> Step:
        return SubsampledRemove(GaussianStep(mu), presence)

    def reverse(self) -> Step:
        return SeveralAdd(self)

    @property
    def largest(self) -> float:
        return inf

    @property
    def scale(self) -> float:
        return max(self.rate * self.records * self.mu, 1e-12)


@dataclass(frozen=True)
class SeveralAdd(ReversedStep):
    """The same with P and Q exchanged: losses below -ln of the probability that no record is in the batch."""

    mirror: SeveralRemove
    smooth = True

    def sticks(self, k: Floats) -> Floats:
        x, small = self.mirror.threshold(-k), np.minimum(k, 1.0)
        shifted = ndtr(x[..., None] - np.arange(self.mirror.records + 1) * self.mirror.mu)
        own = ((shifted[..., :1] - shifted) * self.mirror.weights).sum(axis=-1)
        missed = np.expm1(small) * (shifted * self.mirror.weights).sum(axis=-1)
        large = self.tails(k) - np.exp(np.minimum(k, 700.0)) * self.null_tails(k)
        return np.asarray(np.clip(np.where(k > 1, large, own - missed), 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(self.mirror.threshold(-t)))

    def null_tails(self, t: Floats) -> Floats:
        x = self.mirror.threshold(-t)
        below = ndtr(x[..., None] - np.arange(self.mirror.records + 1) * self.mirror.mu)
        return np.asarray((below * self.mirror.weights).sum(axis=-1))

    def damp(self, decay: float) -> Step:
        return SeveralAdd(replace(self.mirror, decay=decay))

    @property
    def presence(self) -> float:  # type: ignore[override]
        return self.mirror.presence

    def sampled_like(self, mu: float, presence: float) -> Step:
        return SubsampledAdd(SubsampledRemove(GaussianStep(mu), presence))

    @property
    def largest(self) -> float:
        return -self.mirror.least_loss

    @property
    def scale(self) -> float:
        return self.mirror.scale
