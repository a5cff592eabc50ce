"""One run of one mechanism: its dominating pair in closed form.

Every step knows, for whole arrays at once, the hockey-stick divergence, both tails of its loss, and its
cumulant function log E_Q[e^{sL}] for complex s, from which compositions are made (loss.contour, loss.grid).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import erf, exp, inf, log, nan, nextafter, sqrt
from operator import attrgetter
from typing import Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.pair import Pair
from deniable.loss.quadrature import log_fall
from deniable.loss.values import Upper, upper

__all__ = ["AtomStep", "GaussianStep", "LaplaceStep", "Moments", "Step"]

ROUNDOFF = 2e-15  # relative error granted to a sum of a few special-function values


class Moments(Protocol):
    """A measure of losses, known by the logarithm of its moments."""

    def cumulant(self, s: Complexes) -> Complexes:
        """log of the integral of e^{sL} for complex s on one vertical line (equal real parts)."""

    def tilted(self, c: Floats) -> Floats:
        """The same and its first two derivatives (rows) at every real c; inf where they cannot be had."""


class Step(Pair):
    """A pair whose functionals are elementary; `smooth` tells that its characteristic function dies out."""

    smooth: bool = False
    centres: tuple[float, float] = (nan, nan)
    """The loss around which the law is rough, on any scale, while elsewhere it is smooth on the scale of the distance:
    two guesses, for rare jumps and for many. NaN where there is no such single loss."""

    @abstractmethod
    def sticks(self, k: Floats) -> Floats:
        """Hockey-stick divergence at every k."""

    slip: float = 0.0
    """Relative round-off of the losses themselves."""

    @abstractmethod
    def tails(self, t: Floats) -> Floats:
        """P(L > t) at every t."""

    @abstractmethod
    def null_tails(self, t: Floats) -> Floats:
        """Q(L > t) at every t."""

    def log_null_tails(self, t: Floats) -> Floats:
        """ln Q(L > t) at every t, also where it underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.null_tails(t)))

    @abstractmethod
    def cumulant(self, s: Complexes) -> Complexes:
        """log E_Q[e^{sL}; L finite] for complex s on one vertical line (equal real parts)."""

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """ln of a bound on |E_Q[e^{sL}]| at Re s = c and all |Im s| >= omega, however often atoms make it come back.

        Of a smooth step on (|Im s| / omega)^share times that (Lemma C4).
        """
        return np.full(omega.shape, self.tilted(np.array([c]))[0, 0])

    presence: float = 1.0
    """Probability that the person takes part."""

    def sampled_like(self, mu: float, presence: float) -> Step:
        """Gaussian noise on a sample of the same kind."""
        raise TypeError(f"{type(self).__name__} is not sampled")

    def damped(self, decay: float) -> Step:
        """The same step, each outcome's mass times e^{-(decay * jump)^8}: without rare large losses (Lemma J1)."""
        return self

    def jumps(self, decay: float) -> Moments | None:
        """What damping this step by `decay` takes away; None where it has no rare large losses."""
        return None

    def jump_size(self, probability: float) -> float:
        """About the jump that is exceeded with this probability (0: there are none)."""
        return 0.0

    def jump_probability(self, size: float) -> float:
        """About how probable a larger jump is."""
        return 0.0

    def tilted(self, c: Floats) -> Floats:
        """The cumulant function and its first two derivatives (rows) at every real c, here by complex differences."""
        width = 0.02 / self.scale
        around = 1j * width * np.array([0.0, 1e-7, 1.0])
        at, close, near = np.array([self.cumulant(point + around) for point in c]).T
        return np.array([at.real, close.imag / (1e-7 * width), 2 * (at.real - near.real) / width**2])

    @property
    def escape(self) -> float:
        return 0.0

    def reversed(self) -> Step:
        return self  # symmetric unless a subclass says otherwise

    @property
    def variation(self) -> float:
        """Total variation: the divergence at 0."""
        return float(self.hockey_stick(0.0))

    def hockey_stick(self, k: float) -> Upper:
        slip = self.slip * abs(k)
        value = float(self.sticks(np.array([k]))[0])
        tail, before = self.tails(np.array([k, k - slip])).tolist()
        return upper(value, ROUNDOFF * min(1.0, tail) + slip * min(1.0, before), high=1.0)

    def tail(self, t: float) -> Upper:
        value = float(self.tails(np.array([t]))[0])
        return upper(value, ROUNDOFF * value, high=1.0)

    def null_tail(self, t: float) -> Upper:
        value = float(self.null_tails(np.array([t]))[0])
        return upper(value, ROUNDOFF * value, high=1.0)


@dataclass(frozen=True)
class GaussianStep(Step):
    """N(mu, 1) against N(0, 1): L is N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q.

    Covers any composition of Gaussian mechanisms, mu^2 = sum of 1/noise^2.
    """

    mu: float
    smooth = True
    centres = 0.0, 0.0

    def sticks(self, k: Floats) -> Floats:
        """Phi(mu/2 - k/mu) - e^k Phi(-mu/2 - k/mu) (erratum 3), by scaled functions where it would cancel."""
        a = self.mu / 2 - k / self.mu
        in_tail = a < 0
        with np.errstate(over="ignore", under="ignore"):
            safe = np.where(in_tail, a, 0.0)
            tail = 0.5 * np.exp(-safe * safe / 2) * (erfcx(-safe / sqrt(2)) - erfcx((self.mu - safe) / sqrt(2)))
            body = ndtr(a) - np.exp(np.minimum(k, 700) + log_ndtr(a - self.mu) + np.maximum(k - 700, 0))
        return np.asarray(np.clip(np.where(in_tail, tail, body), 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(self.mu / 2 - t / self.mu))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(ndtr(-self.mu / 2 - t / self.mu))

    def log_null_tails(self, t: Floats) -> Floats:
        return np.asarray(log_ndtr(-self.mu / 2 - t / self.mu))

    def cumulant(self, s: Complexes) -> Complexes:
        return np.asarray(0.5 * self.mu**2 * s * (s - 1))

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return 0.5 * self.mu**2 * c * (c - 1) + log_fall(0.5 * (self.mu * omega) ** 2, share / 2)

    def tilted(self, c: Floats) -> Floats:
        return self.mu**2 * np.array([0.5 * c * (c - 1), c - 0.5, np.ones_like(c)])

    @property
    def variation(self) -> float:
        return erf(self.mu / sqrt(8))

    @property
    def largest(self) -> float:
        return inf

    @property
    def scale(self) -> float:
        return self.mu


@dataclass(frozen=True)
class LaplaceStep(Step):
    """Laplace noise of scale 1/epsilon on a shift of 1: atoms at +-epsilon, a density between.

    Jia 2023, Theorem 11.
    """

    epsilon: float

    def sticks(self, k: Floats) -> Floats:
        inside = -np.expm1(np.minimum(k - self.epsilon, 0) / 2)
        below = -np.expm1(np.minimum(k, 0))
        return np.where(k >= self.epsilon, 0.0, np.where(k <= -self.epsilon, below, inside))

    def tails(self, t: Floats) -> Floats:
        inside = 1 - 0.5 * np.exp((np.minimum(t, self.epsilon) - self.epsilon) / 2)
        return np.where(t >= self.epsilon, 0.0, np.where(t < -self.epsilon, 1.0, inside))

    def null_tails(self, t: Floats) -> Floats:
        inside = 0.5 * np.exp(-(self.epsilon + np.clip(t, -self.epsilon, self.epsilon)) / 2)
        return np.where(t >= self.epsilon, 0.0, np.where(t < -self.epsilon, 1.0, inside))

    def log_null_tails(self, t: Floats) -> Floats:
        inside = -(self.epsilon + np.clip(t, -self.epsilon, self.epsilon)) / 2 - log(2)
        return np.where(t >= self.epsilon, -inf, np.where(t < -self.epsilon, 0.0, inside))

    def cumulant(self, s: Complexes) -> Complexes:
        left, right = -s * self.epsilon, (s - 1) * self.epsilon
        top = np.maximum(left.real, right.real)
        a, b = np.exp(left - top), np.exp(right - top)
        half = 2 * s - 1
        near = np.abs(half) < 1e-8
        middle = np.where(near, self.epsilon * np.exp(0.5 * (left + right) - top), (b - a) / np.where(near, 1.0, half))
        return np.asarray(top + np.log(0.5 * (a + b + middle)))

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Both atoms in phase, and the density, whose share falls like 1 / omega."""
        atoms = np.logaddexp(-c * self.epsilon, (c - 1) * self.epsilon) - log(2)
        alone = atoms + np.log1p(1 / np.abs(2 * c - 1 + 2j * omega))
        return np.asarray(np.minimum(super().envelope(c, omega, share), alone))

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def scale(self) -> float:
        return self.epsilon


@dataclass(frozen=True)
class AtomStep(Step):
    """Loss of +epsilon, 0 or -epsilon with P-masses (up, still, down), Q-masses mirrored, and `hidden` at +-inf.

    Randomized response, and the dominating pairs of (epsilon, delta)-DP and alpha-TVD (Kairouz et al. 2015).
    """

    epsilon: float
    up: float
    still: float
    down: float
    hidden: float = 0.0

    @classmethod
    def of_response(cls, epsilon: float, categories: int) -> AtomStep:
        """Randomized response: the truth e^epsilon times as likely as each of the other answers."""
        total = 1 + (categories - 1) * exp(-epsilon)
        return cls(epsilon, 1 / total, (categories - 2) * exp(-epsilon) / total, exp(-epsilon) / total)

    @classmethod
    def of_guarantee(cls, epsilon: float, delta: float) -> AtomStep:
        """All that (epsilon, delta)-DP allows: four atoms."""
        if epsilon == 0:
            return cls(0.0, 0.0, 1 - delta, 0.0, delta)
        share = 1 / (1 + exp(-epsilon))
        return cls(epsilon, (1 - delta) * share, 0.0, (1 - delta) * exp(-epsilon) * share, delta)

    def _above(self, t: Floats, up: float, down: float) -> Floats:
        return np.asarray(up * (t < self.epsilon) + self.still * (t < 0) + down * (t < -self.epsilon))

    def sticks(self, k: Floats) -> Floats:
        lost = self.up * -np.expm1(np.minimum(k - self.epsilon, 0))
        lost = lost + self.still * -np.expm1(np.minimum(k, 0)) + self.down * -np.expm1(np.minimum(k + self.epsilon, 0))
        return np.asarray(np.clip(lost + self.hidden, 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return self._above(t, self.up, self.down) + self.hidden

    def null_tails(self, t: Floats) -> Floats:
        return self._above(t, self.down, self.up)

    def log_null_tails(self, t: Floats) -> Floats:
        """Where only the upper atom is above t, its Q-mass may be too small for a number of its own."""
        with np.errstate(divide="ignore"):
            upper_atom = np.where(t >= self.epsilon, -inf, (log(self.up) if self.up > 0 else -inf) - self.epsilon)
            others = np.log(self.still * (t < 0) + self.up * (t < -self.epsilon))
        return np.asarray(np.logaddexp(upper_atom, others))

    def hockey_stick(self, k: float) -> Upper:
        return Upper(self.hidden) if k >= self.epsilon else super().hockey_stick(k)  # exact: no round-off to grant

    def tail(self, t: float) -> Upper:
        return Upper(self.hidden) if t >= self.epsilon else super().tail(t)

    def _where(
        self, tail: Callable[[float], Upper], failure: float, precision: float = 0.0, hint: float | None = None
    ) -> Upper:
        """There are few losses: look at each, the least first, once with the tail's upper and once its lower end."""
        return Upper.between(*(self._first_loss(tail, failure, end) for end in (attrgetter("least"), float)))

    def _first_loss(self, tail: Callable[[float], Upper], failure: float, end: Callable[[Upper], float]) -> float:
        if end(tail(nextafter(-self.epsilon, -inf))) <= failure:
            return -inf
        return next((loss for loss in (-self.epsilon, 0.0, self.epsilon) if end(tail(loss)) <= failure), self.largest)

    def cumulant(self, s: Complexes) -> Complexes:
        terms = self.log_null_masses[:, None] + self.losses[:, None] * s.ravel()
        top = terms.real.max(axis=0)
        return np.asarray(top + np.log(np.exp(terms - top).sum(axis=0))).reshape(s.shape)

    def tilted(self, c: Floats) -> Floats:
        """The tilted law's mean and variance, which lose no digits."""
        logs = self.log_null_masses[:, None] + self.losses[:, None] * c
        top = logs.max(axis=0)
        masses = np.exp(logs - top)
        total = masses.sum(axis=0)
        mean = (masses * self.losses[:, None]).sum(axis=0) / total
        variance = (masses * (self.losses[:, None] - mean) ** 2).sum(axis=0) / total
        return np.array([top + np.log(total), mean, variance])

    @cached_property
    def losses(self) -> Floats:
        """The finite ones that have mass."""
        kept = [mass > 0 for mass in (self.up, self.still, self.up)]
        return np.array([self.epsilon, 0.0, -self.epsilon])[kept]

    @cached_property
    def log_null_masses(self) -> Floats:
        """Q-masses of the same losses; the upper one's may be too small for a number of its own."""
        logs = [log(mass) if mass > 0 else -inf for mass in (self.up, self.still, self.up)]
        logs[0] -= self.epsilon
        return np.array([mass for mass in logs if mass > -inf])

    @property
    def escape(self) -> float:
        return self.hidden

    @property
    def largest(self) -> float:
        return inf if self.hidden > 0 else self.epsilon

    @property
    def largest_finite(self) -> float:
        return self.epsilon

    @property
    def scale(self) -> float:
        return max(self.epsilon, 1e-12)
