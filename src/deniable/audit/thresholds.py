"""Threshold rules: from scores to limits on the error rates that hold together, however the threshold was found.

Every rule ends in `Limits`. All estimators that read error rates (deniable.audit.estimators) are monotone functions of
them, so the error of a rule is the error of every estimator that is read off it.

| rule | the threshold | why it is sound |
|---|---|---|
| `Fixed` | named before the scores were seen | Clopper-Pearson for both rates, jointly (`joint_tails`) |
| `Bonferroni` | order statistics of either class, at ranks named before | see there; union bound over all of them |
| `Split` | the best on one random half | the limits come from the other half alone |
| `MultiSplit` | the best on each of many random halves | the p-value that half of the splits reach, doubled |

The best of many thresholds on the scores that also measure it is not offered: it finds epsilon > 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from deniable.audit.limits import joint_tails, lower_limits, upper_limits
from deniable.audit.scores_input import Errors, Floats, Scores
from deniable.checks import probability, real, whole

__all__ = ["RULES", "Bonferroni", "Fixed", "Limits", "MultiSplit", "Rule", "Split", "Strength", "beats", "shift"]

Strength = Callable[[Floats, Floats], Floats]
"""What an estimator reads off false positive and false negative rates; falls in both, < 0 if worse than guessing."""


def shift(fpr: Floats, fnr: Floats) -> Floats:
    """The mu of the Gaussian trade-off curve through these rates; negative for an attack worse than guessing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmax(ndtri(1 - fpr) - ndtri(fnr), -np.inf))


@dataclass(frozen=True)
class Limits:
    """Limits on (FPR, FNR): rows are splits, columns thresholds whose limits hold together, then corners.

    Guarantee: in each row, with probability 1 - risk every threshold has a corner at which both true rates are at most
    `fpr` and `fnr` (`joint_tails`); and with the same probability one at which both are at least `fpr_low` and
    `fnr_low`. `risk` is (1 - confidence) times the share of rows that must agree: if each of B p-values is sound, then
    B / k times the k-th smallest is (Rueger 1978).
    """

    fpr: Floats
    fnr: Floats
    fpr_low: Floats
    fnr_low: Floats
    confidence: float

    @classmethod
    def of(cls, errors: Errors, confidence: float) -> Limits:
        """From the counts of one threshold that was fixed in advance."""
        return _limits([[errors]], confidence, 1 - probability("confidence", confidence, open_ends=True))

    @property
    def agreeing(self) -> int:
        """How many rows must agree."""
        return _agreeing(len(self.fpr))

    def lower(self, strength: Strength) -> float:
        """Guarantee: above the largest true strength with probability at most 1 - confidence."""
        return float(np.sort(self._least(strength).max(axis=1))[-self.agreeing])

    def upper(self, strength: Strength) -> float:
        """What the strongest of these thresholds shows at most, at the same confidence; other attacks may show more."""
        return self.shown_at_most(strength).lower(strength)

    def shown_at_most(self, strength: Strength) -> Limits:
        """The strongest threshold of each row, with the strongest of its lower limits on the rates as the only ones."""
        best = self.strongest(strength)
        corner = strength(best.fpr_low, best.fnr_low).argmax(axis=2)[:, :, None]
        fpr, fnr = (np.take_along_axis(rate, corner, axis=2) for rate in (best.fpr_low, best.fnr_low))
        return Limits(fpr, fnr, fpr, fnr, self.confidence)

    def strongest(self, strength: Strength) -> Limits:
        """The strongest threshold of each row alone."""
        place = self._least(strength).argmax(axis=1)[:, None, None]
        given = (self.fpr, self.fnr, self.fpr_low, self.fnr_low)
        fpr, fnr, fpr_low, fnr_low = (np.take_along_axis(limit, place, axis=1) for limit in given)
        return Limits(fpr, fnr, fpr_low, fnr_low, self.confidence)

    def _least(self, strength: Strength) -> Floats:
        """Of each row and threshold: the least strength that its limits leave possible."""
        return np.asarray(strength(self.fpr, self.fnr).min(axis=2))

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


class Rule(Protocol):
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
    """Order statistics of either class as thresholds, at ranks that depend on the numbers of trials alone.

    Above the k-th largest of n scores lies a rate whose distribution is Beta(k, n - k + 1), stochastically less with
    ties: its upper limit is Clopper and Pearson's for k - 1 events. The other class is independent of the threshold,
    so its limit is Clopper and Pearson's. All limits share 1 - confidence equally.
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
        members, others = scores.ascending
        found = [_above(others[-rank], scores, rank) for rank in self._ranks(others.size)]
        found += [_from(members[rank - 1], scores, rank) for rank in self._ranks(members.size)]
        return _limits([found], confidence, 1 - confidence)

    def _ranks(self, trials: int) -> list[int]:
        return sorted({min(trials, 1 + int(share * trials)) for share in self.shares})


def _above(threshold: float, scores: Scores, rank: int) -> Errors:
    """Members are those above the `rank`-th largest of the others; with ties, as many false positives as without."""
    missed = int(np.searchsorted(scores.ascending[0], threshold, side="right"))
    return Errors(rank - 1, scores.others.size, missed, scores.members.size)


def _from(threshold: float, scores: Scores, rank: int) -> Errors:
    """Members are those from the `rank`-th smallest of the members on; with ties, as many misses as without."""
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
            chosen, measured = _halves(scores, generator)
            rows.append([_errors(measured, _strongest(chosen, strength, 1 - risk))])
        return _limits(rows, confidence, risk)


RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (Fixed, Bonferroni, Split, MultiSplit)}
"""Every rule by its name."""

_CANDIDATES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, *np.linspace(0.1, 0.5, 13)])
_QUANTILES = np.concatenate([_CANDIDATES, 1 - _CANDIDATES[-2::-1]])
"""Where thresholds are looked for, as quantiles of all scores of a half; dense at both ends."""

Half = tuple[Floats, Floats]


def _halves(scores: Scores, generator: np.random.Generator) -> tuple[Half, Half]:
    """A random half of either class to choose on, and the (larger) rest to measure on."""
    members, others = (generator.permutation(values) for values in (scores.members, scores.others))
    m, o = members.size // 2, others.size // 2
    return (members[:m], others[:o]), (members[m:], others[o:])


def _strongest(half: Half, strength: Strength, confidence: float) -> float:
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


def _errors(half: Half, threshold: float) -> Errors:
    members, others = half
    return Errors(int(np.sum(others > threshold)), others.size, int(np.sum(members <= threshold)), members.size)


def _agreeing(rows: int) -> int:
    return -(-rows // 2)


def _limits(rows: list[list[Errors]], confidence: float, risk: float) -> Limits:
    """All thresholds of a row share `risk` equally; the two classes are independent, so their rates are joint."""
    u, v = joint_tails(risk / len(rows[0]))
    counts = np.moveaxis(np.array([[_tuple(e) for e in row] for row in rows]), 2, 0)
    fp, negatives, fn, positives = counts[..., None]
    return Limits(
        upper_limits(fp, negatives, 1 - u),
        upper_limits(fn, positives, 1 - v),
        lower_limits(fp, negatives, 1 - u),
        lower_limits(fn, positives, 1 - v),
        confidence,
    )


def _tuple(errors: Errors) -> tuple[int, int, int, int]:
    return errors.false_positives, errors.negatives, errors.false_negatives, errors.positives
