"""One run on a Poisson sample, `replace`: what is known of the output where the sampled record is left out.

- `SubsampledReplaceSum`: Gaussian noise on a sum of clipped vectors (DP-SGD). A record that is left out contributes 0,
  half-way between a record and its opposite.
- `SubsampledReplace`: any query, of which nothing is known.

Guarantee of the latter. With and without the sampled record, and with the record that replaces it, the output is P0,
R0 or Q0, any two as hard to tell apart as the base mechanism says: leaving a record out may look like any other
record's presence (a count, where the other record counts nothing, attains it). The releases are (1 - rate) R0 +
rate P0 and (1 - rate) R0 + rate Q0; by advanced joint convexity (Balle, Barthe, Gaboardi 2018, Theorem 2) their
divergence at k >= 0 is at most that of `SubsampledRemove`, and for k < 0 the same holds with the records exchanged.
Both halves together are again the divergences of one pair: losses above 0 as in `SubsampledRemove`, losses below 0
their mirror image, the rest at 0. At rate 1 it is the base pair, and a smaller rate never raises it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, expm1, inf, log, log1p

import numpy as np
from scipy.special import log_ndtr, ndtr

from deniable.checks import RefusedError
from deniable.loss.arrays import EPS, Complexes, Floats, Numbers, log_mixture
from deniable.loss.moments.analytic_noise import Jumps, NoiseLaw
from deniable.loss.moments.laplace_density import mirror_measure, sampled_density
from deniable.loss.moments.nodes import Nodes, log_moments, tilted_moments
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.blend import Blend
from deniable.loss.pairs.bounded_range import BoundedRangeStep
from deniable.loss.pairs.gaussian import (
    FARTHEST_SIGMAS,
    MOST_BLURRED_MU,
    GaussianStep,
    jump_probability,
    jump_size,
    lift,
    log_normal,
)
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.masses import MassStep
from deniable.loss.pairs.pair import STICK, Functional
from deniable.loss.pairs.sampled_half import SampledHalf, are_known, join_halves
from deniable.loss.pairs.step import ROUNDOFF, Moments, Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.upper import Upper

Base = LaplaceStep | GaussianStep | BoundedRangeStep | Blend


def subsample_replace(base: Base | AtomStep | MassStep, rate: float, rate_error: float = 0.0) -> Step:
    """The sampled step of a symmetric base: atoms and what is hidden remain so; a density is `SubsampledReplace`."""
    if isinstance(base, MassStep):
        return _sampled_masses(base, rate)
    if not isinstance(base, AtomStep):
        return SubsampledReplace(base, rate, rate_error)
    up, hidden = (1 - rate) * base.down + rate * base.up, rate * base.hidden
    loss = float(log_mixture(rate, np.array([base.epsilon]))[0])
    still = base.still + (1 - rate) * (base.up + base.hidden - base.down)  # what is left of 1
    return AtomStep(loss, up, still, base.down, hidden, slip=8 * EPS, unsure=rate_error / (1 - rate))


def _sampled_masses(base: MassStep, rate: float) -> MassStep:
    """Losses above 0 as in `SubsampledRemove`, their mirror image, and the rest at 0."""
    if not base.symmetric:
        raise RefusedError(
            "{adjacency} replace is not proved for samples of a pair that changes when its sides are exchanged",
            "adjacency",
        )
    above = base.losses > 0
    losses, log_null = log_mixture(rate, base.losses[above]).real, base.log_null_masses[above]
    still = 1 - float(np.exp(log_null).sum() + np.exp(log_null + losses).sum()) - rate * base.hidden
    joined = np.concatenate([-losses[::-1], [0.0], losses])
    masses = np.concatenate([(log_null + losses)[::-1], [log(max(still, 1e-300))], log_null])
    hidden = rate * base.hidden
    return MassStep(f"{base.name}, sampled {rate!r}", joined, masses, hidden, hidden, symmetric=True, slip=base.slip)


@dataclass(frozen=True)
class SubsampledReplace(Step):
    """Noise on a Poisson sample: both halves of `SubsampledRemove` and its mirror image, with an atom at 0."""

    base: Base
    rate: float
    rate_error: float = 0.0
    decay: float = 0.0

    @cached_property
    def _half(self) -> SubsampledRemove:
        return SubsampledRemove(self.base, self.rate, rate_error=self.rate_error)

    def sticks(self, k: Floats) -> Floats:
        above, below = self._half.sticks(np.abs(k)), np.minimum(k, 0.0)
        return np.asarray(np.exp(below) * above - np.expm1(below))

    def tails(self, t: Floats) -> Floats:
        return _by_sign(t, self._half.tails, self._half.reverse().tails)

    def null_tails(self, t: Floats) -> Floats:
        return _by_sign(t, self._half.null_tails, self._half.reverse().null_tails)

    def log_null_tails(self, t: Floats) -> Floats:
        return _by_sign(t, self._half.log_null_tails, self._half.reverse().log_null_tails)

    def blur(self, k: Floats) -> Floats:
        """Losses stay on their side of 0."""
        return np.asarray(np.minimum(self._half.blur(np.abs(k)), np.abs(k)))

    @property
    def tail_cost(self) -> int:  # type: ignore[override]
        return self.base.tail_cost

    @property
    def most_gain(self) -> float:  # type: ignore[override]
        return self._half.most_gain

    @property
    def alike(self) -> tuple[Step, int] | None:  # type: ignore[override]
        """A Poisson sample that holds the record as often."""
        base = self.base if not isinstance(self.base, Blend) else max(self.base.parts, key=lambda part: part[0])[1]
        return (SubsampledRemove(base, self.rate), 1) if isinstance(base, GaussianStep) else None

    def _round_outwards(self, functional: Functional, k: float) -> Upper:
        """Of the half where k is: its round-off does not reach the atom at 0."""
        if k >= 0:
            return self._half._round_outwards(functional, k)
        if functional is not STICK:
            return self._half.reverse()._round_outwards(functional, k)
        above = self._half._round_outwards(STICK, -k)
        least, most = (exp(k) * end - expm1(k) for end in (above.least, above))
        return Upper.between(least * (1 - ROUNDOFF), min(most * (1 + ROUNDOFF), 1.0))

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._nodes(s), s)

    def tilted_moments(self, c: Floats) -> Floats:
        return _known_moments(self, self._gaussians, c)

    @cached_property
    def still(self) -> float:
        """Q-mass of the loss 0."""
        return 1 - float(self._half.null_tails(np.zeros(1))[0]) - float(self._half.tails(np.zeros(1))[0])

    @property
    def atom(self) -> float:  # type: ignore[override]
        return self.still if self._gaussians else 1.0

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        blurred = bool(self._gaussians) and max(half.mu for _, half in self._gaussians) <= MOST_BLURRED_MU
        return (0.0, 0.0) if blurred else super().centres

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Lemma A9."""
        if not self._gaussians:
            return super().envelope(c, omega, share)
        logs = [np.full(omega.shape, log(max(self.still, 1e-300)))]
        logs += [log(part) + half.log_envelope(at, omega) for part, half in self._gaussians for at in (c, 1 - c)]
        return np.asarray(np.logaddexp.reduce(logs))

    @cached_property
    def _gaussians(self) -> tuple[tuple[float, SampledHalf], ...]:
        """Shares and Gaussian parts of the base; none where it is no Gaussian, nor a blend of them."""
        parts = self.base.parts if isinstance(self.base, Blend) else ((1.0, self.base),)
        return tuple(
            (share, SampledHalf(step.mu, self.rate, self.decay))
            for share, step in parts
            if isinstance(step, GaussianStep)
        )

    def damp(self, decay: float) -> Step:
        return replace(self, decay=decay) if self._gaussians else self

    def jumps(self, decay: float) -> Moments | None:
        return _HalvesJumps(self, decay) if self._gaussians else None

    def jump_size(self, probability: float) -> float:
        found = [jump_size(min(probability / (2 * part), 0.49), half.mu, self.rate) for part, half in self._gaussians]
        return max(found, default=0.0)

    def jump_probability(self, size: float) -> float:
        return sum(2 * part * jump_probability(size, half.mu, self.rate) for part, half in self._gaussians)

    def _nodes(self, s: Numbers) -> Nodes:
        """Losses above 0, their mirror image, and what is left at 0."""
        losses, weights = self._half_nodes(s)
        halves = [(losses, weights), mirror_measure(losses, weights), (np.zeros(1), np.log([max(self.still, 1e-300)]))]
        joined = [np.concatenate(parts) for parts in zip(*halves, strict=True)]
        return Nodes(joined[0], joined[1], self._missing)

    @cached_property
    def _missing(self) -> float:
        """Mass that damping takes away."""
        if not self.decay:
            return 0.0
        whole = replace(self, decay=0.0)
        return float(np.exp(_HalvesJumps(whole, self.decay).tilted_moments(np.zeros(1))[0, 0]))

    def _half_nodes(self, s: Numbers) -> tuple[Numbers, Numbers]:
        """Of the losses above 0: the atom at a Laplace law's end and nodes for its density, or a Gaussian's half."""
        if self._gaussians:
            return join_halves(self._gaussians, s)
        if isinstance(self.base, BoundedRangeStep):
            between, log_weights = sampled_density(self.base.epsilon, self.rate, 0.0, s)
            return between, log_weights + self.base.log_share
        assert isinstance(self.base, LaplaceStep)
        end, heavy = log_mixture(self.rate, np.array([self.base.epsilon])), np.array([-log(2) - self.base.epsilon])
        between, log_weights = sampled_density(self.base.epsilon, self.rate, 0.0, s)
        return np.concatenate([end, between]), np.concatenate([heavy, log_weights])

    @property
    def largest(self) -> float:
        return self._half.largest

    @property
    def scale(self) -> float:
        return self._half.scale


def _by_sign(t: Floats, above: Callable[[Floats], Floats], below: Callable[[Floats], Floats]) -> Floats:
    """The one function where t >= 0, the other one elsewhere."""
    found, up = np.empty(t.shape), t >= 0
    found[up], found[~up] = above(t[up]), below(t[~up])
    return found


@dataclass(frozen=True)
class _HalvesJumps:
    """What damping `whole` by `decay` takes away, on both sides of 0."""

    whole: SubsampledReplace
    decay: float

    def cumulant(self, s: Complexes) -> Complexes:
        nodes = self._nodes(s)
        return log_moments(nodes, s) if nodes.losses.size else np.full(s.shape, -inf + 0j)

    def tilted_moments(self, c: Floats) -> Floats:
        return _known_moments(self, self.whole._gaussians, c)

    def _nodes(self, s: Numbers) -> Nodes:
        losses, weights = join_halves(self.whole._gaussians, s, self.decay)
        mirrored = mirror_measure(losses, weights)
        return Nodes(np.concatenate([losses, mirrored[0]]), np.concatenate([weights, mirrored[1]]), None)


def _known_moments(
    law: SubsampledReplace | _HalvesJumps, parts: Sequence[tuple[float, SampledHalf]], c: Floats
) -> Floats:
    """K, K' and K'' at every c; inf where they are not known."""
    known = are_known(parts, c) if parts else np.ones(c.shape, dtype=bool)
    found = np.full((3, c.size), inf)
    if known.any():
        nodes = law._nodes(c[known])
        found[:, known] = tilted_moments(nodes, c[known]) if nodes.losses.size else [[-inf], [0.0], [0.0]]
    return found


@dataclass(frozen=True)
class SubsampledReplaceSum(Step):
    """Gaussian, `replace`: (1-rate) N(0) + rate N(mu/2) against (1-rate) N(0) + rate N(-mu/2), unit variance.

    The two records pull the sum in opposite directions, each by half the sensitivity; the pair is symmetric
    (Lebeda, Regehr, Kamath, Steinke 2024).
    """

    mu: float
    rate: float
    decay: float = 0.0
    rate_error: float = 0.0
    """Round-off of the rate, where it is a product of others."""
    smooth = True

    @property
    def centres(self) -> tuple[float, float]:  # type: ignore[override]
        return (0.0, 0.0) if self.mu / 2 <= MOST_BLURRED_MU else super().centres

    def _loss(self, x: Numbers) -> Numbers:
        return self._log_mix(x) - self._log_mix(-x)

    def _log_mix(self, x: Numbers) -> Numbers:
        return log_mixture(self.rate, self.mu * x / 2 - self.mu**2 / 8)

    def _threshold(self, k: Floats) -> Floats:
        """Where the loss equals k: the positive root u = e^{mu x/2} of A u^2 - B u - e^k A = 0."""
        half = k / 2  # L is odd in x: solve with sinh so that neither sign cancels
        return (half + _asinh_of_scaled_sinh(half, self._log_ratio)) * 2 / self.mu

    @property
    def _log_ratio(self) -> float:
        return log1p(-self.rate) - log(self.rate) + self.mu**2 / 8

    def sticks(self, k: Floats) -> Floats:
        x, small = self._threshold(k), np.minimum(k, 1.0)
        shared = (1 - self.rate) * -np.expm1(small) * ndtr(-x)
        own = self.rate * (ndtr(self.mu / 2 - x) - np.exp(small) * ndtr(-self.mu / 2 - x))
        with np.errstate(over="ignore", under="ignore"):
            large = self.tails(k) - np.exp(np.minimum(k + self.log_null_tails(k), 0.0))
        return np.asarray(np.clip(np.where(k > 1, large, shared + own), 0.0, 1.0))

    def blur(self, k: Floats) -> Floats:
        """Of k, of the logarithm that asinh is taken of, and of the Gaussian tails' arguments, by dk / d(mu x / 2).

        None at 0, which is the loss of x = 0.
        """
        half = np.maximum(np.abs(k) / 2, 1e-300)
        y = _asinh_of_scaled_sinh(half, self._log_ratio)
        logarithms = abs(log(self.rate)) + self.mu**2 / 8 + half
        threshold = 4 * EPS * (half + y + np.minimum(y, 1.0) * logarithms)
        noise = 3 * EPS * (self.mu**2 / 2 + half + y)
        return np.where(k == 0, 0.0, 2 / (1 + np.tanh(y) / np.tanh(half)) * (threshold + noise))

    @property
    def roundoff(self) -> float:
        return ROUNDOFF + self.rate_error / (1 - self.rate)

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

    def tilted_moments(self, c: Floats) -> Floats:
        return self._law.tilted_moments(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self._law.envelope(c, omega, share)

    def damp(self, decay: float) -> Step:
        return replace(self, decay=decay)

    def jumps(self, decay: float) -> Moments | None:
        return Jumps(self._law, decay)

    def jump_size(self, probability: float) -> float:
        return jump_size(probability / 2, self.mu / 2, self.rate)

    def jump_probability(self, size: float) -> float:
        return 2 * jump_probability(size, self.mu / 2, self.rate)

    @cached_property
    def _law(self) -> NoiseLaw:
        """A jump is what either record's part in the mixture is worth."""
        mu, end = self.mu, FARTHEST_SIGMAS + self.mu
        return NoiseLaw(
            loss=self._loss,
            log_density=lambda x: log_normal(x) + self._log_mix(-x),
            log_jump=lambda x: _log_cosh(mu * x / 2) + (log(2 * self.rate) - mu * mu / 8),
            reach=(-end, end),
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
        return SubsampledReplaceSum(mu, presence)

    @property
    def variation(self) -> float:
        return self.rate * GaussianStep(self.mu).variation

    @property
    def largest(self) -> float:
        return inf

    @property
    def scale(self) -> float:
        return max(self.rate * self.mu, 1e-12)


def _log_cosh(x: Numbers) -> Numbers:
    size = np.where(x.real < 0, -x, x)
    return np.asarray(size + np.log((1 + np.exp(-2 * size)) / 2))


def _asinh_of_scaled_sinh(half: Floats, log_ratio: float) -> Floats:
    """asinh(e^{log_ratio} sinh(half)) without overflow."""
    size = np.abs(half)
    log_sinh = size + np.log(-np.expm1(-2 * np.maximum(size, 1e-300))) - log(2)
    log_y = log_ratio + log_sinh
    with np.errstate(over="ignore"):
        moderate = np.arcsinh(np.exp(np.minimum(log_y, 300.0)))
    return np.asarray(np.sign(half) * np.where(log_y > 300.0, log_y + log(2), moderate))
