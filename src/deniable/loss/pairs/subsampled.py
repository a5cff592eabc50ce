"""One run on a Poisson sample: the person takes part with probability `rate` only.

With base pair (P0, Q0), the person's release is the mixture (1 - rate) Q0 + rate P0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log1p

import numpy as np

from deniable.loss.arrays import EPS, Complexes, Floats, Numbers, log_mixture
from deniable.loss.moments.analytic_noise import Jumps, NoiseLaw
from deniable.loss.moments.laplace_density import sampled_density
from deniable.loss.moments.nodes import Nodes, log_moments, tilted_moments
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.bounded_range import BoundedRangeStep
from deniable.loss.pairs.gaussian import (
    FARTHEST_SIGMAS,
    MOST_BLURRED_MU,
    REACH_SIGMAS,
    GaussianStep,
    jump_probability,
    jump_size,
    lift,
    log_normal,
)
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.masses import MassStep
from deniable.loss.pairs.step import Mirrored, Moments, Step


def _gap(k: Floats, rate: float) -> Floats:
    """The base loss at which the mixture's loss is k: ln(1 + (e^k - 1)/rate); -inf below the mixture's least loss."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        share = np.expm1(np.minimum(k, 36.0)) / rate
        small = np.log1p(np.maximum(share, -1.0))
        least = np.log(np.maximum(np.exp(np.minimum(k, 0.0)) - (1 - rate), 0.0) / rate)  # where 1 + share would cancel
        large = k - log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(k, 36.0)))
    return np.where(k > 36.0, large, np.where((share < -0.5) & (rate > 0.5), least, small))


@dataclass(frozen=True)
class SubsampledRemove(Step):
    """Mixture against Q0: the person's data set first (add-remove and zero-out, direction `remove`)."""

    base: Step
    rate: float
    decay: float = 0.0
    rate_error: float = 0.0
    """Round-off of the rate, where it is a product of others."""

    @property
    def slip(self) -> float:  # type: ignore[override]
        return max(2 * EPS, self.base.slip)

    @property
    def roundoff(self) -> float:
        return self.base.roundoff

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.base.smooth

    @property
    def has_joint_sticks(self) -> bool:  # type: ignore[override]
        return self.base.has_joint_sticks

    @property
    def tail_cost(self) -> int:  # type: ignore[override]
        return self.base.tail_cost

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        """ln(1 - rate), where jumps are rare; E_Q[L], where many small ones make up for it."""
        if not isinstance(self.base, GaussianStep) or self.base.mu > MOST_BLURRED_MU:
            return super().centres
        return log1p(-self.rate), float(self.tilted_moments(np.zeros(1))[1, 0])

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

    def blur(self, k: Floats) -> Floats:
        """Of k itself, of the rate, and of the base's loss, which moves the mixture's by the share P0 has in it."""
        gap, growth = _gap(k, self.rate), np.expm1(-np.maximum(k, -700.0))
        inside = np.isfinite(gap)
        gap, share = np.where(inside, gap, 0.0), np.clip(self.rate - (1 - self.rate) * growth, 0.0, 1.0)
        of_base = np.where(inside, share * (self.base.blur(gap) + 4 * EPS * np.abs(gap)), 0.0)
        return np.asarray(4 * EPS * (np.abs(k) + np.minimum(np.abs(growth), 1 / (1 - self.rate))) + of_base)

    def _finite_gap(self, t: Floats) -> Floats:
        return np.maximum(_gap(t, self.rate), -1e300)

    def cumulant(self, s: Complexes) -> Complexes:
        return self._law.cumulant(s) if self._law is not None else log_moments(_loss_nodes(self.base, self.rate, s), s)

    def tilted_moments(self, c: Floats) -> Floats:
        return (
            self._law.tilted_moments(c)
            if self._law is not None
            else tilted_moments(_loss_nodes(self.base, self.rate, c), c)
        )

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
            log_density=log_normal,
            log_jump=lambda x: mu * x + (log(rate) - mu * mu / 2),
            reach=(-REACH_SIGMAS, FARTHEST_SIGMAS + mu),
            lift=lift(mu),
            decay=self.decay,
        )

    @property
    def most_gain(self) -> float:  # type: ignore[override]
        return self.rate * (1 + 2 * self.rate_error)

    @property
    def presence(self) -> float:  # type: ignore[override]
        return self.rate

    def sampled_like(self, mu: float, presence: float) -> Step:
        return SubsampledRemove(GaussianStep(mu), presence)

    @property
    def variation(self) -> float:
        return self.rate * self.base.variation

    @property
    def escape(self) -> float:
        return self.rate * self.base.escape

    def damp(self, decay: float) -> Step:
        return self if self._law is None else replace(self, decay=decay)

    def jumps(self, decay: float) -> Moments | None:
        return None if self._law is None else Jumps(self._law, decay)

    def jump_size(self, probability: float) -> float:
        if not isinstance(self.base, GaussianStep):
            return 0.0
        return jump_size(probability, self.base.mu, self.rate)

    def jump_probability(self, size: float) -> float:
        if not isinstance(self.base, GaussianStep):
            return 0.0
        return jump_probability(size, self.base.mu, self.rate)

    def reverse(self) -> Step:
        return SubsampledAdd(self)

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
class ReversedStep(Step):
    """A step with P and Q exchanged: all that follows from the step it mirrors."""

    mirror: Step

    @property
    def tail_cost(self) -> int:  # type: ignore[override]
        return self.mirror.tail_cost

    def blur(self, k: Floats) -> Floats:
        return self.mirror.blur(-k)

    def cumulant(self, s: Complexes) -> Complexes:
        return Mirrored(self.mirror).cumulant(s)

    def tilted_moments(self, c: Floats) -> Floats:
        return Mirrored(self.mirror).tilted_moments(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self.mirror.envelope(1 - c, omega, share)

    def jumps(self, decay: float) -> Moments | None:
        jumps = self.mirror.jumps(decay)
        return None if jumps is None else Mirrored(jumps)

    def jump_size(self, probability: float) -> float:
        return self.mirror.jump_size(probability)

    def jump_probability(self, size: float) -> float:
        return self.mirror.jump_probability(size)

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        rare, often = self.mirror.centres
        return -rare, -often

    def reverse(self) -> Step:
        return self.mirror


@dataclass(frozen=True)
class SubsampledAdd(ReversedStep):
    """Q0 against the mixture (direction `add`): `SubsampledRemove` reversed, losses at most -ln(1 - rate)."""

    mirror: SubsampledRemove
    slip = 2 * EPS

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.mirror.smooth

    @property
    def has_joint_sticks(self) -> bool:  # type: ignore[override]
        return self.mirror.has_joint_sticks

    def sticks(self, k: Floats) -> Floats:
        """(1 - e^k (1 - rate)) * H(Q0 || P0) at the matching base loss; 0 from -ln(1 - rate) on."""
        left = -np.expm1(np.minimum(k + log1p(-self.mirror.rate), 0.0))
        return np.where(left > 0, left * self.mirror.base.reverse().sticks(-self.mirror._finite_gap(-k)), 0.0)

    @property
    def roundoff(self) -> float:
        return self.mirror.roundoff + self.mirror.rate_error / (1 - self.mirror.rate)

    def tails(self, t: Floats) -> Floats:
        base = self.mirror.base.reverse()
        return np.where(t >= -log1p(-self.mirror.rate), 0.0, base.tails(-self.mirror._finite_gap(-t)))

    def null_tails(self, t: Floats) -> Floats:
        base, rate = self.mirror.base.reverse(), self.mirror.rate
        gap = -self.mirror._finite_gap(-t)
        mixture = (1 - rate) * base.tails(gap) + rate * base.null_tails(gap)
        return np.where(t >= -log1p(-rate), 0.0, mixture)  # of about the size of P's: nothing underflows

    def damp(self, decay: float) -> Step:
        return SubsampledAdd(replace(self.mirror, decay=decay))

    @property
    def most_gain(self) -> float:  # type: ignore[override]
        return self.mirror.most_gain

    @property
    def presence(self) -> float:  # type: ignore[override]
        return self.mirror.rate

    def sampled_like(self, mu: float, presence: float) -> Step:
        return SubsampledAdd(SubsampledRemove(GaussianStep(mu), presence))

    @property
    def variation(self) -> float:
        return self.mirror.variation

    @property
    def largest(self) -> float:
        """That of the base's least loss; no more than -ln(1 - rate)."""
        base, rate = self.mirror.base, self.mirror.rate
        least = -inf if base.reverse().escape > 0 else -base.reverse().largest_finite
        return -log1p(-rate) if least == -inf else -float(log_mixture(rate, np.array([least]))[0])

    @property
    def scale(self) -> float:
        return self.mirror.scale


def _loss_nodes(base: Step, rate: float, s: Numbers) -> Nodes:
    """The mixture's losses and the logarithms of their Q0-weights: exact atoms, and nodes for a Laplace density."""
    if isinstance(base, AtomStep | MassStep):
        atoms, log_masses = base.losses, base.log_null_masses
        if (hidden := base.reverse().escape) > 0:  # of Q, where the base's loss is -inf
            atoms, log_masses = np.append(atoms, -1e4), np.append(log_masses, log(hidden))
        return Nodes(log_mixture(rate, atoms), log_masses)
    if isinstance(base, LaplaceStep):
        ends = np.array([-base.epsilon, base.epsilon])
        between, log_weights = sampled_density(base.epsilon, rate, -base.epsilon, s)
        heavy = np.array([-log(2), -log(2) - base.epsilon])
        return Nodes(np.concatenate([log_mixture(rate, ends), between]), np.concatenate([heavy, log_weights]))
    if isinstance(base, BoundedRangeStep):
        between, log_weights = sampled_density(base.epsilon, rate, -base.epsilon, s)
        return Nodes(between, log_weights + base.log_share)
    raise TypeError(f"no nodes for {type(base).__name__}")
