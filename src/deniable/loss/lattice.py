"""Two-valued losses, composed: randomized response, bare guarantees, and either on a Poisson sample.

Guarantee (Lemma B1). If j of n runs speak for P, the loss is L = j * high - (n - j) * low, and j is binomial: every
answer is one sum of binomial probabilities times 1 or 1 - e^{k-L} (Jia 2023, Theorem 18; erratum 12). Each probability
is computed from its deviance (Loader 2000, "Fast and accurate computation of binomial probabilities"), so that its
relative error grows with the distance from the mean only, not with n; what lies more than a window away from the mode,
or from the first term, is less than e^-40 of the sum (Lemma B2: Bernstein's inequality; the probabilities are
log-concave) and is in the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, expm1, floor, inf, lgamma, log, log1p, pi, sqrt

import numpy as np
from scipy.special import ndtri

from deniable.loss.arrays import Floats
from deniable.loss.pair import Pair
from deniable.loss.quadrature import log_mixture
from deniable.loss.sampled import Added, Removed
from deniable.loss.steps import AtomStep, GaussianStep, Step
from deniable.loss.values import Upper, upper

__all__ = ["Lattice", "Terms", "TwoLosses", "two_losses"]

_EPS = 2.2e-16
_WINDOW_NATS = 52.0  # e^-52, times at most 10^5 since a single probability may be as small as that, is left out
_LEFT_OUT = exp(-40)
_RARE = 1e-14
_ALL_NATS = 720.0
_MANY = 10_000  # runs whose sum is nearly Gaussian
_RAREST = 1e-250
_MANY_TERMS = 2**11  # from which on sums are taken by a rule
_SINGLY = 64  # first terms of such a sum
_PLACES = 16  # in every block of it
_SURE = 1e-9  # relative, more than the round-off of a sum
_FEW = 16  # below it Stirling's error is tabulated, from it on its series is exact to double precision
_STIRLING = np.array([0.0] + [lgamma(n + 1) - (n + 0.5) * log(n) + n - 0.5 * log(2 * pi) for n in range(1, _FEW)])


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

    def reversed(self) -> TwoLosses:
        """With P and Q exchanged."""
        masses, null_masses = self.log_null_masses[::-1], self.log_masses[::-1]
        return TwoLosses(self.low, self.high, masses, null_masses, self.null_escape, self.escape)


def two_losses(step: Step) -> TwoLosses | None:
    """The step's two finite losses; None where it has more."""
    if isinstance(step, AtomStep) and step.still == 0:
        masses = log(step.up), log(step.up) - step.epsilon
        return TwoLosses(step.epsilon, step.epsilon, masses, masses[::-1], step.hidden, step.hidden)
    if isinstance(step, Removed) and isinstance(step.base, AtomStep) and step.base.still == step.base.hidden == 0:
        base = step.base
        high, low = (float(log_mixture(step.rate, np.array([loss]))[0]) for loss in (base.epsilon, -base.epsilon))
        mixed = log((1 - step.rate) * base.down + step.rate * base.up), log(base.up) + low
        return TwoLosses(high, -low, mixed, (log(base.up) - base.epsilon, log(base.up)))
    if isinstance(step, Added):
        mirrored = two_losses(step.mirror)
        return mirrored.reversed() if mirrored else None
    return None


@dataclass(frozen=True)
class Terms:
    """Numbers of successes, from `first` on, their probabilities, and the relative error of each."""

    first: int
    successes: Floats
    masses: Floats
    doubts: Floats

    def between(self, start: int, stop: int | None) -> Terms:
        part = slice(start, stop)
        return Terms(self.first + start, self.successes[part], self.masses[part], self.doubts[part])


@dataclass(frozen=True)
class _Binomial:
    """Successes in `count` trials, with the logarithms of both probabilities, which need not be normalised."""

    count: int
    log_success: float
    log_failure: float

    @cached_property
    def _shares(self) -> tuple[float, float]:
        return exp(self.log_success - self._log_total), exp(self.log_failure - self._log_total)

    @cached_property
    def _log_total(self) -> float:
        return float(np.logaddexp(self.log_success, self.log_failure))

    @cached_property
    def mean(self) -> float:
        return self.count * self._shares[0]

    @cached_property
    def window(self) -> int:
        """Beyond it from the mode lies e^-52 of the mass (Bernstein)."""
        return self._radius(_WINDOW_NATS)

    def _radius(self, nats: float) -> int:
        return ceil(nats / 3 + sqrt(nats * nats / 9 + 2 * nats * self.mean * self._shares[1])) + 2

    @cached_property
    def likely(self) -> Terms:
        """All but e^-700 of them."""
        middle, radius = floor(self.mean), self._radius(_ALL_NATS)
        return self._terms(max(middle - radius, 0), middle + radius)

    @cached_property
    def is_wide(self) -> bool:
        """Whether so many terms matter that sums are taken by a rule, far from both ends."""
        low, high = self.mean - 2 * self.window, self.mean + 2 * self.window
        return self.window > _MANY_TERMS and low > _FEW and high < self.count - _FEW

    def from_on(self, first: int) -> Terms:
        """The successes from `first` on that matter."""
        middle = floor(self.mean)
        last = max(first, middle) + self.window
        if self.is_wide and last < self.count - _FEW:
            return self._by_rule(max(first, middle - self.window), last)
        if first > middle + self.window:
            return self._terms(first, first + self.window)
        if first > middle:
            return self._upwards.between(first - middle, first - middle + self.window)
        return self._around.between(max(first - self._around.first, 0), None)

    @cached_property
    def _around(self) -> Terms:
        """Around the mode: many questions share it."""
        middle = floor(self.mean)
        return self._terms(max(middle - self.window, 0), middle + self.window + 1)

    @cached_property
    def _upwards(self) -> Terms:
        middle = floor(self.mean)
        return self._terms(middle, middle + 2 * self.window)

    def _terms(self, first: int, last: int) -> Terms:
        successes = np.arange(first, min(last, self.count) + 1, dtype=np.float64)
        return self._weighted(first, successes, np.ones(successes.size))

    def _by_rule(self, first: int, last: int) -> Terms:
        """Few places between the numbers of successes, whose masses have the sums of all of them (`sum_rule`)."""
        deviation = sqrt(self.mean * self._shares[1])
        return self._weighted(first, *sum_rule(first, last, int(deviation / 2)))

    def _weighted(self, first: int, successes: Floats, weights: Floats) -> Terms:
        logs = self._logs(successes)
        doubts = _EPS * (32 + 8 * np.abs(successes - self.mean) + 8 * np.abs(logs))
        return Terms(first, successes, weights * np.exp(logs), doubts)

    def around_quantile(self, failure: float) -> tuple[Terms, float]:
        """Terms one by one, among them the fewest successes exceeded at most so often; and what lies above them."""
        if not self.is_wide:
            return self.from_on(0), 0.0
        deviation = sqrt(self.mean * self._shares[1])
        guess, reach = floor(self.mean - deviation * float(ndtri(failure))), ceil(deviation / 16)
        while True:
            low, high = guess - reach, guess + reach
            above = float(self.from_on(high + 1).masses.sum())
            terms = self._terms(low, high)
            if above < failure * (1 - _SURE) and above + float(terms.masses[1:].sum()) > failure * (1 + _SURE):
                return terms, above
            reach *= 4

    def _logs(self, successes: Floats) -> Floats:
        """Logarithms of the probabilities, in Loader's form; at both ends there is nothing to choose."""
        n, failures = self.count, self.count - successes
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = -0.5 * np.log(successes * failures) - _stirling_error(successes) - _stirling_error(failures)
            logs -= self._deviance(successes, 0) + self._deviance(failures, 1)
            logs += 0.5 * log(n / (2 * pi)) + float(_stirling_error(np.array([float(n)]))[0])
        logs[failures == 0] = n * (self.log_success - self._log_total)
        logs[successes == 0] = n * (self.log_failure - self._log_total)
        return logs

    def _deviance(self, x: Floats, which: int) -> Floats:
        """x ln(x / M) + M - x for the expected number M of successes (0) or failures (1)."""
        expected = self.count * self._shares[which]
        apart = x - expected
        ratio = apart / expected if expected > 0 else np.full_like(x, inf)
        near = np.abs(ratio) < 0.5
        if near.all():
            return np.asarray(x * np.log1p(ratio) - apart)
        log_expected = log(self.count) + (self.log_success, self.log_failure)[which] - self._log_total
        return np.asarray(x * np.where(near, np.log1p(np.where(near, ratio, 0.0)), np.log(x) - log_expected) - apart)


def sum_rule(first: int, last: int, widest: int) -> tuple[Floats, Floats]:
    """Places and weights whose sum of a smooth function is its sum over all whole numbers from `first` to `last`.

    The first `_SINGLY` by themselves, so that what is unsure at the first ones is seen; then blocks that double in
    size, up to `widest`, each with sixteen places. Exact for polynomials of degree 31 on every block: with blocks of
    half a standard deviation, or no longer than their distance from the first term, e^{-z} falls by at most e^7 from a
    block's middle, and the error is below 1e-17 of its largest term (Lemma B4).
    """
    places: list[Floats] = [np.arange(first, min(first + _SINGLY, last + 1), dtype=np.float64)]
    weights: list[Floats] = [np.ones(places[0].size)]
    start, size = first + _SINGLY, _SINGLY
    while start <= last:
        size = min(size, last + 1 - start)
        nodes, shares = _gauss_sum(size)
        places.append(start + nodes)
        weights.append(shares)
        start, size = start + size, min(2 * size, max(widest, _SINGLY))
    return np.concatenate(places), np.concatenate(weights)


@lru_cache(maxsize=256)
def _gauss_sum(size: int) -> tuple[Floats, Floats]:
    """Gauss's rule for the sum over 0, 1, ..., size - 1, from the recurrence of the discrete Chebyshev polynomials.

    By the method of Golub and Welsch 1969; the recurrence is in Gautschi 2004, Table 1.2.
    """
    if size <= _PLACES:
        return np.arange(size, dtype=np.float64), np.ones(size)
    n = np.arange(1, _PLACES)
    beside = np.sqrt(size**2 / 4 * (1 - (n / size) ** 2) / (4 - 1 / n**2))
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return nodes + (size - 1) / 2, size * vectors[0] ** 2


def _stirling_error(n: Floats) -> Floats:
    """ln n! less Stirling's approximation."""
    few = n < _FEW
    inverse = 1 / np.where(few, _FEW, n) if few.any() else 1 / n
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
    return np.where(few, _STIRLING[np.where(few, n, 0.0).astype(np.int64)], series) if few.any() else series


@dataclass(frozen=True)
class Lattice(Pair):
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
    def _law(self) -> _Binomial:
        return _Binomial(self.count, *self.step.log_masses)

    @cached_property
    def _null_law(self) -> _Binomial:
        return _Binomial(self.count, *self.step.log_null_masses)

    def losses(self, successes: Floats) -> Floats:
        if self.step.high == self.step.low:
            return (2 * successes - self.count) * self.step.high
        return np.asarray(successes * self.step.high - (self.count - successes) * self.step.low)

    def slips(self, successes: Floats) -> Floats:
        """Round-off of the losses: of a product, or of the difference of two."""
        if self.step.high == self.step.low:
            return 2 * _EPS * np.abs(self.losses(successes))
        return 2 * _EPS * (successes * self.step.high + (self.count - successes) * self.step.low)

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
        error = float((sizes * terms.doubts).sum()) + unsure + (_LEFT_OUT + 32 * _EPS) * total
        return upper(mass * total, mass * error, high=mass)

    def hockey_stick(self, k: float) -> Upper:
        if k >= self.largest_finite:
            return Upper(self.escape)
        terms = self._law.from_on(self._first_above(k))
        apart = np.minimum(k - self.losses(terms.successes), 0.0)
        unsure = float((terms.masses * np.exp(apart) * self.slips(terms.successes)).sum())
        return self._plus_escape(self._total(terms.masses * -np.expm1(apart), terms, unsure, self.finite))

    def _plus_escape(self, finite: Upper) -> Upper:
        value = min(1.0, finite + self.escape * (1 + _EPS))
        return Upper(value, finite.error + 2 * _EPS * value)

    def tail(self, t: float) -> Upper:
        if t >= self.largest_finite:
            return Upper(self.escape)
        return self._plus_escape(self._above(self._law, t, self.finite))

    def null_tail(self, t: float) -> Upper:
        if t >= self.largest_finite:
            return Upper(0.0)
        return self._above(self._null_law, t, self.null_finite)

    def _above(self, law: _Binomial, t: float, mass: float) -> Upper:
        terms = law.from_on(self._first_above(t))
        unsure = self.losses(terms.successes) - self.slips(terms.successes) <= t  # round-off cannot tell
        return self._total(terms.masses, terms, float(terms.masses[unsure].sum()), mass)

    def exceeded(self, failure: float) -> Upper:
        quantile = self._quantile(self._law, failure, self.escape, self.finite) if self.escape <= failure else None
        return super().exceeded(failure) if quantile is None else quantile

    def null_exceeded(self, failure: float, hint: float | None = None) -> Upper:
        quantile = self._quantile(self._null_law, failure, 0.0, self.null_finite)
        return super().null_exceeded(failure) if quantile is None else quantile

    def _quantile(self, law: _Binomial, failure: float, above: float, mass: float) -> Upper | None:
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

    def reversed(self) -> Lattice:
        return self if self.step == self.step.reversed() else Lattice(self.step.reversed(), self.count)

    @property
    def largest(self) -> float:
        return inf if self.escape > 0 else self.largest_finite

    @property
    def largest_finite(self) -> float:
        return self.count * self.step.high * (1 + 2 * _EPS)  # not below the product, rounded

    @property
    def scale(self) -> float:
        apart = self.step.high + self.step.low
        share = self._law.mean / self.count
        return max(apart * sqrt(self.count * share * (1 - share)), apart, 1e-12)

    def near(self, functional: Callable[[float], Upper], level: float) -> tuple[float, float]:
        """Where one Gaussian release of the same spread has it: sums of many small losses are nearly Gaussian."""
        mean, spread = float(self.losses(np.array([self._law.mean]))[0]), self.scale
        if functional.__name__ != "hockey_stick" or not _RAREST < level < 0.5 or self.count < _MANY:
            return mean, spread / 4
        return float(GaussianStep(spread).enough(level)), 1e-3 * spread


def _none(probability: float, count: int) -> float:
    """That something of this probability never happens."""
    return 0.0 if probability == 1 else exp(count * log1p(-probability))
