"""A loss with at most three finite values: randomized response and bare guarantees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, nextafter
from operator import attrgetter

import numpy as np

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.pairs.pair import Functional
from deniable.loss.pairs.step import ROUNDOFF, Step
from deniable.upper import Upper


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
    slip: float = 0.0
    """Relative round-off of epsilon and of what is hidden, where they are not given but computed."""
    unsure: float = 0.0
    """And of the mass at 0, beyond that of all masses."""
    has_joint_sticks = True

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

    @property
    def roundoff(self) -> float:
        return ROUNDOFF + self.unsure

    def blur(self, k: Floats) -> Floats:
        """Of divergences; atoms stay on their side of k."""
        apart = np.abs(k - np.array([[-self.epsilon], [0.0], [self.epsilon]])).min(axis=0)
        return np.asarray(np.minimum(self.slip * self.epsilon, apart))

    def _where(self, tail: Functional, failure: float, precision: float = 0.0, hint: float | None = None) -> Upper:
        """There are few losses: look at each, the least first, once with the tail's upper and once its lower end."""
        return Upper.between(*(self._first_loss(tail, failure, end) for end in (attrgetter("least"), float)))

    def _first_loss(self, tail: Functional, failure: float, end: Callable[[Upper], float]) -> float:
        if end(tail.at(self, nextafter(-self.epsilon, -inf))) <= failure:
            return -inf
        return next(
            (loss for loss in (-self.epsilon, 0.0, self.epsilon) if end(tail.at(self, loss)) <= failure), self.largest
        )

    def cumulant(self, s: Complexes) -> Complexes:
        terms = self.log_null_masses[:, None] + self.losses[:, None] * s.ravel()
        top = terms.real.max(axis=0)
        return np.asarray(top + np.log(np.exp(terms - top).sum(axis=0))).reshape(s.shape)

    def tilted_moments(self, c: Floats) -> Floats:
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
