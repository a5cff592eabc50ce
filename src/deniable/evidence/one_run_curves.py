"""Lower bounds on epsilon from one training, where the noise is its only unknown: the training's own trade-off curve.

Two tests of one training with a given noise, each from r guesses about m canaries of which v are right:

- `CurveTest`: the test of Mahloujifar, Melis, Chaudhuri 2024 (Lemma E7) with the exact curve. It holds for every
  mechanism with that curve, however the canaries' outcomes depend on each other.
- `OrderTest`: far sharper, and only for canaries whose outcomes are independent (Lemma E15), such as orthogonal
  gradients under independent noise. The idea, errors of the most confident guesses, is that of Xiang et al. 2025. The
  law of the errors here is the exact one: independent errors with each rank's mean rate would be too narrow a law,
  since the ranks of one sample depend on each other.

More noise makes any number of right guesses less likely, so the noises that a test refutes are all those from some
noise on. That noise's epsilon is the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, log
from typing import Protocol

import numpy as np
from scipy.special import bdtr, betainc

from deniable.evidence.attack_scores import Floats, Scores
from deniable.evidence.bound import Assumption, Bound
from deniable.evidence.estimators import MechanismCurve
from deniable.evidence.one_run import SHARES, coins_assumption, count_tries, refutes_curve, withdraw_if_refuted
from deniable.scores import PrivacyLoss

INDEPENDENT_CANARIES = Assumption(
    "what the release shows of one canary is independent of what it shows of the others (orthogonal canaries, noise "
    "that is independent between coordinates)"
)
_SLOPES = 96
"""Tangents of the trade-off curve, from slope 1 to where its hockey-stick divergence is negligible."""
_LOSSES = 400
"""Losses at which the law of an observer's confidence is tabulated."""
_NEGLIGIBLE = 1e-12
"""Divergences and tails below it change no bound."""
_LEAST_LOSS, _MOST_LOSS = 1e-3, 500.0
"""Within which the farthest loss of a table lies."""
_MOST_NOISE = 1e5
_NOISE_PRECISION = 1e-3
"""Relative; the bound rounds down."""

Tries = Sequence[tuple[int, int]]
"""Guesses made, and how many of them were right."""


class NoiseTest(Protocol):
    """A test of a training with known noise."""

    def refutes(self, canaries: int, guesses: int, right: int, risk: float) -> bool:
        """Whether so many right guesses, or more, are less likely than `risk`."""


@dataclass(frozen=True)
class CurveTest:
    """Guarantee: refutes a training with this loss with probability at most `risk` (Lemma E7)."""

    loss: PrivacyLoss

    @cached_property
    def tangents(self) -> tuple[Floats, Floats]:
        """Slopes e^k and divergences: no attack has TPR above slope x FPR + divergence, nor the mirror image."""
        ks = np.concatenate([[0.0], _farthest_loss(self.loss) * np.linspace(0, 1, _SLOPES) ** 1.5])
        return np.exp(ks), np.array([min(1.0, float(self.loss.delta(float(k)))) for k in ks])

    def least_fpr(self, tpr: float) -> float:
        """A false positive rate that every attack with this true positive rate has at least."""
        slopes, divergences = self.tangents
        steep = ((tpr - divergences) / slopes).max()
        flat = (1 - divergences - slopes * (1 - tpr)).max()
        return float(min(max(steep, flat, 0.0), tpr))

    def refutes(self, canaries: int, guesses: int, right: int, risk: float) -> bool:
        return refutes_curve(canaries, guesses, right, risk, self.least_fpr)


@dataclass(frozen=True)
class OrderTest:
    """Guarantee: refutes a training with this loss with probability at most `risk`, if canaries are independent.

    The r most confident of m guesses err like r draws from all guesses that are more confident than the next one:
    Binomial(r, w(x)), x being that one's confidence and w(x) the rate of errors beyond it (Lemma E15).
    """

    loss: PrivacyLoss

    @cached_property
    def confidences(self) -> tuple[Floats, Floats, Floats]:
        """Ascending |L| from 0 on; the share of canaries beyond each, at most; the rate of errors there, at least."""
        pair = self.loss.pair
        back = pair.reverse()
        xs = _farthest_loss(self.loss) * np.linspace(0, 1, _LOSSES) ** 1.3
        rows = [(pair.tail(x), pair.null_tail(x), back.tail(x), back.null_tail(x)) for x in xs.tolist()]
        most = np.array([[min(1.0, float(value)) for value in row] for row in rows])
        least = np.array([[max(0.0, value.least) for value in row] for row in rows])
        wrong, right = least[:, 1] + least[:, 3], most[:, 0] + most[:, 2]
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.where(wrong + right > 0, wrong / (wrong + right), 0.0)
        share = np.minimum(1.0, most.sum(axis=1) / 2)
        share[0] = 1.0
        return xs, np.minimum.accumulate(share), np.minimum.accumulate(errors)

    def p_value(self, canaries: int, guesses: int, right: int) -> float:
        """How likely so many right guesses are, or more; at most."""
        _, share, errors = self.confidences
        few = np.append(bdtr(guesses - right, guesses, errors), 1.0)
        if guesses == canaries:
            return float(few[0])
        # the next canary's confidence is beyond x where more than `guesses` of all are
        beyond = betainc(guesses + 1, canaries - guesses, share)
        return float(min(1.0, few[1] * (1 - beyond[1]) + few[2:] @ (beyond[1:] - np.append(beyond[2:], 0.0))))

    def refutes(self, canaries: int, guesses: int, right: int, risk: float) -> bool:
        return self.p_value(canaries, guesses, right) < risk


def _farthest_loss(loss: PrivacyLoss) -> float:
    """Beyond it the hockey-stick divergence changes no bound."""
    return max(_LEAST_LOSS, min(_MOST_LOSS, float(loss.epsilon(_NEGLIGIBLE))))


def one_run_mechanism(
    scores: Scores, curve: MechanismCurve, confidence: float = 0.95, shares: tuple[float, ...] = SHARES
) -> Bound:
    """Epsilon at least, by the curve of the claimed training with less noise; valid whatever the canaries share."""
    found = _bound(scores, curve, CurveTest, confidence, shares)
    found = replace(found, assumptions=(coins_assumption(scores), curve.assumption))
    return withdraw_if_refuted(replace(found, method="one-run-mechanism"))


def order_statistics(
    scores: Scores,
    curve: MechanismCurve,
    confidence: float = 0.95,
    shares: tuple[float, ...] = SHARES,
    independence: Assumption = INDEPENDENT_CANARIES,
) -> Bound:
    """The same for canaries whose outcomes are independent, which is assumed and printed."""
    found = _bound(scores, curve, OrderTest, confidence, shares)
    found = replace(found, assumptions=(coins_assumption(scores), independence, curve.assumption))
    return withdraw_if_refuted(replace(found, method="order-statistics"))


def _bound(
    scores: Scores,
    curve: MechanismCurve,
    test: Callable[[PrivacyLoss], NoiseTest],
    confidence: float,
    shares: tuple[float, ...],
) -> Bound:
    risk = (1 - confidence) / len(shares)
    noise = _least_refuted_noise(curve, test, len(scores), count_tries(scores, shares), risk)
    return Bound("one-run", curve.epsilon(noise), curve.delta, confidence, rule="abstention", noise=noise)


def _least_refuted_noise(
    curve: MechanismCurve, test: Callable[[PrivacyLoss], NoiseTest], canaries: int, tries: Tries, risk: float
) -> float:
    """The least noise that any of the tries refutes, on the safe side; inf where they refute none."""

    def is_refuted(log_noise: float) -> bool:
        at_noise = test(curve.loss(exp(log_noise)))
        return any(at_noise.refutes(canaries, guesses, right, risk) for guesses, right in tries)

    low, high = log(curve.least), log(_MOST_NOISE)
    if not is_refuted(high):
        return inf
    if is_refuted(low):
        return exp(low)
    middle = log(2 * curve.least)
    while high - low > _NOISE_PRECISION:
        if is_refuted(middle):
            high = middle
        else:
            low = middle
        middle = min((low + high) / 2, low + 1.0)
    return exp(high)
