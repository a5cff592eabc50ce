"""Binomial probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, floor, inf, lgamma, log, pi, sqrt

import numpy as np
from scipy.special import ndtri

from deniable.loss.arrays import EPS, Floats

_WINDOW_NATS = 52.0  # e^-52, times at most 10^5 since a single probability may be as small as that, is left out
_ALL_NATS = 720.0
_MANY_TERMS = 2**11  # from which on sums are taken by a rule
_SINGLY = 64  # first terms of such a sum
_PLACES = 16  # in every block of it
_SURE = 1e-9  # relative, more than the round-off of a sum
_FEW = 16  # below it Stirling's error is tabulated, from it on its series is exact to double precision
_STIRLING = np.array([0.0] + [lgamma(n + 1) - (n + 0.5) * log(n) + n - 0.5 * log(2 * pi) for n in range(1, _FEW)])


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
class BinomialLaw:
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
        return self._weigh_terms(first, successes, np.ones(successes.size))

    def _by_rule(self, first: int, last: int) -> Terms:
        """Few places between the numbers of successes, whose masses have the sums of all of them (`sum_rule`)."""
        deviation = sqrt(self.mean * self._shares[1])
        return self._weigh_terms(first, *sum_rule(first, last, int(deviation / 2)))

    def _weigh_terms(self, first: int, successes: Floats, weights: Floats) -> Terms:
        logs = self._logs(successes)
        doubts = EPS * (32 + 8 * np.abs(successes - self.mean) + 8 * np.abs(logs))
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
