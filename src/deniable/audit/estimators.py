"""Lower bounds on epsilon from scores and a threshold rule, whatever attack made the scores.

    scores = Scores(members, others)                      # larger scores speak for b = 1
    bound = estimate(Region(delta=1e-5), scores, Bonferroni(), confidence=0.95)
    bound.value                                           # epsilon is at least this much

An *estimator* reads a number off limits on the error rates; a *rule* (deniable.audit.thresholds) makes the limits.
Any estimator goes with any rule. All estimators that read the same `Limits` are right together: they follow from one
event, so reading several costs no confidence.

| estimator | assumes | reads |
|---|---|---|
| `Region` | nothing | the (epsilon, delta) region of tests, both directions (ERRATA 11) |
| `GaussianCurve` | the release is Gaussian, no sampling | mu, then epsilon at delta |
| `MechanismCurve` | sampling rate and steps are as claimed | the noise, then epsilon at delta |
| `Advantage` | nothing | 004 Proposition 3 on FPR + FNR; never more than `Region` |

`credible` is Bayesian and stands apart. deniable.audit.likelihood holds the estimators for log-likelihood ratios,
deniable.audit.one_run those for one run with many canaries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import exp, inf, log, log1p, sqrt
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from deniable.audit.bound import GAUSSIAN, Assumption, Bound, epsilon_of_mu
from deniable.audit.promise import training_mechanism
from deniable.audit.scores_input import Floats, Scores
from deniable.audit.thresholds import Limits, Rule
from deniable.checks import positive, probability, whole
from deniable.loss.roots import crossing
from deniable.mechanisms import Adjacency
from deniable.scores import PrivacyLoss, privacy_loss

__all__ = ["Advantage", "Estimator", "GaussianCurve", "MechanismCurve", "Region", "estimate", "read"]


class Estimator(Protocol):
    """Reads epsilon off limits on the error rates; `strength` orders thresholds by how much they show."""

    @property
    def name(self) -> str: ...

    @property
    def delta(self) -> float: ...

    def strength(self, fpr: Floats, fnr: Floats) -> Floats: ...

    def bound(self, limits: Limits) -> Bound: ...


def estimate(estimator: Estimator, scores: Scores, rule: Rule, confidence: float = 0.95) -> Bound:
    """The bound on epsilon that `estimator` finds with the thresholds of `rule`."""
    limits = rule.limits(scores, estimator.strength, confidence)
    return read(estimator, limits, rule.name)


def read(estimator: Estimator, limits: Limits, rule: str = "fixed") -> Bound:
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
        """deniable.bounds.least_epsilon_from_rates for arrays, without its floor at 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            steep, flat = (np.log((1 - self.delta - a).clip(0)) - np.log(b) for a, b in ((fnr, fpr), (fpr, fnr)))
        return np.asarray(np.fmax(np.fmax(steep, flat), -inf))

    def bound(self, limits: Limits) -> Bound:
        low, high = (max(0.0, found) for found in (limits.lower(self.strength), limits.upper(self.strength)))
        return Bound(self.name, low, self.delta, limits.confidence, high)


@dataclass(frozen=True)
class Advantage:
    """ln((1 - delta) / (1 - advantage)), 004 Proposition 3: the weaker form, of which 004's Table 2 is made."""

    delta: float
    name = "advantage"

    def __post_init__(self) -> None:
        probability("delta", self.delta)

    def strength(self, fpr: Floats, fnr: Floats) -> Floats:
        """deniable.bounds.least_epsilon_erlingsson for arrays; 1 - advantage is FPR + FNR."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(1 - self.delta) - np.log(fpr + fnr))

    def bound(self, limits: Limits) -> Bound:
        low, high = (max(0.0, found) for found in (limits.lower(self.strength), limits.upper(self.strength)))
        return Bound(self.name, low, self.delta, limits.confidence, high)


def shift(fpr: Floats, fnr: Floats) -> Floats:
    """The mu of the Gaussian trade-off curve through these rates; negative for an attack worse than guessing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmax(ndtri(1 - fpr) - ndtri(fnr), -inf))


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
        epsilons = epsilon_of_mu(low, self.delta), epsilon_of_mu(high, self.delta)
        found = Bound(self.name, epsilons[0], self.delta, limits.confidence, epsilons[1])
        return replace(found, mu=low, most_mu=high, assumptions=(GAUSSIAN,))


_MOST, _PRECISION, _STRIDE = 1e5, 1e-4, 0.2
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
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    least: float = 0.5
    """No sampled training with less noise is looked at, for time: the bound is at most that noise's epsilon."""
    name = "mechanism"
    assumption = Assumption("sampling rate and steps are as claimed; the noise alone is unknown")

    def __post_init__(self) -> None:
        probability("delta", self.delta, open_ends=True)
        if probability("rate", self.rate) == 0:
            raise ValueError(f"rate must be a number above 0, got {self.rate!r}")
        whole("steps", self.steps)
        positive("least", self.least)

    def strength(self, fpr: Floats, fnr: Floats) -> Floats:
        """The Gaussian shift: near enough to the curve's own order to choose a threshold by."""
        return shift(fpr, fnr)

    def loss(self, noise: float) -> PrivacyLoss:
        return privacy_loss(training_mechanism(noise, self.rate, self.steps), self.adjacency)

    def bound(self, limits: Limits) -> Bound:
        noise, least = self.refuted_noise(limits), self.refuted_noise(limits.shown_at_most(shift))
        upper = inf if self.rate < 1 and least <= self.least else self._epsilon(least)
        found = Bound(self.name, self._epsilon(noise), self.delta, limits.confidence, upper)
        return replace(found, noise=noise, least_noise=least, assumptions=(self.assumption,))

    def refuted_noise(self, limits: Limits) -> float:
        """The least noise (within 1e-4, on the safe side) that the limits refute; inf where they refute none."""
        mu = limits.lower(shift)
        if mu <= 0:
            return inf
        if self.rate == 1:
            return sqrt(self.steps) / mu
        guess = self._through(limits, mu)
        return guess if limits.fpr.size == 1 else self._searched(limits, guess)

    def _epsilon(self, noise: float) -> float:
        if noise in (0.0, inf):
            return inf if noise == 0 else 0.0
        epsilon = self.loss(noise).epsilon(self.delta)
        return max(0.0, float(epsilon) - epsilon.error)

    def _through(self, limits: Limits, mu: float) -> float:
        """The noise whose curve passes through the point of strength `mu`: the answer if that point decides."""
        place = np.argmin(np.abs(np.minimum(shift(limits.fpr, limits.fnr), _MOST) - min(mu, _MOST)))
        fpr, tpr = float(limits.fpr.flat[place]), 1 - float(limits.fnr.flat[place])

        @cache
        def reached(log_noise: float) -> float:
            return self.loss(exp(log_noise)).tpr(fpr)

        # the central limit of many sampled steps (Dong, Roth, Su 2022, Corollary 5.4) is near
        per_step = max(min(mu, _MOST) / (self.rate * sqrt(self.steps)), 1 / _MOST)
        low = high = log(max(self.least, 1 / sqrt(log1p(per_step**2))))
        while low > log(self.least) and reached(low) < tpr:
            low, high = max(log(self.least), low - _STRIDE), low
        while high < log(_MOST) and reached(high) >= tpr:
            low, high = high, high + _STRIDE
        between = reached(low) >= tpr > reached(high)
        return exp(crossing(reached, tpr, low, high, precision=_PRECISION)) if between else exp(low)

    def _searched(self, limits: Limits, guess: float) -> float:
        """Bisection from the guess, which is nearly always the answer."""

        def refuted(noise: float) -> bool:
            return limits.refutes(self.loss(noise).tpr)

        low, high = guess / (1 + _PRECISION / 2), guess * (1 + _PRECISION / 2)
        while high < _MOST and not refuted(high):
            low, high = high, high * (high / low) ** 2
        while low > self.least and refuted(low):
            low, high = max(self.least, low * (low / high) ** 2), low
        if high >= _MOST or (low <= self.least and refuted(self.least)):
            return inf if high >= _MOST else self.least
        while high > low * (1 + 2 * _PRECISION):
            middle = sqrt(low * high)
            low, high = (low, middle) if refuted(middle) else (middle, high)
        return high
