"""Privacy loss -> what a person understands.

Each score is a functional of the loss of the dominating pair, taken in both directions (the person's data set first,
or the one without the person first) with the worse one reported. Every number is an `Upper`: on the safe side, with
the distance it may have from the truth in `.error`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, isfinite, log, log1p

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from deniable.checks import probability, real, whole
from deniable.loss import Pair, Upper, dominating_pair
from deniable.loss.effort import ends_in_time
from deniable.mechanisms import Adjacency, Mechanism

__all__ = ["PrivacyLoss", "beliefs", "posterior", "privacy_loss"]

_ROUNDOFF = 1e-15  # relative, of a sum of two
_THRESHOLD_PRECISION = 1e-8  # relative, of thresholds that only choose an attack
_MOST_ATTACKS = 8  # below one threshold


def posterior(loss: float, prior: float = 0.5) -> float:
    """Belief in membership after seeing an output of this privacy loss: sigmoid(logit(prior) + loss)."""
    if prior in (0.0, 1.0):
        return prior
    odds = log(prior) - log1p(-prior) + loss
    return 1 / (1 + exp(-odds)) if odds > -700 else exp(odds)


def beliefs(loss: ArrayLike, prior: float = 0.5) -> NDArray[np.float64]:
    """The posterior belief after each loss, such as an observer's log-likelihood ratio (001 Lemma 1, for any prior)."""
    start = logit(probability("prior", prior, open_ends=True))
    return np.asarray(expit(start + np.asarray(loss, dtype=np.float64)))


@dataclass
class PrivacyLoss:
    """The privacy loss of a release, with the scores that follow from it."""

    pair: Pair
    both_ways: bool = True
    """Whether the pair is also looked at with its sides exchanged."""
    negligible: float = 0.0
    """Divergences and tails that a quick bound shows to be below it are answered by that bound."""

    @property
    def method(self) -> str:
        """How it is computed: closed form, contour inversion or grid."""
        return self.pair.method

    @cached_property
    def _directions(self) -> tuple[Pair, ...]:
        back = self.pair.reversed() if self.both_ways else self.pair
        return (self.pair,) if back is self.pair or back == self.pair else (self.pair, back)

    def one_way(self, negligible: float) -> PrivacyLoss:
        """The same to look around with: one direction only, and nothing exact about what is negligible."""
        return replace(self, both_ways=False, negligible=negligible)

    def roughly(self) -> PrivacyLoss | None:
        """About the same, much quicker; None where there is no such thing."""
        rough = self.pair.rough()
        return None if rough is None else PrivacyLoss(rough, both_ways=False)

    def _worst(self, functional: Callable[[Pair], Upper], k: float) -> Upper:
        """The larger of both directions; the second is left out where a quick bound shows that it is the smaller."""
        if self.negligible and (ceiling := self.pair.ceiling(k)) <= self.negligible:
            return Upper(ceiling, ceiling)
        worst = functional(self.pair)
        for pair in self._directions[1:]:
            if pair.ceiling(k) > worst - worst.error:
                worst = max(worst, functional(pair), key=float)
        return worst

    @ends_in_time
    def delta(self, epsilon: float) -> Upper:
        """Smallest delta for which the release is (epsilon, delta)-DP; any real epsilon."""
        real("epsilon", epsilon)
        return self._worst(lambda pair: pair.hockey_stick(epsilon), epsilon)

    @ends_in_time
    def epsilon(self, delta: float) -> Upper:
        """Smallest epsilon >= 0 for which the release is (epsilon, delta)-DP; inf where none is."""
        probability("delta", delta)
        if delta == 0:
            return Upper(max(0.0, *(pair.largest for pair in self._directions)))
        if self.advantage() <= delta:
            return Upper(0.0)
        value = self.pair.enough(delta)
        for pair in self._directions[1:]:
            if value < inf and pair.ceiling(value) > delta and pair.hockey_stick(value) > delta:
                value = pair.enough(delta)
        return Upper(value, self._epsilon_error(value))

    def _epsilon_error(self, epsilon: float) -> float:
        """The error of delta(epsilon) divided by its slope, and the search's precision."""
        if epsilon in (0.0, inf):
            return 0.0
        here, move = self.delta(epsilon), 1e-4 * epsilon
        fall = here - self.delta(epsilon + move)
        return min(epsilon, 1e-13 * epsilon + (here.error * move / fall if fall > 0 else epsilon))

    @ends_in_time
    def advantage(self) -> Upper:
        """Membership advantage of the strongest observer = total variation = TPR - FPR at best (002; ERRATA 11)."""
        return self.pair.hockey_stick(0.0)

    @ends_in_time
    def accuracy(self, prior: float = 0.5) -> Upper:
        """Largest probability of guessing right when the person is in the data with probability `prior`."""
        probability("prior", prior)
        if prior in (0.0, 1.0):
            return Upper(1.0)
        stick = self.delta(log1p(-prior) - log(prior))
        return Upper(min(1.0, 1 - prior + prior * stick), prior * stick.error)

    @ends_in_time
    def tpr(self, fpr: float) -> Upper:
        """Largest true positive rate of any attack with this false positive rate: the trade-off curve.

        The value is `tpr_bound`. The error reaches down to the best of a few attacks that draw their line near by,
        and of mixtures of two of them: these can be carried out, so the truth is not below them.
        """
        top = self.tpr_bound(fpr)
        if 0 < fpr < 1:
            return Upper(top, max(0.0, top - _best_mixture(self._attacks(fpr), fpr)))
        return Upper(top)

    @ends_in_time
    def tpr_bound(self, fpr: float) -> float:
        """The value of `tpr` without its error, for half the cost.

        Weak duality makes delta(k) + e^k fpr an upper bound for every k; it is tight at the threshold whose false
        positive rate is `fpr`. With two directions this gives the concave hull of their curves.
        """
        probability("fpr", fpr)
        if fpr == 1:
            return 1.0
        if fpr == 0:
            return max(pair.escape for pair in self._directions)
        return min(self._dual(k, fpr) for _, k in self._thresholds(fpr))

    def _dual(self, k: float, fpr: float) -> float:
        rise = k + log(fpr)
        return 1.0 if rise >= 0 else min(1.0, (self.delta(k) + exp(rise)) * (1 + _ROUNDOFF))

    def _thresholds(self, fpr: float) -> list[tuple[Pair, float]]:
        """Where the best attack may draw its line: steep part, slope 1, or (seen from the other side) flat part."""
        if fpr not in self._known_thresholds:
            self._known_thresholds[fpr] = self._found_thresholds(fpr)
        return self._known_thresholds[fpr]

    @cached_property
    def _known_thresholds(self) -> dict[float, list[tuple[Pair, float]]]:
        """Those of the rates that were asked for; predictive values ask for them again."""
        return {}

    def _found_thresholds(self, fpr: float) -> list[tuple[Pair, float]]:
        steep = self.pair.null_exceeded(fpr)
        if len(self._directions) == 1:
            return [(self.pair, steep if isfinite(steep) else 0.0)]
        middle = [(pair, 0.0) for pair in self._directions]
        if steep > 0:
            return [*middle, (self.pair, steep)] if isfinite(steep) else middle
        flat = self._directions[1].null_exceeded(fpr)
        return [*middle, (self._directions[1], flat)] if -inf < flat < 0 else middle

    def _attacks(self, fpr: float) -> list[tuple[float, float]]:
        """(fpr, tpr) of attacks that accuse where the loss exceeds a threshold, and of those that need no look.

        Each fpr is at least, each tpr at most, what the attack has.
        """
        escape = max(pair.escape for pair in self._directions)
        attacks = [(0.0, escape * (1 - _ROUNDOFF)), (1.0, 1.0)]
        for pair, threshold in self._thresholds(fpr):
            attacks += _attacks_around(pair, threshold, fpr)
        return attacks

    def roc(self, points: int = 101) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The trade-off curve as arrays (fpr, tpr) from (0, .) to (1, 1), dense at both ends."""
        quarter = whole("points", points, low=9) // 4
        ends, middle = np.geomspace(1e-6, 0.02, quarter), np.linspace(0.02, 0.98, points - 2 * quarter)
        fpr = np.concatenate([[0.0], ends, middle[1:-1], 1 - ends[::-1], [1.0]])
        return fpr, np.array([self.tpr_bound(float(rate)) for rate in fpr])

    @ends_in_time
    def ppv(self, fpr: float, prior: float) -> Upper:
        """Largest share of true members among those an attack accuses, at a false positive rate and a base rate."""
        probability("fpr", fpr)
        probability("prior", prior)
        if fpr == 0:
            return Upper(posterior(max(pair.largest for pair in self._directions), prior))
        if prior in (0.0, 1.0):
            return Upper(prior)
        tpr = self.tpr(fpr)
        top, least = (_odds_to_share(rate, fpr, prior) for rate in (tpr, tpr - tpr.error))
        return Upper(top, top - least)

    @ends_in_time
    def quantile(self, p: float) -> Upper:
        """Smallest t with P(L <= t) >= p."""
        probability("p", p)
        return self._exceeded(1 - p)

    @ends_in_time
    def belief(self, failure: float, prior: float = 0.5) -> Upper:
        """The posterior belief in membership that is exceeded with probability at most `failure` (ERRATA 4).

        Exact, from the quantile of the loss; 001 Theorem 2 instead reads the belief off (epsilon, delta).
        """
        probability("failure", failure)
        probability("prior", prior)
        loss = self._exceeded(failure)
        value = posterior(loss, prior)
        return Upper(value, value - posterior(loss - loss.error, prior) if loss.error else 0.0)

    @ends_in_time
    def exceedance(self, loss: float) -> Upper:
        """P(L > loss): how often the loss, and with it the belief it stands for, is exceeded."""
        return self._worst(lambda pair: pair.tail(loss), loss)

    @ends_in_time
    def _exceeded(self, failure: float) -> Upper:
        if failure == 0:
            return Upper(max(pair.largest for pair in self._directions))
        worst, value = self.pair, self.pair.exceeded(failure)
        for pair in self._directions[1:]:
            if value < inf and pair.ceiling(value) > failure and pair.tail(value) > failure:
                worst, value = pair, pair.exceeded(failure)
        return Upper(value, self._exceeded_error(worst, value))

    @staticmethod
    def _exceeded_error(pair: Pair, value: float) -> float:
        """The search's precision, and the error of the tail divided by its slope where it has one."""
        if not isfinite(value):
            return 0.0
        here, move = pair.tail(value), 1e-4 * pair.scale
        fall = here - pair.tail(value + move)
        return 1e-13 * pair.scale + (here.error * move / fall if fall > here.error else 0.0)


def _odds_to_share(tpr: float, fpr: float, prior: float) -> float:
    """The share of members among the accused."""
    return posterior(log(tpr) - log(fpr), prior) if tpr > 0 else 0.0


def _attacks_around(pair: Pair, threshold: float, fpr: float) -> list[tuple[float, float]]:
    """Attacks at the threshold and below it, down to one whose false positive rate is at least `fpr`."""
    step, attacks = _THRESHOLD_PRECISION * max(abs(threshold), 1e-3), [_attack(pair, threshold)]
    for _ in range(_MOST_ATTACKS):
        if attacks[-1][0] >= fpr:
            break
        attacks.append(_attack(pair, threshold - step))
        step *= 30
    return attacks


def _attack(pair: Pair, threshold: float) -> tuple[float, float]:
    tail = pair.tail(threshold)
    return float(pair.null_tail(threshold)), tail - tail.error


def _best_mixture(attacks: list[tuple[float, float]], fpr: float) -> float:
    """The largest true positive rate at `fpr` of attacks that toss a coin between two of the given ones."""
    left, right = ([a for a in attacks if a[0] <= fpr], [a for a in attacks if a[0] > fpr])
    mixed = (low[1] + (high[1] - low[1]) * ((fpr - low[0]) / (high[0] - low[0])) for low in left for high in right)
    return max(fpr, *(tpr for _, tpr in left), *mixed)


def privacy_loss(mechanism: Mechanism, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> PrivacyLoss:
    """The exact privacy loss of `mechanism` between neighbours of the given kind."""
    return PrivacyLoss(dominating_pair(mechanism, Adjacency(adjacency)))
