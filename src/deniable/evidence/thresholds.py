"""Threshold rules: from scores to limits on the error rates that hold together, however the threshold was found.

Every rule ends in `Limits`. All estimators that read error rates (estimators) are monotone functions of
them, so the error of a rule is the error of every estimator that is read off it (Lemma E4).

| rule | the threshold | why it is sound |
|---|---|---|
| `Fixed` | named before the scores were seen | Clopper-Pearson for both rates, jointly (`joint_tails`) |
| `Bonferroni` | order statistics at ranks named before; few values: between them | union bound over all of them |
| `Split` | the best on one random half | the limits come from the other half alone |
| `MultiSplit` | the best on each of many random halves | the p-value that half of the splits reach, doubled |

The best of many thresholds on the scores that also measure it is not offered: it finds epsilon > 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from deniable.checks import probability, real, whole
from deniable.evidence.attack_scores import Errors, Floats, Scores
from deniable.evidence.limits import joint_tails, lower_limits, upper_limits
from deniable.evidence.roc_band import FEW_VALUES, RocBand

Strength = Callable[[Floats, Floats], Floats]
"""What an estimator reads off false positive and false negative rates; falls in both, < 0 if worse than guessing."""


def shift(fpr: Floats, fnr: Floats) -> Floats:
    """The mu of the Gaussian trade-off curve through these rates; negative for an attack worse than guessing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmax(ndtri(1 - fpr) - ndtri(fnr), -np.inf))


@dataclass(frozen=True)
class Limits:
    """Limits on (FPR, FNR): rows are splits, columns thresholds whose limits hold together, then corners.

    Guarantee for lower bounds: in each row, with probability 1 - risk every threshold has a corner at which both true
    rates are at most `fpr` and `fnr` (`joint_tails`). `risk` is (1 - confidence) times the share of rows that must
    agree: if each of B p-values is sound, then B / k times the k-th smallest is (Rueger 1978).

    Guarantee for upper limits: with probability `confidence`, every threshold (rows) has a corner (columns) at which
    both true rates are at least the `least_rates`, (FPR, FNR). The thresholds are the fixed one, or all there are.
    """

    fpr: Floats
    fnr: Floats
    least_rates: Callable[[], tuple[Floats, Floats]]
    """Called only where an upper limit is asked for."""
    confidence: float

    @classmethod
    def of(cls, errors: Errors, confidence: float) -> Limits:
        """From the counts of one threshold that was fixed in advance."""
        risk = 1 - probability("confidence", confidence, open_ends=True)
        return cls(*_upper_rates([[errors]], risk), partial(_lower_rates, errors, risk), confidence)

    @classmethod
    def at_many(cls, rows: list[list[Errors]], risk: float, scores: Scores, confidence: float) -> Limits:
        """From the counts of thresholds of which all in a row share `risk`; upper limits are of the whole curve."""
        return cls(*_upper_rates(rows, risk), partial(_least_rates, scores, 1 - confidence), confidence)

    @property
    def agreeing(self) -> int:
        """How many rows must agree."""
        return _agreeing(len(self.fpr))

    def lower(self, strength: Strength) -> float:
        """Guarantee: above the largest true strength with probability at most 1 - confidence."""
        return float(np.sort(strength(self.fpr, self.fnr).min(axis=2).max(axis=1))[-self.agreeing])

    def upper(self, strength: Strength) -> float:
        """Guarantee: below the strength at the fixed threshold, or at the best of all, with probability at most
        1 - confidence. Other attacks may show more.
        """
        return float(strength(*self.least_rates()).max())

    def refutes(self, tpr: Callable[[float], float]) -> bool:
        """Whether an attack with these rates beats the trade-off curve `tpr`(fpr), which is then not the true one."""
        found = 0
        for row in zip(self.fpr, self.fnr, strict=True):
            likeliest = np.argsort(-shift(*row).min(axis=1))
            found += any(beats(row[0][i], row[1][i], tpr) for i in likeliest)
        return found >= self.agreeing


def beats(fpr: Floats, fnr: Floats, tpr: Callable[[float], float]) -> bool:
    """Whether the curve is below all corners; the weakest comes first, since a curve may be dear to compute."""
    weakest = np.argsort(shift(fpr, fnr))
    return bool(np.all(1 - fnr > fpr)) and all(1 - fnr[i] > tpr(float(fpr[i])) for i in weakest)


class ThresholdRule(Protocol):
    """How the threshold is found."""

    @property
    def name(self) -> str: ...

    def limits(self, scores: Scores, strength: Strength, confidence: float) -> Limits:
        """Limits on the rates; `strength` is what a rule that may choose makes as large as it can."""


@dataclass(frozen=True)
class Fixed:
    """A threshold named before the scores were seen, such as 0 for a log-likelihood ratio."""

    threshold: float = 0.0
    name = "fixed"

    def __post_init__(self) -> None:
        real("threshold", self.threshold)

    def limits(self, scores: Scores, strength: Strength, confidence: float) -> Limits:
        return Limits.of(scores.errors(self.threshold), confidence)


@dataclass(frozen=True)
class Bonferroni:
    """Thresholds that do not depend on the scores they are measured on, so many as the scores have values.

    Without ties: order statistics of either class, at ranks that depend on the numbers of trials alone. Above the k-th
    largest of n scores lies a rate whose distribution is Beta(k, n - k + 1): its upper limit is Clopper and Pearson's
    for k - 1 events. The other class is independent of the threshold, so its limit is Clopper and Pearson's.

    With ties: a random twentieth of the scores is set aside to learn the values from. Where they are few, the
    thresholds are the cuts between them, one for hard labels; else the ranks, with ties broken at random, which is an
    attack, too. The rest is measured.

    All thresholds share 1 - confidence equally. The guarantee is proved for scores that never tie and for those that
    always do; where a file has ties only sometimes, it is validated by simulation.
    """

    shares: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.25, 0.5)
    name = "bonferroni"

    def __post_init__(self) -> None:
        if not self.shares:
            raise ValueError("shares must name at least one false positive rate, got none")
        for share in self.shares:
            probability("shares", share)

    def limits(self, scores: Scores, strength: Strength, confidence: float) -> Limits:
        probability("confidence", confidence, open_ends=True)
        return Limits.at_many([self._errors(scores)], 1 - confidence, scores, confidence)

    def _errors(self, scores: Scores) -> list[Errors]:
        if scores.values.size == len(scores):
            return self._at_ranks(scores)
        generator = scores.generator(0)
        share = min(max(_LEARNED_SHARE, _FEWEST_LEARNED / len(scores)), _LARGEST_LEARNED_SHARE)
        learned, measured = _part_scores(scores, generator, share)
        thresholds = _cuts(np.concatenate(learned))
        if not thresholds.size:
            return self._at_ranks(break_ties(Scores(*measured), generator))
        return [Scores(*measured).errors(threshold) for threshold in thresholds.tolist()]

    def _at_ranks(self, scores: Scores) -> list[Errors]:
        members, others = scores.ascending
        found = [_above(others[-rank], scores, rank) for rank in self._ranks(others.size)]
        return found + [_from(members[rank - 1], scores, rank) for rank in self._ranks(members.size)]

    def _ranks(self, trials: int) -> list[int]:
        return sorted({min(trials, 1 + int(share * trials)) for share in self.shares})


_LEARNED_SHARE, _FEWEST_LEARNED, _LARGEST_LEARNED_SHARE = 0.05, 12, 0.25
"""Scores set aside to learn the values from."""
_SCORES_PER_VALUE = 4
"""So many of them must fall on a value, on average, for the values to be called few."""


def _cuts(learned: Floats) -> Floats:
    """The thresholds between the values of `learned` if these are few; none if they are many."""
    values = np.unique(learned)
    few = values.size <= min(FEW_VALUES, learned.size // _SCORES_PER_VALUE)
    return (values[:-1] if values.size > 1 else values) if few else values[:0]


def break_ties(scores: Scores, generator: np.random.Generator) -> Scores:
    """The places of the scores in ascending order, equal ones in random order."""
    both = np.concatenate([scores.members, scores.others])
    place = np.empty(both.size)
    place[np.lexsort((generator.random(both.size), both))] = np.arange(both.size)
    return Scores(place[: scores.members.size], place[scores.members.size :])


def _above(threshold: float, scores: Scores, rank: int) -> Errors:
    """Members are those above the `rank`-th largest of the others."""
    missed = int(np.searchsorted(scores.ascending[0], threshold, side="right"))
    return Errors(rank - 1, scores.others.size, missed, scores.members.size)


def _from(threshold: float, scores: Scores, rank: int) -> Errors:
    """Members are those from the `rank`-th smallest of the members on."""
    accused = scores.others.size - int(np.searchsorted(scores.ascending[1], threshold, side="left"))
    return Errors(accused, scores.others.size, rank - 1, scores.members.size)


@dataclass(frozen=True)
class Split:
    """The strongest threshold on one random half of either class; the other half measures it."""

    seed: int = 0
    name = "split"

    def limits(self, scores: Scores, strength: Strength, confidence: float) -> Limits:
        return MultiSplit(1, self.seed).limits(scores, strength, confidence)


@dataclass(frozen=True)
class MultiSplit:
    """As `Split`, for many halves: less a matter of luck, and at a price."""

    splits: int = 11
    seed: int = 0
    name = "multi-split"

    def __post_init__(self) -> None:
        whole("splits", self.splits)
        whole("seed", self.seed, low=0)

    def limits(self, scores: Scores, strength: Strength, confidence: float) -> Limits:
        risk = (1 - probability("confidence", confidence, open_ends=True)) * _agreeing(self.splits) / self.splits
        generator = scores.generator(self.seed)
        rows = []
        for _ in range(self.splits):
            chosen, measured = _part_scores(scores, generator, 0.5)
            rows.append([Scores(*measured).errors(_strongest(chosen, strength, 1 - risk))])
        return Limits.at_many(rows, risk, scores, confidence)


RULES: dict[str, type[ThresholdRule]] = {rule.name: rule for rule in (Fixed, Bonferroni, Split, MultiSplit)}
"""Every rule by its name."""

_CANDIDATES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, *np.linspace(0.1, 0.5, 13)])
_QUANTILES = np.concatenate([_CANDIDATES, 1 - _CANDIDATES[-2::-1]])
"""Where thresholds are looked for, as quantiles of all scores of a half; dense at both ends."""

Part = tuple[Floats, Floats]


def _part_scores(scores: Scores, generator: np.random.Generator, share: float) -> tuple[Part, Part]:
    """A random `share` of either class to choose on, rounded down, and the rest to measure on; never all."""
    members, others = (generator.permutation(values) for values in (scores.members, scores.others))
    m, o = (min(int(share * values.size), values.size - 1) for values in (members, others))
    return (members[:m], others[:o]), (members[m:], others[o:])


def _strongest(half: Part, strength: Strength, confidence: float) -> float:
    """The candidate whose limits on this half are the strongest; 0 where a class is missing, so that none is known."""
    members, others = half
    if not members.size or not others.size:
        return 0.0
    both = np.sort(np.concatenate(half))
    candidates = both[(_QUANTILES * (both.size - 1)).astype(np.int64)]
    fp = others.size - np.searchsorted(np.sort(others), candidates, side="right")
    fn = np.searchsorted(np.sort(members), candidates, side="right")
    u, v = joint_tails(1 - confidence)
    found = strength(upper_limits(fp[:, None], others.size, 1 - u), upper_limits(fn[:, None], members.size, 1 - v))
    return float(candidates[np.argmax(found.min(axis=1))])


def _agreeing(rows: int) -> int:
    return -(-rows // 2)


def _upper_rates(rows: list[list[Errors]], risk: float) -> tuple[Floats, Floats]:
    """All thresholds of a row share `risk` equally; the two classes are independent, so their rates are joint."""
    u, v = joint_tails(risk / len(rows[0]))
    counts = np.moveaxis(np.array([[_tuple(e) for e in row] for row in rows]), 2, 0)
    fp, negatives, fn, positives = counts[..., None]
    return upper_limits(fp, negatives, 1 - u), upper_limits(fn, positives, 1 - v)


def _lower_rates(errors: Errors, risk: float) -> tuple[Floats, Floats]:
    """Corners of the least rates at one threshold."""
    u, v = joint_tails(risk)
    fpr = lower_limits(errors.false_positives, errors.negatives, 1 - u)
    return fpr[None], lower_limits(errors.false_negatives, errors.positives, 1 - v)[None]


def _least_rates(scores: Scores, risk: float) -> tuple[Floats, Floats]:
    """Of all thresholds. Scores of two values, each seen often, are decisions: there is one threshold between them."""
    if _is_decision(scores):
        return _lower_rates(scores.errors(float(scores.values[0])), risk)
    fpr, fnr = RocBand.of(scores, risk).least_rates()
    return fpr[:, None], fnr[:, None]


def _is_decision(scores: Scores) -> bool:
    """Whether there are two values, each seen so often that a third one would have been seen, too."""
    if scores.values.size != 2:
        return False
    higher = sum(int(np.sum(values == scores.values[1])) for values in scores.ascending)
    return _FEWEST_OF_EITHER_VALUE <= higher <= len(scores) - _FEWEST_OF_EITHER_VALUE


_FEWEST_OF_EITHER_VALUE = 10


def _tuple(errors: Errors) -> tuple[int, int, int, int]:
    return errors.false_positives, errors.negatives, errors.false_negatives, errors.positives
