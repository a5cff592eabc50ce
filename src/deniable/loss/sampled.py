"""One run on a Poisson sample: the person takes part with probability `rate` only.

With base pair (P0, Q0), the person's release is the mixture (1 - rate) Q0 + rate P0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log1p

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.densities import sampled_density
from deniable.loss.jumps import Jumps, NoiseLaw
from deniable.loss.quadrature import Nodes, log_mixture, log_moments, tilted_moments
from deniable.loss.steps import AtomStep, GaussianStep, LaplaceStep, Moments, Step

__all__ = ["Added", "Exchanged", "Removed"]

_LOG_ROOT_TWO_PI = 0.5 * log(2 * np.pi)
_REACH = 14.0  # standard deviations; beyond lies 1e-44 of a Gaussian
_TURNED = np.array([[1.0], [-1.0], [1.0]])  # what looking from the other side does to K, K' and K''
FARTHEST = 26.0  # beyond, 1e-149 of a Gaussian is left out even where e^{cL} would magnify it


def _gap(k: Floats, rate: float) -> Floats:
    """The base loss at which the mixture's loss is k: ln(1 + (e^k - 1)/rate); -inf below the mixture's least loss."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        small = np.log1p(np.maximum(np.expm1(np.minimum(k, 36.0)) / rate, -1.0))
        large = k - log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(k, 36.0)))
    return np.where(k > 36.0, large, small)


@dataclass(frozen=True)
class Removed(Step):
    """Mixture against Q0: the person's data set first (add-remove and zero-out, direction `remove`)."""

    base: Step
    rate: float
    decay: float = 0.0
    slip = 1e-15

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.base.smooth

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        """ln(1 - rate), where jumps are rare; E_Q[L], where many small ones make up for it."""
        if not isinstance(self.base, GaussianStep):
            return super().centres
        return log1p(-self.rate), float(self.tilted(np.zeros(1))[1, 0])

    def sticks(self, k: Floats) -> Floats:
        """rate * H_{1 + (e^k - 1)/rate}(P0 || Q0), exact (Balle, Barthe, Gaboardi 2018, Theorem 2)."""
        gap = _gap(k, self.rate)
        finite = np.isfinite(gap)
        return np.where(finite, self.rate * self.base.sticks(np.where(finite, gap, 0.0)), -np.expm1(np.minimum(k, 0)))

    def tails(self, t: Floats) -> Floats:
        gap = self._finite_gap(t)
        mixture = (1 - self.rate) * self.base.null_tails(gap) + self.rate * self.base.tails(gap)
        return np.where(t < log1p(-self.rate), 1.0, mixture)

    def null_tails(self, t: Floats) -> Floats:
        return np.where(t < log1p(-self.rate), 1.0, self.base.null_tails(self._finite_gap(t)))

    def log_null_tails(self, t: Floats) -> Floats:
        return np.where(t < log1p(-self.rate), 0.0, self.base.log_null_tails(self._finite_gap(t)))

    def _finite_gap(self, t: Floats) -> Floats:
        return np.maximum(_gap(t, self.rate), -1e300)

    def cumulant(self, s: Complexes) -> Complexes:
        return self._law.cumulant(s) if self._law is not None else log_moments(_loss_nodes(self.base, self.rate, s), s)

    def tilted(self, c: Floats) -> Floats:
        return self._law.tilted(c) if self._law is not None else tilted_moments(_loss_nodes(self.base, self.rate, c), c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        law = self._law
        return super().envelope(c, omega, share) if law is None else law.envelope(c, omega, share)

    @cached_property
    def _law(self) -> NoiseLaw | None:
        if not isinstance(self.base, GaussianStep):
            return None
        mu, rate = self.base.mu, self.rate
        return NoiseLaw(
            loss=lambda x: log_mixture(rate, mu * x - mu * mu / 2),
            log_density=_log_normal,
            log_jump=lambda x: mu * x + (log(rate) - mu * mu / 2),
            reach=(-_REACH, FARTHEST + mu),
            lift=_lift(mu),
            decay=self.decay,
        )

    @property
    def presence(self) -> float:  # type: ignore[override]
        return self.rate

    def sampled_like(self, mu: float, presence: float) -> Step:
        return Removed(GaussianStep(mu), presence)

    @property
    def variation(self) -> float:
        return self.rate * self.base.variation

    @property
    def escape(self) -> float:
        return self.rate * self.base.escape

    def damped(self, decay: float) -> Step:
        return self if self._law is None else replace(self, decay=decay)

    def jumps(self, decay: float) -> Moments | None:
        return None if self._law is None else Jumps(self._law, decay)

    def jump_size(self, probability: float) -> float:
        if not isinstance(self.base, GaussianStep):
            return 0.0
        return _jump_size(probability, self.base.mu, self.rate)

    def jump_probability(self, size: float) -> float:
        if not isinstance(self.base, GaussianStep):
            return 0.0
        return _jump_probability(size, self.base.mu, self.rate)

    def reversed(self) -> Step:
        return Added(self)

    @property
    def largest(self) -> float:
        return inf if self.base.largest == inf else self.largest_finite

    @property
    def largest_finite(self) -> float:
        most = self.base.largest_finite
        return inf if most == inf else float(log_mixture(self.rate, np.array([most]))[0])

    @property
    def scale(self) -> float:
        return max(self.rate * self.base.scale, 1e-12)


@dataclass(frozen=True)
class _Mirrored:
    """Moments with P and Q exchanged: E_P[e^{-sL}] = E_Q[e^{(1 - s) L}], conjugated so that lines again run upwards."""

    moments: Moments

    def cumulant(self, s: Complexes) -> Complexes:
        return np.asarray(self.moments.cumulant(1 - s.conj()).conj())

    def tilted(self, c: Floats) -> Floats:
        return np.asarray(self.moments.tilted(1 - c) * _TURNED)


@dataclass(frozen=True)
class Added(Step):
    """Q0 against the mixture (direction `add`): the reverse of `Removed`, with losses at most -ln(1 - rate)."""

    mirror: Removed
    slip = 1e-15

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.mirror.smooth

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        rare, often = self.mirror.centres
        return -rare, -often

    def sticks(self, k: Floats) -> Floats:
        """(1 - e^k (1 - rate)) * H(Q0 || P0) at the matching base loss; 0 from -ln(1 - rate) on."""
        left = -np.expm1(np.minimum(k + log1p(-self.mirror.rate), 0.0))
        alive = left > 0
        gap = k + log(self.mirror.rate) - np.log(np.where(alive, left, 1.0))
        return np.where(alive, left * self.mirror.base.reversed().sticks(gap), 0.0)

    def tails(self, t: Floats) -> Floats:
        base = self.mirror.base.reversed()
        return np.where(t >= -log1p(-self.mirror.rate), 0.0, base.tails(-self.mirror._finite_gap(-t)))

    def null_tails(self, t: Floats) -> Floats:
        base, rate = self.mirror.base.reversed(), self.mirror.rate
        gap = -self.mirror._finite_gap(-t)
        mixture = (1 - rate) * base.tails(gap) + rate * base.null_tails(gap)
        return np.where(t >= -log1p(-rate), 0.0, mixture)  # of about the size of P's: nothing underflows

    def cumulant(self, s: Complexes) -> Complexes:
        return _Mirrored(self.mirror).cumulant(s)

    def tilted(self, c: Floats) -> Floats:
        return _Mirrored(self.mirror).tilted(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self.mirror.envelope(1 - c, omega, share)

    def damped(self, decay: float) -> Step:
        return Added(replace(self.mirror, decay=decay))

    def jumps(self, decay: float) -> Moments | None:
        jumps = self.mirror.jumps(decay)
        return None if jumps is None else _Mirrored(jumps)

    def jump_size(self, probability: float) -> float:
        return self.mirror.jump_size(probability)

    def jump_probability(self, size: float) -> float:
        return self.mirror.jump_probability(size)

    def reversed(self) -> Step:
        return self.mirror

    @property
    def presence(self) -> float:  # type: ignore[override]
        return self.mirror.rate

    def sampled_like(self, mu: float, presence: float) -> Step:
        return Added(Removed(GaussianStep(mu), presence))

    @property
    def variation(self) -> float:
        return self.mirror.variation

    @property
    def largest(self) -> float:
        """That of the base's least loss; no more than -ln(1 - rate)."""
        base, rate = self.mirror.base, self.mirror.rate
        least = -inf if base.reversed().escape > 0 else -base.reversed().largest_finite
        return -log1p(-rate) if least == -inf else -float(log_mixture(rate, np.array([least]))[0])

    @property
    def scale(self) -> float:
        return self.mirror.scale


@dataclass(frozen=True)
class Exchanged(Step):
    """Gaussian, `replace`: (1-rate) N(0) + rate N(mu/2) against (1-rate) N(0) + rate N(-mu/2), unit variance.

    The two records pull the sum in opposite directions, each by half the sensitivity; the pair is symmetric
    (Lebeda, Regehr, Kamath, Steinke 2024).
    """

    mu: float
    rate: float
    decay: float = 0.0
    smooth = True
    centres = 0.0, 0.0

    def _loss(self, x: Numbers) -> Numbers:
        return self._log_mix(x) - self._log_mix(-x)

    def _log_mix(self, x: Numbers) -> Numbers:
        return log_mixture(self.rate, self.mu * x / 2 - self.mu**2 / 8)

    def _threshold(self, k: Floats) -> Floats:
        """Where the loss equals k: the positive root u = e^{mu x/2} of A u^2 - B u - e^k A = 0."""
        half = np.clip(k, -1400.0, 1400.0) / 2  # L is odd in x: solve with sinh so that neither sign cancels
        log_ratio = log1p(-self.rate) - log(self.rate) + self.mu**2 / 8
        return (half + _asinh_of_scaled_sinh(half, log_ratio)) * 2 / self.mu

    def sticks(self, k: Floats) -> Floats:
        x = self._threshold(k)
        with np.errstate(over="ignore"):
            growth = np.exp(np.minimum(k, 700.0))
        shared = (1 - self.rate) * -np.expm1(np.minimum(k, 700.0)) * ndtr(-x)
        own = self.rate * (ndtr(self.mu / 2 - x) - growth * ndtr(-self.mu / 2 - x))
        return np.asarray(np.clip(shared + own, 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        x = self._threshold(t)
        return np.asarray((1 - self.rate) * ndtr(-x) + self.rate * ndtr(self.mu / 2 - x))

    def null_tails(self, t: Floats) -> Floats:
        x = self._threshold(t)
        return np.asarray((1 - self.rate) * ndtr(-x) + self.rate * ndtr(-self.mu / 2 - x))

    def log_null_tails(self, t: Floats) -> Floats:
        x = self._threshold(t)
        still, moved = log1p(-self.rate) + log_ndtr(-x), log(self.rate) + log_ndtr(-self.mu / 2 - x)
        return np.asarray(np.logaddexp(still, moved))

    def cumulant(self, s: Complexes) -> Complexes:
        return self._law.cumulant(s)

    def tilted(self, c: Floats) -> Floats:
        return self._law.tilted(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self._law.envelope(c, omega, share)

    def damped(self, decay: float) -> Step:
        return replace(self, decay=decay)

    def jumps(self, decay: float) -> Moments | None:
        return Jumps(self._law, decay)

    def jump_size(self, probability: float) -> float:
        return _jump_size(probability / 2, self.mu / 2, self.rate)

    def jump_probability(self, size: float) -> float:
        return 2 * _jump_probability(size, self.mu / 2, self.rate)

    @cached_property
    def _law(self) -> NoiseLaw:
        """A jump is what either record's part in the mixture is worth."""
        mu, end = self.mu, FARTHEST + self.mu
        return NoiseLaw(
            loss=self._loss,
            log_density=lambda x: _log_normal(x) + self._log_mix(-x),
            log_jump=lambda x: _log_cosh(mu * x / 2) + (log(2 * self.rate) - mu * mu / 8),
            reach=(-end, end),
            lift=_lift(mu),
            decay=self.decay,
        )

    @property
    def presence(self) -> float:  # type: ignore[override]
        return self.rate

    def sampled_like(self, mu: float, presence: float) -> Step:
        return Exchanged(mu, presence)

    @property
    def variation(self) -> float:
        return self.rate * GaussianStep(self.mu).variation

    @property
    def largest(self) -> float:
        return inf

    @property
    def scale(self) -> float:
        return max(self.rate * self.mu, 1e-12)


def _log_normal(x: Numbers) -> Numbers:
    return -x * x / 2 - _LOG_ROOT_TWO_PI


def _log_cosh(x: Numbers) -> Numbers:
    size = np.where(x.real < 0, -x, x)
    return np.asarray(size + np.log((1 + np.exp(-2 * size)) / 2))


def _jump_size(probability: float, mu: float, rate: float) -> float:
    """rate * e^{mu x - mu^2 / 2} at the noise x that is exceeded with this probability."""
    return float(np.exp(min(log(rate) - mu * mu / 2 - mu * float(ndtri(probability)), 300.0)))


def _jump_probability(size: float, mu: float, rate: float) -> float:
    return float(ndtr(-(log(size / rate) + mu * mu / 2) / mu))


def _lift(mu: float) -> float:
    """How far to leave the real axis: well short of the mixture's first zero, and cheap in the Gaussian weight."""
    return min(1.0, np.pi / (2 * mu))


def _asinh_of_scaled_sinh(half: Floats, log_ratio: float) -> Floats:
    """asinh(e^{log_ratio} sinh(half)) without overflow."""
    size = np.abs(half)
    log_sinh = size + np.log(-np.expm1(-2 * np.maximum(size, 1e-300))) - log(2)
    log_y = log_ratio + log_sinh
    with np.errstate(over="ignore"):
        moderate = np.arcsinh(np.exp(np.minimum(log_y, 300.0)))
    return np.asarray(np.sign(half) * np.where(log_y > 300.0, log_y + log(2), moderate))


def _loss_nodes(base: Step, rate: float, s: Numbers) -> Nodes:
    """The mixture's losses and the logarithms of their Q0-weights: exact atoms, and nodes for a Laplace density."""
    if isinstance(base, AtomStep):
        atoms, log_masses = base.losses, base.log_null_masses
        if base.hidden > 0:  # of Q, where the base's loss is -inf
            atoms, log_masses = np.append(atoms, -1e4), np.append(log_masses, log(base.hidden))
        return Nodes(log_mixture(rate, atoms), log_masses)
    if isinstance(base, LaplaceStep):
        ends = np.array([-base.epsilon, base.epsilon])
        between, log_weights = sampled_density(base.epsilon, rate, -base.epsilon, s)
        heavy = np.array([-log(2), -log(2) - base.epsilon])
        return Nodes(np.concatenate([log_mixture(rate, ends), between]), np.concatenate([heavy, log_weights]))
    raise TypeError(f"no nodes for {type(base).__name__}")
