"""One epoch in which every record takes part in exactly one step, drawn uniformly: random allocation, balls in bins.

With Gaussian noise the pair of the whole epoch is P = mean over the steps j of N(mu e_j, I) against Q = N(0, I)
(Lemma A1), and e^L is the mean of as many independent lognormal variables, whose law `moments.mean_law` has on panels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, sqrt

import numpy as np

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.moments.mean_law import MeanLaw, law_of_mean
from deniable.loss.moments.nodes import seen_from
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.step import Mirrored, Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.upper import Upper, upper

_UNSEEN = 1e-100  # more than what lies beyond the panels
_LAWS_KEPT = 32


@lru_cache(maxsize=_LAWS_KEPT)
def _mean_law(mu: float, steps: int) -> MeanLaw:
    return law_of_mean(mu, steps)


class _Allocated(Step):
    """What both directions share."""

    smooth = True
    tail_cost = 100  # 16 values of a density

    @property
    @abstractmethod
    def law(self) -> MeanLaw:
        """Of the loss under Q, with the person's data set first."""

    @property
    def density_error(self) -> float:  # type: ignore[override]
        return self.law.error

    def hockey_stick(self, k: float) -> Upper:
        return self._add_error(super().hockey_stick(k))

    def tail(self, t: float) -> Upper:
        return self._add_error(super().tail(t))

    def null_tail(self, t: float) -> Upper:
        return self._add_error(super().null_tail(t))

    def _add_error(self, value: Upper) -> Upper:
        """Integrals of a positive function have the density's relative error."""
        return upper(value - value.error / 2, value.error / 2 + self.law.error * value + _UNSEEN, high=1.0)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Looked at, not proved: the density is analytic, so that its transform dies out exponentially."""
        return seen_from(self.cumulant, c, omega)

    @property
    def largest(self) -> float:
        return inf

    @cached_property
    def scale(self) -> float:
        return sqrt(float(self.tilted_moments(np.array([0.5]))[2, 0]))


@dataclass(frozen=True)
class AllocatedRemove(_Allocated):
    """The mean over `steps` shifts by mu, each in a coordinate of its own, against none."""

    mu: float
    steps: int

    @property
    def law(self) -> MeanLaw:
        """Known once for all directions and numbers of epochs."""
        return _mean_law(self.mu, self.steps)

    def sticks(self, k: Floats) -> Floats:
        """The integral of e^L - e^k over L > k, as that of e^L - 1 less (e^k - 1) Q(L > k)."""
        null, gained, _ = self.law.above(k)
        return np.asarray(np.clip(gained - np.expm1(np.minimum(k, 700.0)) * null, 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(np.minimum(self.law.above(t)[2], 1.0))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(np.minimum(self.law.above(t)[0], 1.0))

    def cumulant(self, s: Complexes) -> Complexes:
        return self.law.cumulant(s)

    def tilted_moments(self, c: Floats) -> Floats:
        return self.law.tilted_moments(c)

    @property
    def alike(self) -> tuple[Step, int]:  # type: ignore[override]
        """As many Poisson samples that hold the record once on average."""
        return SubsampledRemove(GaussianStep(self.mu), 1 / self.steps), self.steps

    def reverse(self) -> Step:
        return AllocatedAdd(self)


@dataclass(frozen=True)
class AllocatedAdd(_Allocated):
    """The same with P and Q exchanged."""

    mirror: AllocatedRemove

    @property
    def law(self) -> MeanLaw:
        return self.mirror.law

    def sticks(self, k: Floats) -> Floats:
        """The integral of 1 - e^{k+L} over L < -k; where k is large e^L has more digits than e^L - 1."""
        null, gained, own = self.law.below(-k)
        k = np.minimum(k, 700.0)
        near = -np.expm1(k) * null - np.exp(k) * gained
        return np.asarray(np.clip(np.where(k < 1, near, null - np.exp(k) * own), 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(np.minimum(self.law.below(-t)[0], 1.0))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(np.minimum(self.law.below(-t)[2], 1.0))

    @property
    def alike(self) -> tuple[Step, int]:  # type: ignore[override]
        step, count = self.mirror.alike
        return step.reverse(), count

    def cumulant(self, s: Complexes) -> Complexes:
        return Mirrored(self.mirror).cumulant(s)

    def tilted_moments(self, c: Floats) -> Floats:
        return Mirrored(self.mirror).tilted_moments(c)

    def reverse(self) -> Step:
        return self.mirror
