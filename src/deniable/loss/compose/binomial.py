"""Two-valued losses, composed, alone and beside one other release.

They are those of randomized response, of bare guarantees, and of either on a Poisson sample.

Guarantee (Lemma B1). If j of n runs speak for P, the loss is L = j * high - (n - j) * low, and j is binomial: every
answer is one sum of binomial probabilities times 1 or 1 - e^{k-L} (Jia 2023, Theorem 18; erratum 12). Each probability
is computed from its deviance (Loader 2000, "Fast and accurate computation of binomial probabilities"), so that its
relative error grows with the distance from the mean only, not with n; what lies more than a window away from the mode,
or from the first term, is less than e^-40 of the sum (Lemma B2: Bernstein's inequality; the probabilities are
log-concave) and is in the error.

Beside one other release: a sum over the lattice of what the other one alone would give (Lemma B3). Given the lattice's
loss l, what remains is the other release: H(k) = E_P[H_other(k - L_lattice)], and the same of both tails. Every term is
a closed form, taken at both ends of the round-off of its loss, so the result is as accurate as the terms, however faint
the other release's noise is beside the lattice. Binomial losses less likely than e^-700 are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, floor, inf, isfinite, log, log1p, sqrt

import numpy as np

from deniable.loss.arrays import EPS, Floats, log_mixture
from deniable.loss.compose.binomial_terms import BinomialLaw, Terms
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.masses import MassStep
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional, Pair
from deniable.loss.pairs.step import ROUNDOFF, Step
from deniable.loss.pairs.subsampled import SubsampledAdd, SubsampledRemove
from deniable.upper import Upper, upper

_LEFT_OUT = exp(-40)  # of a sum, beyond the window of its terms (Lemma B2)
_RARE = 1e-14
_MANY = 10_000  # runs whose sum is nearly Gaussian
_RAREST = 1e-250


@dataclass(frozen=True)
class TwoLosses:
    """One step whose loss is `high` or -`low`, with logarithms of their masses, and what is hidden at +-inf."""

    high: float
    low: float
    log_masses: tuple[float, float]
    """Under P, the high loss first."""
    log_null_masses: tuple[float, float]
    """Under Q."""
    escape: float = 0.0
    """P(L = inf)."""
    null_escape: float = 0.0
    """Q(L = -inf)."""

    def reverse(self) -> TwoLosses:
        """With P and Q exchanged."""
        masses, null_masses = self.log_null_masses[::-1], self.log_masses[::-1]
        return TwoLosses(self.low, self.high, masses, null_masses, self.null_escape, self.escape)


def two_losses(step: Step) -> TwoLosses | None:
    """The step's two finite losses; None where it has more."""
    if isinstance(step, AtomStep) and step.still == 0:
        masses = log(step.up), log(step.up) - step.epsilon
        return TwoLosses(step.epsilon, step.epsilon, masses, masses[::-1], step.hidden, step.hidden)
    if (
        isinstance(step, SubsampledRemove)
        and isinstance(step.base, AtomStep)
        and step.base.still == step.base.hidden == 0
    ):
        base = step.base
        high, low = (float(log_mixture(step.rate, np.array([loss]))[0]) for loss in (base.epsilon, -base.epsilon))
        mixed = log((1 - step.rate) * base.down + step.rate * base.up), log(base.up) + low
        return TwoLosses(high, -low, mixed, (log(base.up) - base.epsilon, log(base.up)))
    if isinstance(step, MassStep) and step.losses.size == 2 and step.hidden == step.null_hidden == 0:
        (low, high), (log_low, log_high) = step.losses.tolist(), step.log_null_masses.tolist()
        return TwoLosses(high, -low, (log_high + high, log_low + low), (log_high, log_low))
    if isinstance(step, SubsampledAdd):
        mirrored = two_losses(step.mirror)
        return mirrored.reverse() if mirrored else None
    return None


@dataclass(frozen=True)
class Binomial(Pair):
    """`count` runs of a step with two finite losses."""

    step: TwoLosses
    count: int
    method = "closed form"

    @cached_property
    def escape(self) -> float:
        return -expm1(self.count * log1p(-self.step.escape))

    @cached_property
    def finite(self) -> float:
        """P(L < inf)."""
        return _none(self.step.escape, self.count)

    @cached_property
    def null_finite(self) -> float:
        """Q(L > -inf)."""
        return _none(self.step.null_escape, self.count)

    @property
    def likely(self) -> Terms:
        """All but e^-700 of the finite losses under P."""
        return self._law.likely

    @property
    def null_likely(self) -> Terms:
        """The same under Q."""
        return self._null_law.likely

    @cached_property
    def _law(self) -> BinomialLaw:
        return BinomialLaw(self.count, *self.step.log_masses)

    @cached_property
    def _null_law(self) -> BinomialLaw:
        return BinomialLaw(self.count, *self.step.log_null_masses)

    def losses(self, successes: Floats) -> Floats:
        if self.step.high == self.step.low:
            return (2 * successes - self.count) * self.step.high
        return np.asarray(successes * self.step.high - (self.count - successes) * self.step.low)

    def slips(self, successes: Floats) -> Floats:
        """Round-off of the losses: of a product, or of the difference of two."""
        if self.step.high == self.step.low:
            return 2 * EPS * np.abs(self.losses(successes))
        return 2 * EPS * (successes * self.step.high + (self.count - successes) * self.step.low)

    def _first_above(self, t: float) -> int:
        """The fewest successes whose loss may be above t, round-off included."""
        apart = self.step.high + self.step.low
        guess = (t / apart + self.count * (self.step.low / apart)) if apart > 0 else 0.0
        first = floor(min(max(guess, 0.0), self.count + 1.0)) - 3
        around = np.arange(max(first, 0), min(first + 7, self.count + 1), dtype=np.float64)
        return max(first, 0) + int(np.searchsorted(self.losses(around) + self.slips(around), t, side="right"))

    def _total(self, sizes: Floats, terms: Terms, unsure: float, mass: float) -> Upper:
        """The sum of `sizes`, one a term, of finite losses that have this mass together."""
        total = float(sizes.sum())
        error = float((sizes * terms.doubts).sum()) + unsure + (_LEFT_OUT + 32 * EPS) * total
        return upper(mass * total, mass * error, high=mass)

    def hockey_stick(self, k: float) -> Upper:
        if k >= self.largest_finite:
            return Upper(self.escape)
        terms = self._law.from_on(self._first_above(k))
        apart = np.minimum(k - self.losses(terms.successes), 0.0)
        unsure = float((terms.masses * np.exp(apart) * self.slips(terms.successes)).sum())
        return self._plus_escape(self._total(terms.masses * -np.expm1(apart), terms, unsure, self.finite))

    def _plus_escape(self, finite: Upper) -> Upper:
        value = min(1.0, finite + self.escape * (1 + EPS))
        return Upper(value, finite.error + 2 * EPS * value)

    def tail(self, t: float) -> Upper:
        if t >= self.largest_finite:
            return Upper(self.escape)
        return self._plus_escape(self._above(self._law, t, self.finite))

    def null_tail(self, t: float) -> Upper:
        if t >= self.largest_finite:
            return Upper(0.0)
        return self._above(self._null_law, t, self.null_finite)

    def _above(self, law: BinomialLaw, t: float, mass: float) -> Upper:
        terms = law.from_on(self._first_above(t))
        unsure = self.losses(terms.successes) - self.slips(terms.successes) <= t  # round-off cannot tell
        return self._total(terms.masses, terms, float(terms.masses[unsure].sum()), mass)

    def exceeded_loss(self, failure: float) -> Upper:
        quantile = self._quantile(self._law, failure, self.escape, self.finite) if self.escape <= failure else None
        return super().exceeded_loss(failure) if quantile is None else quantile

    def null_exceeded(self, failure: float, hint: float | None = None) -> Upper:
        quantile = self._quantile(self._null_law, failure, 0.0, self.null_finite)
        return super().null_exceeded(failure) if quantile is None else quantile

    def _quantile(self, law: BinomialLaw, failure: float, above: float, mass: float) -> Upper | None:
        """From the sums of all terms around the mode at once; None where the failure is too rare for those."""
        if not _RARE < failure - above < mass - _RARE:
            return None
        terms, beyond = law.around_quantile((failure - above) / mass)
        survival = (np.append(np.cumsum(terms.masses[::-1])[::-1][1:], 0.0) + beyond) * mass
        error = survival * float(terms.doubts.max()) + 1e-3 * _RARE
        least, most = (self._first_within(terms, survival + sign * error + above, failure) for sign in (-1, 1))
        return Upper.between(least[0] - 2 * least[1], most[0] + 2 * most[1])  # where both tails are sure of the atom

    def _first_within(self, terms: Terms, above: Floats, failure: float) -> tuple[float, float]:
        """The least loss that is exceeded at most so often, and its round-off."""
        at = terms.successes[[int(np.argmax(above <= failure))]]
        return float(self.losses(at)[0]), float(self.slips(at)[0])

    def reverse(self) -> Binomial:
        return self if self.step == self.step.reverse() else Binomial(self.step.reverse(), self.count)

    @property
    def largest(self) -> float:
        return inf if self.escape > 0 else self.largest_finite

    @property
    def largest_finite(self) -> float:
        return self.count * self.step.high * (1 + 2 * EPS)  # not below the product, rounded

    @property
    def scale(self) -> float:
        apart = self.step.high + self.step.low
        share = self._law.mean / self.count
        return max(apart * sqrt(self.count * share * (1 - share)), apart, 1e-12)

    def near(self, functional: Functional, level: float) -> tuple[float, float]:
        """Where one Gaussian release of the same spread has it: sums of many small losses are nearly Gaussian."""
        mean, spread = float(self.losses(np.array([self._law.mean]))[0]), self.scale
        if functional is not STICK or not _RAREST < level < 0.5 or self.count < _MANY:
            return mean, spread / 4
        return float(GaussianStep(spread).enough(level)), 1e-3 * spread


def _none(probability: float, count: int) -> float:
    """That something of this probability never happens."""
    return 0.0 if probability == 1 else exp(count * log1p(-probability))


MOST_RUNS = 10**5
_FEW = 1e-300  # more than what is left out


@dataclass(frozen=True)
class Mixture(Pair):
    """A lattice and one other step, independent of each other."""

    lattice: Binomial
    other: Step
    method = "closed form"

    def hockey_stick(self, k: float) -> Upper:
        return self._plus_escape(self._expected_value(self.lattice.likely, self.lattice.finite, STICK, k))

    def tail(self, t: float) -> Upper:
        return self._plus_escape(self._expected_value(self.lattice.likely, self.lattice.finite, TAIL, t))

    def null_tail(self, t: float) -> Upper:
        lattice = self.lattice
        return Upper.between(*self._expected_value(lattice.null_likely, lattice.null_finite, NULL_TAIL, t))

    def _expected_value(self, terms: Terms, mass: float, functional: Functional, k: float) -> tuple[float, float]:
        """Lower and upper end of the functional's expectation over finite lattice losses."""
        losses, slips = self.lattice.losses(terms.successes), self.lattice.slips(terms.successes)
        if isfinite(k):
            slips = slips + ROUNDOFF * abs(k) + self.other.blur(k - losses)
        reach = self.other.tails(k - losses - slips) if functional is STICK else 0.0
        ends = [functional.on_step(self.other, k - losses + sign * slips) for sign in (1, -1)]
        doubts = terms.doubts + 2 * ROUNDOFF
        least = float((terms.masses * (ends[0] * (1 - doubts) - ROUNDOFF * reach)).sum())
        most = float((terms.masses * (ends[1] * (1 + doubts) + ROUNDOFF * reach)).sum())
        return mass * max(least, 0.0), min(mass * most + _FEW, 1.0)

    def _plus_escape(self, ends: tuple[float, float]) -> Upper:
        low, high = (self.lattice.escape * (1 + sign * ROUNDOFF) for sign in (-1, 1))
        return Upper.between(min(1.0, ends[0] + low), min(1.0, ends[1] + high))

    def reverse(self) -> Mixture:
        return self._mirror

    @cached_property
    def _mirror(self) -> Mixture:
        back = self.lattice.reverse(), self.other.reverse()
        return self if back == (self.lattice, self.other) else Mixture(*back)

    @property
    def escape(self) -> float:
        return self.lattice.escape + self.lattice.finite * self.other.escape

    @property
    def largest(self) -> float:
        return inf if self.escape > 0 else self.largest_finite

    @property
    def largest_finite(self) -> float:
        return self.lattice.largest_finite + self.other.largest_finite

    @property
    def scale(self) -> float:
        return max(self.lattice.scale, self.other.scale)

    def near(self, functional: Functional, level: float) -> tuple[float, float]:
        return self.lattice.near(functional, level)
