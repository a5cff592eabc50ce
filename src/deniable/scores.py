"""Privacy loss -> what a person understands.

Each score is a functional of the loss of the dominating pair, taken in both directions (the person's data set first,
or the one without the person first) with the worse one reported. Every number is an `Upper`: on the safe side, with
the distance it may have from the truth in `.error`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, isfinite, log, log1p
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from deniable.checks import probability, real, whole
from deniable.effort import ends_in_time, is_spent
from deniable.mechanisms import Adjacency, Mechanism, named_adjacency
from deniable.upper import Upper

if TYPE_CHECKING:
    from deniable.loss import Pair

__all__ = ["PrivacyLoss", "beliefs", "posterior", "privacy_loss"]

_SMALLEST = 5e-324
_NEARLY, _LOOSE = 1 - 1e-7, 0.99  # shares of a rate that some attack should be known to have
_LARGE_LOSSES = 0.1, 1.0, 10.0
_NEGLIGIBLE = 1e-14  # beside the prior
_FAR_BELOW = 1e-6


def posterior(loss: float, prior: float = 0.5) -> float:
    """Belief in membership after seeing an output of this privacy loss: sigmoid(logit(prior) + loss).

    Args:
        loss: ln p(output | data with the person) / p(output | data without).
        prior: The belief before, between 0 and 1.

    Returns:
        The belief, between 0 and 1.

    Examples:
        >>> import deniable as dn
        >>> round(dn.posterior(1.0, prior=0.5), 4)
        0.7311
    """
    if prior in (0.0, 1.0):
        return prior
    odds = log(prior) - log1p(-prior) + loss
    return 1 / (1 + exp(-odds)) if odds > -700 else exp(odds)


def beliefs(loss: ArrayLike, prior: float = 0.5) -> NDArray[np.float64]:
    """The posterior belief after each loss, such as an observer's log-likelihood ratio.

    Bernau 2021, Lemma 1, for any prior.
    """
    start = logit(probability("prior", prior, open_ends=True))
    return np.asarray(expit(start + np.asarray(loss, dtype=np.float64)))


@dataclass
class PrivacyLoss:
    """The privacy loss of a release, with the scores that follow from it.

    Examples:
        >>> import deniable as dn
        >>> loss = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove")
        >>> round(loss.belief(1e-5, prior=0.5), 4), round(loss.advantage(), 4), round(loss.tpr(0.01), 4)
        (0.8919, 0.161, 0.0291)
    """

    pair: Pair
    _both_ways: ClassVar[bool] = True
    """Whether the pair is also looked at with its sides exchanged; a search (deniable.calibration) may do without."""

    @property
    def _negligible(self) -> float:
        """Divergences and tails that a quick bound shows to be below it are answered by that bound."""
        return 0.0

    @cached_property
    def _hints(self) -> dict[float, float]:
        """Thresholds of attacks by their false positive rates, as a similar release had them: where to look first."""
        return {}

    @property
    def method(self) -> str:
        """How it is computed: closed form, contour inversion or grid."""
        return self.pair.method

    @cached_property
    def _directions(self) -> tuple[Pair, ...]:
        return (self.pair, self.pair.reverse()) if self._both_ways and self._is_lopsided else (self.pair,)

    @cached_property
    def _is_lopsided(self) -> bool:
        """Whether the pair with its sides exchanged is another one."""
        back = self.pair.reverse()
        return not (back is self.pair or back == self.pair)

    def _worst(self, functional: Callable[[Pair], Upper], k: float) -> Upper:
        """The larger of both directions; the second is left out where a quick bound shows that it is the smaller."""
        if self._negligible and (ceiling := max(pair.ceiling(k) for pair in self._directions)) <= self._negligible:
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
        if epsilon == 0 and not self._negligible:
            return self.advantage()
        return self._worst(lambda pair: pair.hockey_stick(epsilon), epsilon)

    @ends_in_time
    def epsilon(self, delta: float) -> Upper:
        """Smallest epsilon >= 0 for which the release is (epsilon, delta)-DP; inf where none is."""
        probability("delta", delta)
        if delta == 0:
            return Upper(max(0.0, *(pair.largest for pair in self._directions)))
        if not self.pair.surely_tells_more(delta) and self.advantage() <= delta:
            return Upper(0.0)
        value = self.pair.enough(delta)
        for pair in self._directions[1:]:
            if value < inf and pair.ceiling(value) > delta and pair.hockey_stick(value) > delta:
                value = pair.enough(delta)
        return value

    @ends_in_time
    def advantage(self) -> Upper:
        """Membership advantage of the strongest observer = total variation = TPR - FPR at best.

        Jia 2023; erratum 11.
        """
        return self.pair.hockey_stick(0.0)

    @ends_in_time
    def accuracy(self, prior: float = 0.5) -> Upper:
        """Largest probability of guessing right when the person is in the data with probability `prior`."""
        probability("prior", prior)
        if prior in (0.0, 1.0):
            return Upper(1.0)
        k = log1p(-prior) - log(prior)
        stick = self._worst(lambda pair: pair.rough_stick(k, _NEGLIGIBLE), k)
        return Upper(min(1.0, 1 - prior + prior * stick), prior * stick.error)

    @ends_in_time
    def tpr(self, fpr: float) -> Upper:
        """Largest true positive rate of any attack with this false positive rate: the ROC curve of the best attack.

        The value is `tpr_bound`; the error reaches down to the rate that some attack surely has.
        """
        top = self.tpr_bound(fpr)
        surely_told = max(pair.least_escape for pair in self._directions)
        if not 0 < fpr < 1:
            return Upper.between(top if fpr else surely_told, top)
        points = [(0.0, surely_told), (1.0, 1.0)]
        if not self._is_apart(fpr):
            points += [point for test in self._tests(fpr) for point in test.points()]
        if _rate_reached(fpr, points) < _NEARLY * top:
            points += self._known_points
        if _rate_reached(fpr, points) < _LOOSE * top:  # no threshold was found: large losses may still be told apart
            points += [self.pair.jump_test_near(fpr)]
            points += [point for t in _LARGE_LOSSES for point in _Test(self.pair, Upper(t)).points()]
        return Upper.between(min(_rate_reached(fpr, points), top), top)

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
        return max(fpr, min(self._dual(threshold, fpr) for threshold in {test.threshold for test in self._tests(fpr)}))

    def _dual(self, k: float, fpr: float) -> float:
        """delta(k) + e^k fpr."""
        return min(1.0, self.delta(k) + exp(min(k + log(fpr), 1.0)))

    @property
    def _known_points(self) -> list[tuple[float, float]]:
        """(fpr, tpr) of attacks that are known at no cost; turned round, they are attacks on the reversed pair."""
        points = [pair.jump_test for pair in self._directions]
        return points + [(1 - y, 1 - x) for x, y in points] if self._both_ways else points

    def _is_apart(self, fpr: float) -> bool:
        """Whether the best attack with this rate only looks for a step that no data without the person explain."""
        return self.pair.stands_apart and self.pair.jump_test[0] < _FAR_BELOW * fpr

    def _tests(self, fpr: float) -> list[_Test]:
        """Attacks near the best one with this rate; predictive values ask for them again."""
        if fpr not in self._known_tests:
            self._known_tests[fpr] = self._found_tests(fpr)
        return self._known_tests[fpr]

    @cached_property
    def _known_tests(self) -> dict[float, list[_Test]]:
        return {}

    def _found_tests(self, fpr: float) -> list[_Test]:
        """Where the best attack may draw its line: steep part, slope 1, or (seen from the other side) flat part."""
        level = [_Test(pair, Upper(0.0, _SMALLEST)) for pair in self._directions]
        if self._is_apart(fpr):
            return [level[0], *(_Test(self.pair, Upper(k)) for k in (self.pair.least,) if isfinite(k))]
        if self._is_lopsided and self.pair.null_tail(0.0) <= fpr <= 1 - self.pair.tail(0.0):
            return level  # the hull is straight between the attacks of slope 1 in both directions
        steep = self.pair.null_exceeded(fpr, self._hints.get(fpr))
        if isfinite(steep):
            self._hints[fpr] = float(steep)
        if len(self._directions) == 1:
            alone = isfinite(steep) and not is_spent()  # without effort no threshold is sure to be a good one
            return [*(() if alone else level), *(_Test(self.pair, k) for k in (steep,) if isfinite(k))]
        if steep > 0:
            return [*level, *(_Test(self.pair, k) for k in (steep,) if isfinite(k))]
        other = self._directions[1]
        flat = other.null_exceeded(fpr)
        return [*level, *(_Test(other, k) for k in (flat,) if -inf < k < 0)]

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
        tpr = self.tpr(fpr)
        return Upper.between(*(_share_of_members(rate, fpr, prior) for rate in (max(tpr.least, 0.0), tpr)))

    def success(self, baseline: float) -> Upper:
        """Largest probability to succeed of any attack that succeeds with `baseline` without the release.

        The trade-off curve at the baseline (Kulynych et al. 2025; for reconstruction also Hayes et al. 2023 and
        Kaissis et al. 2023). The baseline is 1/N for re-identification among N candidates, the weight of the predicate
        for singling out, the best guess without the release for an attribute, and for reconstruction the chance that
        the prior's best guess is close enough.
        """
        return self.tpr(probability("baseline", baseline))

    @ends_in_time
    def quantile(self, p: float) -> Upper:
        """Smallest t with P(L <= t) >= p."""
        probability("p", p)
        return self._exceeded_loss(1 - p)

    @ends_in_time
    def belief(self, delta: float, prior: float = 0.5) -> Upper:
        """The posterior belief in membership that is exceeded with probability at most `delta` (erratum 4).

        Exact, from the quantile of the loss; Bernau 2021, Theorem 2 instead reads the belief off (epsilon, delta).
        """
        probability("delta", delta)
        probability("prior", prior)
        loss = self._exceeded_loss(delta)
        return Upper.between(posterior(loss.least, prior), posterior(loss, prior))

    @ends_in_time
    def exceedance(self, loss: float) -> Upper:
        """P(L > loss): how often the loss, and with it the belief it stands for, is exceeded."""
        real("loss", loss)
        return self._worst(lambda pair: pair.tail(loss), loss)

    @ends_in_time
    def _exceeded_loss(self, failure: float) -> Upper:
        if failure == 0:
            return Upper(max(pair.largest for pair in self._directions))
        value = self.pair.exceeded_loss(failure)
        for pair in self._directions[1:]:
            if value < inf and pair.ceiling(value) > failure and pair.tail(value) > failure:
                value = pair.exceeded_loss(failure)
        return value


@dataclass(frozen=True)
class _Test:
    """An attack that accuses where the loss is above a threshold, known as an interval."""

    pair: Pair
    threshold: Upper

    def points(self) -> list[tuple[float, float]]:
        """(fpr, tpr) that the tests at both ends of the interval have at most, and at least."""
        ends = [end for end in (float(self.threshold), self.threshold.least) if isfinite(end)]
        return [(float(self.pair.null_tail(end)), max(self.pair.tail(end).least, 0.0)) for end in ends]


def _rate_reached(fpr: float, points: list[tuple[float, float]]) -> float:
    """The largest rate at `fpr` among attacks that toss a coin between two of the given ones."""
    below = [(x, y) for x, y in points if x <= fpr]
    above = [(x, y) for x, y in points if x > fpr]
    return max(y + (fpr - x) / (u - x) * max(v - y, 0.0) for x, y in below for u, v in above)


def _share_of_members(tpr: float, fpr: float, prior: float) -> float:
    return posterior(log(tpr) - log(fpr), prior) if tpr > 0 else 0.0


def privacy_loss(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> PrivacyLoss:
    """The exact privacy loss of `mechanism` between neighbours of the given kind.

    Args:
        mechanism: The release.
        adjacency: What neighbours are: add-remove, zero-out or replace; to be named where batches are sampled.

    Returns:
        The loss, whose methods answer every score, each with its numerical error.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove").advantage(), 4)
        0.161
    """
    from deniable.loss import dominating_pair  # noqa: PLC0415 (half of the time of `import deniable`)

    return PrivacyLoss(dominating_pair(mechanism, named_adjacency(mechanism, adjacency)))
