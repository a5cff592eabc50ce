"""Limits on an attack's whole ROC curve: on both rates at every threshold at once, with or without ties.

What an attack reaches at its *best* threshold, its AUC and its average precision are functionals of the whole curve, so
limits at one threshold say nothing about them. `RocBand.of` limits, for either class, the share of scores in or above
each of the classes into which the seen values cut the line.

Few values (hard labels, rounded scores): one Clopper-Pearson limit a cut, sharing the risk. Many values: the better of
the band of Dvoretzky, Kiefer and Wolfowitz (Massart 1990), narrow in the middle, and of Clopper-Pearson limits at
order statistics whose ranks grow geometrically from either end, narrow at the ends; half of the risk each. All of them
hold for any distribution: ties only make them wider than need be (Lemma E5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable.evidence.attack_scores import Floats, Scores
from deniable.evidence.limits import lower_limits, upper_limits

FEW_VALUES = 12
"""Distinct scores up to which each gets limits of its own."""
_RANK_GROWTH = 1.35
"""Of the ranks at which order statistics are limited: finer costs more risk than it gains."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class RocBand:
    """Limits on the ROC curve at all thresholds together; arrays go from the lowest class of scores to the highest.

    Guarantee: with probability at least 1 - `risk` no rate is above its `_high`, and with the same probability none is
    below its `_low`. With few values the classes are what is below all values seen, each of these, and what is above
    all. With many, a class is what lies above one seen value up to the next, and the last what lies above all.
    """

    tpr_low: Floats
    tpr_high: Floats
    fpr_low: Floats
    fpr_high: Floats
    atoms: bool
    """Whether classes are single values, so that two scores of one class are tied."""

    @classmethod
    def of(cls, scores: Scores, risk: float) -> RocBand:
        """Either end of the band misses with probability at most `risk`; members and others share it."""
        values = scores.values
        atoms = values.size <= FEW_VALUES
        find = _few_limits if atoms else _many_limits
        counts = [ordered.size - np.searchsorted(ordered, values, side="left") for ordered in scores.ascending]
        (tpr_low, tpr_high), (fpr_low, fpr_high) = (
            find(np.append(above, 0), size, risk / 2)
            for above, size in zip(counts, (scores.members.size, scores.others.size), strict=True)
        )
        return cls(tpr_low, tpr_high, fpr_low, fpr_high, atoms)

    def least_rates(self) -> tuple[Floats, Floats]:
        """The least (FPR, FNR) of every threshold between two classes."""
        return self.fpr_low[1:], 1 - self.tpr_high[1:]

    def largest_advantage(self) -> float:
        """Guarantee: below the advantage at the best threshold with probability at most the band's risk."""
        fpr, fnr = self.least_rates()
        return float(max((1 - fpr - fnr).max(initial=0.0), 0.0))

    def auc(self) -> tuple[float, float]:
        """Limits on the probability that a member's score is above another's, a tie counting one half."""
        beaten_low, beaten_high = 1 - self.fpr_high, 1 - self.fpr_low
        if self.atoms:
            ends = [(rates + np.append(rates[1:], 1.0)) / 2 for rates in (beaten_low, beaten_high)]
        else:
            ends = [beaten_low, np.append(beaten_high[1:], 1.0)]
        return self._mean(ends[0], highest=False), self._mean(ends[1], highest=True)

    def average_precision(self, members: int, others: int) -> tuple[float, float]:
        """Limits on the mean over members of the precision at their score, at this ratio of members to others."""
        low = _precision(self.tpr_low * members, self.fpr_high * others)
        high = _precision(self.tpr_high * members, self.fpr_low * others)
        return self._mean(low, highest=False), self._mean(high, highest=True)

    def _mean(self, values: Floats, *, highest: bool) -> float:
        """The most, or least, that the members' mean of a function of the class can be: summed by parts."""
        rises = np.diff(values)
        rates = np.where((rises > 0) == highest, self.tpr_high[1:], self.tpr_low[1:])
        return float(np.clip(values[0] + rates @ rises, 0.0, 1.0))


def _precision(right: Floats, wrong: Floats) -> Floats:
    """Members among the accused; 0 where nobody is."""
    return np.asarray(np.divide(right, right + wrong, out=np.zeros_like(right), where=right > 0))


def _few_limits(above: Counts, trials: int, risk: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's at each cut; the first class is what is below all values, so that its rate is 1."""
    confidence = 1 - risk / above.size
    low, high = lower_limits(above, trials, confidence), upper_limits(above, trials, confidence)
    return np.append(1.0, low), np.append(1.0, high)


def _many_limits(above: Counts, trials: int, risk: float) -> tuple[Floats, Floats]:
    """The better of two bands, each at half of `risk`.

    The share above the r-th largest score is stochastically at most Beta(r, trials - r + 1), and the share from it on
    at least, ties or not; so limits at some ranks hold for counts that are rounded to them, away from the middle.
    """
    ranks = _ranks(trials)
    confidence = 1 - risk / 2 / (ranks.size - 1)
    at_least = lower_limits(ranks, trials, confidence)
    at_most = upper_limits(np.append(ranks[1:], trials + 1) - 1, trials, confidence)
    place = np.searchsorted(ranks, above, side="right") - 1  # the rank that is reached; the next one is not
    width = np.sqrt(np.log(2 / risk) / (2 * trials))
    low = np.maximum(at_least[place], above / trials - width)
    return low, np.minimum(at_most[place], above / trials + width)


@cache
def _ranks(trials: int) -> Counts:
    """0, then ranks that grow geometrically from either end up to `trials`."""
    steps = np.arange(int(np.log(trials + 1) / np.log(_RANK_GROWTH)) + 1)
    near = np.unique(np.ceil(_RANK_GROWTH**steps).astype(np.int64))
    near = near[near <= trials]
    return np.unique(np.concatenate([[0], near, trials + 1 - near]))
