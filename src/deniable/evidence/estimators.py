"""Lower bounds on epsilon from scores and a threshold rule, whatever attack made the scores.

    scores = Scores(members, others)                      # larger scores speak for b = 1
    bound = estimate(Region(delta=1e-5), scores, Bonferroni(), confidence=0.95)
    bound.value                                           # epsilon is at least this much

An *estimator* reads a number off limits on the error rates; a *rule* (deniable.evidence.thresholds) makes the limits.
Any estimator goes with any rule. All estimators that read the same `Limits` are right together: they follow from one
event, so reading several costs no confidence (Lemma E3).

| estimator | assumes | reads |
|---|---|---|
| `Region` | nothing | the (epsilon, delta) region of tests, both directions (erratum 11) |
| `GaussianCurve` | the release is Gaussian, no sampling | mu, then epsilon at delta |
| `MechanismCurve` | sampling rate and steps are as claimed | the noise, then epsilon at delta |
| `AdvantageBound` | nothing | Erlingsson 2019, Proposition 3 on FPR + FNR; never more than `Region` |

`credible_bound` is Bayesian and stands apart: what one believes after the trials, not how often a statement is wrong.
deniable.evidence.likelihood holds the estimators for log-likelihood ratios, deniable.evidence.one_run those for one run
with many canaries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, inf, log, log1p, sqrt
from typing import Protocol

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import betainc, betaincinv

from deniable.checks import positive, probability, refuse, whole
from deniable.evidence.attack_scores import Errors, Floats, Scores
from deniable.evidence.bound import GAUSSIAN, Assumption, Bound, epsilon_of_mu
from deniable.evidence.thresholds import Limits, ThresholdRule, beats, shift
from deniable.mechanisms import Adjacency, Training
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.search import crossing


class Estimator(Protocol):
    """Reads epsilon off limits on the error rates; `strength` orders thresholds by how much they show."""

    @property
    def name(self) -> str: ...

    @property
    def delta(self) -> float: ...

    def strength(self, fpr: Floats, fnr: Floats) -> Floats: ...

    def bound(self, limits: Limits) -> Bound: ...


def estimate(estimator: Estimator, scores: Scores, rule: ThresholdRule, confidence: float = 0.95) -> Bound:
    """The bound on epsilon that `estimator` finds with the thresholds of `rule`."""
    limits = rule.limits(scores, estimator.strength, confidence)
    return read_bound(estimator, limits, rule.name)


def read_bound(estimator: Estimator, limits: Limits, rule: str = "fixed") -> Bound:
    """The bound on epsilon that `estimator` reads off limits that are known already."""
    return replace(estimator.bound(limits), rule=rule)


@dataclass(frozen=True)
class Region:
    """(epsilon, delta)-DP demands 1 - delta - FNR <= e^epsilon FPR, and the same with the rates exchanged."""

    delta: float
    name = "region"

    def __post_init__(self) -> None:
        probability("delta", self.delta)

    def strength(self, fpr: Floats, fnr: Floats) -> Floats:
        """deniable.bounds.risk_bounds.least_epsilon_from_rates for arrays, without its floor at 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            steep, flat = (np.log((1 - self.delta - a).clip(0)) - np.log(b) for a, b in ((fnr, fpr), (fpr, fnr)))
        return np.asarray(np.fmax(np.fmax(steep, flat), -inf))

    def bound(self, limits: Limits) -> Bound:
        low, high = (max(0.0, found) for found in (limits.lower(self.strength), limits.upper(self.strength)))
        return Bound(self.name, low, self.delta, limits.confidence, high)


@dataclass(frozen=True)
class AdvantageBound:
    """ln((1 - delta) / (1 - advantage)), Erlingsson 2019, Proposition 3: the weaker form, of which Erlingsson 2019,
    Table 2 is made."""

    delta: float
    name = "advantage"

    def __post_init__(self) -> None:
        probability("delta", self.delta)

    def strength(self, fpr: Floats, fnr: Floats) -> Floats:
        """deniable.bounds.risk_bounds.least_epsilon_erlingsson for arrays; 1 - advantage is FPR + FNR."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(1 - self.delta) - np.log(fpr + fnr))

    def bound(self, limits: Limits) -> Bound:
        low, high = (max(0.0, found) for found in (limits.lower(self.strength), limits.upper(self.strength)))
        return Bound(self.name, low, self.delta, limits.confidence, high)


@dataclass(frozen=True)
class GaussianCurve:
    """mu = Phi^-1(1 - FPR) - Phi^-1(FNR), then epsilon at delta of a shift by mu."""

    delta: float
    name = "gaussian"

    def __post_init__(self) -> None:
        probability("delta", self.delta, open_ends=True)

    def strength(self, fpr: Floats, fnr: Floats) -> Floats:
        return shift(fpr, fnr)

    def bound(self, limits: Limits) -> Bound:
        low, high = (max(0.0, found) for found in (limits.lower(shift), limits.upper(shift)))
        epsilons = epsilon_of_mu(low, self.delta), epsilon_of_mu(high, self.delta, at_most=True)
        found = Bound(self.name, epsilons[0], self.delta, limits.confidence, epsilons[1])
        return replace(found, mu=low, most_mu=high, assumptions=(GAUSSIAN,))


_MOST_NOISE, _NOISE_PRECISION, _LOG_NOISE_STRIDE = 1e5, 1e-4, 0.2
"""The most noise that is looked at, how closely, and first steps in log noise."""


@dataclass(frozen=True)
class MechanismCurve:
    """The exact trade-off curve of DP-SGD with this rate and these steps; its one unknown, the noise, inverted.

    More noise lowers the whole curve, so the noises that the limits refute are all those from some noise on: the
    training has less, and its epsilon is at least that noise's. Refuting the claimed noise itself assumes nothing.
    """

    rate: float
    steps: int
    delta: float
    adjacency: Adjacency
    least: float = 0.5
    """No sampled training with less noise is looked at, for time: the bound is at most that noise's epsilon."""
    name = "mechanism"
    assumption = Assumption("sampling rate and steps are as claimed; the noise alone is unknown")

    @classmethod
    def of(cls, training: Training, delta: float) -> MechanismCurve:
        """Of a training as it is claimed; what it has of noise is to be found."""
        return cls(training.rate, training.steps, delta, training.adjacency, min(0.5, 0.7 * training.noise))

    def __post_init__(self) -> None:
        probability("delta", self.delta, open_ends=True)
        if probability("rate", self.rate) == 0:
            raise refuse("rate", self.rate, "a number above 0")
        whole("steps", self.steps)
        positive("least", self.least)

    def strength(self, fpr: Floats, fnr: Floats) -> Floats:
        """The Gaussian shift: near enough to the curve's own order to choose a threshold by."""
        return shift(fpr, fnr)

    def loss(self, noise: float) -> PrivacyLoss:
        return _loss(noise, self.rate, self.steps, self.adjacency)

    def bound(self, limits: Limits) -> Bound:
        noise, least = self.refuted_noise(limits), self.least_noise(limits)
        upper = inf if least <= 0 else self.epsilon(least, at_most=True)
        found = Bound(self.name, self.epsilon(noise), self.delta, limits.confidence, upper)
        return replace(found, noise=noise, least_noise=least, assumptions=(self.assumption,))

    def least_noise(self, limits: Limits) -> float:
        """The noise whose curve is above every point that the attack may reach, within 2e-4; 0 where none is."""
        points = np.stack([rates.ravel() for rates in limits.least_rates()])
        mu = shift(*points)
        if mu.max() <= 0:
            return inf
        if self.rate == 1:
            return sqrt(self.steps) / float(mu.max())
        if mu.max() == inf:
            return 0.0
        found = inf
        for fpr, fnr in points[:, np.argsort(-mu)].T.tolist():
            if found == inf or 1 - fnr > self.loss(found).tpr(fpr):
                found = min(found, self._through(fpr, fnr) / (1 + 2 * _NOISE_PRECISION))
        return 0.0 if found <= self.least else found

    def refuted_noise(self, limits: Limits) -> float:
        """The least noise (within 1e-4, on the safe side) that the limits refute; inf where they refute none."""
        mu = limits.lower(shift)
        if mu <= 0:
            return inf
        if self.rate == 1:
            return sqrt(self.steps) / mu
        least = shift(limits.fpr, limits.fnr).min(axis=2)
        decisive = np.unravel_index(np.abs(np.minimum(least, _MOST_NOISE) - min(mu, _MOST_NOISE)).argmin(), least.shape)
        guess = self._most_of_corners(limits.fpr[decisive], limits.fnr[decisive])
        return guess if self._is_least(limits, guess) else self._search_noise(limits)

    def _is_least(self, limits: Limits, guess: float) -> bool:
        """Whether the point that decides for Gaussian curves does so for these, too; it nearly always does."""
        if limits.fpr[:, :, 0].size == 1:
            return True
        if guess == inf:
            return False
        less = guess / (1 + _NOISE_PRECISION)
        return limits.refutes(self.loss(guess).tpr) and not limits.refutes(self.loss(less).tpr)

    def _search_noise(self, limits: Limits) -> float:
        rows = [self._least_of_thresholds(*row) for row in zip(limits.fpr, limits.fnr, strict=True)]
        return sorted(rows)[limits.agreeing - 1]

    def _least_of_thresholds(self, fpr: Floats, fnr: Floats) -> float:
        """A noise is refuted by a row if one of its thresholds does it; the likeliest comes first."""
        least, found = shift(fpr, fnr).min(axis=1), inf
        for i in np.argsort(-least):
            if least[i] > 0 and (found == inf or beats(fpr[i], fnr[i], self.loss(found / (1 + _NOISE_PRECISION)).tpr)):
                found = min(found, self._most_of_corners(fpr[i], fnr[i]))
        return found

    def _most_of_corners(self, fpr: Floats, fnr: Floats) -> float:
        """A noise is refuted by a threshold if all of its corners do it; the weakest comes first."""
        first, *others = np.argsort(shift(fpr, fnr))
        noise = self._through(float(fpr[first]), float(fnr[first]))
        for i in others:
            if noise < inf and 1 - fnr[i] <= self.loss(noise).tpr(float(fpr[i])):
                noise = self._through(float(fpr[i]), float(fnr[i]))
        return noise

    def epsilon(self, noise: float, *, at_most: bool = False) -> float:
        """Epsilon at `delta` with this noise, rounded down, or up if it is to be `at_most`."""
        if noise in (0.0, inf):
            return inf if noise == 0 else 0.0
        epsilon = self.loss(noise).epsilon(self.delta)
        return float(epsilon) if at_most else max(0.0, float(epsilon) - epsilon.error)

    def _through(self, fpr: float, fnr: float) -> float:
        """The noise whose curve passes through this point: more noise is refuted by it."""
        tpr, mu = 1 - fnr, float(shift(np.array(fpr), np.array(fnr)))

        def reach_rate(log_noise: float) -> float:
            return self.loss(exp(log_noise)).tpr(fpr)

        # the central limit of many sampled steps (Dong, Roth, Su 2022, Corollary 5.4) is near
        per_step = max(min(mu, _MOST_NOISE) / (self.rate * sqrt(self.steps)), 1 / _MOST_NOISE)
        low = high = log(max(self.least, 1 / sqrt(log1p(per_step**2))))
        while low > log(self.least) and reach_rate(low) < tpr:
            low, high = max(log(self.least), low - _LOG_NOISE_STRIDE), low
        while high < log(_MOST_NOISE) and reach_rate(high) >= tpr:
            low, high = high, high + _LOG_NOISE_STRIDE
        if reach_rate(high) >= tpr:
            return inf
        between = reach_rate(low) >= tpr
        return exp(crossing(reach_rate, tpr, low, high, precision=_NOISE_PRECISION)) if between else exp(low)


@lru_cache(maxsize=32)
def _loss(noise: float, rate: float, steps: int, adjacency: Adjacency) -> PrivacyLoss:
    """Kept: the points of one audit ask for the same noises again."""
    return privacy_loss(Training(noise, rate, steps, adjacency).mechanism, adjacency)


_NODES, _WEIGHTS = leggauss(400)
_LARGEST_EPSILON = 700.0


def credible_bound(errors: Errors, delta: float, level: float = 0.95) -> Bound:
    """The equal-tailed interval of credibility `level` for epsilon (Zanella-Beguelin et al. 2023, Section 4).

    Both error rates have independent Beta(1/2, 1/2) priors (Jeffreys); epsilon is that of the smallest (epsilon,
    delta) region, of the test and of its opposite, that holds both rates. Its lower end is positive even where the
    true epsilon is 0, since rates drawn from a posterior are never exactly equal: no verdict rests on it.
    """
    probability("delta", delta)
    tail = (1 - probability("level", level, open_ends=True)) / 2
    low, high = (_quantile(errors, delta, share) for share in (tail, 1 - tail))
    return Bound("credible", low, delta, level, high, kind="credible", rule="fixed")


def epsilon_at_most(epsilon: float, errors: Errors, delta: float) -> float:
    """The posterior probability of the (epsilon, delta) region, integrated over the false positive rate's quantiles."""
    false, right = errors.false_positives, errors.negatives - errors.false_positives
    fpr = betaincinv(false + 0.5, right + 0.5, (1 + _NODES) / 2)
    growth = exp(min(epsilon, _LARGEST_EPSILON))
    low = np.maximum(1 - delta - growth * fpr, (1 - delta - fpr) / growth)
    high = np.minimum(delta + growth * (1 - fpr), 1 - (fpr - delta) / growth)
    between = _fnr_below(errors, high) - _fnr_below(errors, low)
    return float(np.clip(between, 0, 1) @ _WEIGHTS / 2)


def _fnr_below(errors: Errors, rate: Floats) -> Floats:
    wrong, right = errors.false_negatives + 0.5, errors.positives - errors.false_negatives + 0.5
    return np.asarray(betainc(wrong, right, np.clip(rate, 0.0, 1.0)))


def _quantile(errors: Errors, delta: float, share: float) -> float:
    if epsilon_at_most(0.0, errors, delta) >= share:
        return 0.0
    return crossing(lambda x: 1 - epsilon_at_most(x, errors, delta), 1 - share, 0.0, _LARGEST_EPSILON, precision=1e-9)
