"""How well an attack does (precision and recall, rates, advantage), and what its defeat costs (Bernau 2021b's phi).

Scores are higher for likelier members. Records with equal scores are accused together or not at all, so no curve has a
point inside a tie and the order of the records never matters.

scikit-learn is imported where it is asked: it brings scipy.stats, half a second of each command and worker.
"""

# ruff: noqa: PLC0415 (see above)

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.checks import probability, whole

__all__ = [
    "PrecisionRecall",
    "Rates",
    "advantage",
    "average_precision",
    "average_precision_bound",
    "chance_level",
    "phi",
    "precision_recall",
    "rank_correlation",
    "ranks",
    "rates",
    "tpr_at",
]

Floats = NDArray[np.float64]
LARGEST_PHI = 2.0


class PrecisionRecall(NamedTuple):
    """One point a threshold, from the highest threshold (few accused) to the lowest (all accused)."""

    precision: Floats
    recall: Floats
    thresholds: Floats


class Rates(NamedTuple):
    """The ROC curve from (0, 0), whose threshold is infinite, to (1, 1)."""

    fpr: Floats
    tpr: Floats
    thresholds: Floats


def precision_recall(scores: ArrayLike, member: ArrayLike) -> PrecisionRecall:
    """Which share of the accused are members, and which share of members is accused, at every threshold."""
    from sklearn.metrics import precision_recall_curve

    precision, recall, thresholds = precision_recall_curve(*_truth_and_scores(scores, member))
    return PrecisionRecall(precision[:-1][::-1], recall[:-1][::-1], thresholds[::-1])


def average_precision(scores: ArrayLike, member: ArrayLike) -> float:
    """sum over thresholds of (recall gained) x precision, without interpolation (Bernau 2021b, Section 3.1).

    Scores that say nothing (all equal) have the share of members: 0.5 on a balanced set.
    """
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(*_truth_and_scores(scores, member)))


def rates(scores: ArrayLike, member: ArrayLike) -> Rates:
    """False and true positive rates at every threshold."""
    from sklearn.metrics import roc_curve

    return Rates(*roc_curve(*_truth_and_scores(scores, member), drop_intermediate=False))


def ranks(values: ArrayLike) -> Floats:
    """From 1, the smallest; equal values share the mean of theirs, and nan has none."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.where(np.isnan(values), np.nan, (np.cumsum(counts) - (counts - 1) / 2)[places])


def roc_areas(scores: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Areas under the ROC curves of rows of scores, by the rank sum (Mann and Whitney): ties count half.

    nan where all records are of one kind.
    """
    yes, no = int(positive.sum()), int((~positive).sum())
    if not yes or not no:
        return np.full(len(scores), np.nan)
    sums = np.apply_along_axis(ranks, 1, scores)[:, positive].sum(1)
    return np.asarray((sums - yes * (yes + 1) / 2) / (yes * no))


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float | None:
    """Spearman's; None where either does not vary."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def tpr_at(scores: ArrayLike, member: ArrayLike, fpr: float) -> float:
    """The largest true positive rate of a threshold whose false positive rate is at most `fpr`; 0 where none is.

    An estimate: the threshold is chosen on the same records.
    """
    probability("fpr", fpr)
    curve = rates(scores, member)
    return float(curve.tpr[curve.fpr <= fpr * (1 + 1e-12)].max())


def advantage(scores: ArrayLike, member: ArrayLike, threshold: float | None = None) -> float:
    """TPR - FPR at `threshold`; without one, the largest of all, which is an estimate from above."""
    if threshold is None:
        curve = rates(scores, member)
        return float((curve.tpr - curve.fpr).max())
    truth, values = _truth_and_scores(scores, member)
    accused = values >= threshold
    return float(accused[truth].mean() - accused[~truth].mean())


def _truth_and_scores(scores: ArrayLike, member: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(member)
    if values.ndim != 1 or values.shape != truth.shape:
        raise ValueError(f"scores and member must be equally many in one row, got {values.shape} and {truth.shape}")
    if not np.isin(truth, (0, 1)).all():
        raise ValueError("member must hold only True and False (or 1 and 0)")
    if np.isnan(values).any():
        raise ValueError("scores must be numbers, got NaN; drop or repair these records")
    truth = truth.astype(bool)
    if truth.all() or not truth.any():
        raise ValueError(f"member must name both members and non-members, got {int(truth.sum())} of {len(truth)}")
    if np.isinf(values).any():  # order is all that counts, and scikit-learn takes finite numbers only
        values = np.unique(values, return_inverse=True)[1].astype(np.float64)
    return truth, values


def chance_level(records: int, repeats: int = 1, confidence: float = 0.95, draws: int = 2000, seed: int = 0) -> float:
    """The mean average precision that guessing stays below with `confidence`, by simulation.

    For `repeats` independent sets of `records` tested records, half of them members. Guessing has 0.5 in the limit, a
    little more on small sets.
    """
    half = whole("records", records, low=2) // 2
    probability("confidence", confidence, open_ends=True)
    generator = np.random.default_rng(seed)
    truth = np.tile(np.repeat([1.0, 0.0], half), (whole("repeats", repeats), 1))
    places = np.arange(1, 2 * half + 1)
    means = []
    for _ in range(whole("draws", draws)):
        drawn = generator.permuted(truth, axis=1)
        means.append((np.cumsum(drawn, axis=1) / places * drawn).sum() / (half * repeats))
    return float(np.quantile(means, confidence, method="higher"))


def average_precision_bound(advantage: float) -> float:
    """The largest average precision on balanced records of attacks of at most this advantage (in the limit of many).

    At recall r such an attack accuses at least r - a of the non-members, so its precision is at most r / (2r - a), and
    1 up to recall a; the integral over r is a + (1 - a)/2 + (a/4) ln((2 - a)/a).
    """
    a = probability("advantage", advantage)
    return 0.5 if a == 0 else a + (1 - a) / 2 + a / 4 * log((2 - a) / a)


def phi(
    *,
    original_precision: float,
    precision: float,
    original_accuracy: float,
    accuracy: float,
    classes: int,
    baseline_precision: float = 0.5,
) -> float | None:
    """Bernau 2021b, Section 3.2: the relative gain in privacy over the relative loss in accuracy, from 0 to 2 (erratum
    16).

    ``min(2, max(0, (AP_orig - AP)(ACC_orig - 1/C)) / max(0, (ACC_orig - ACC)(AP_orig - 0.5)))``. Above 1 more privacy
    is gained than accuracy lost. AP that does not fall gives 0, even if the accuracy rises; AP that falls while the
    accuracy is kept or gained gives 2. None where the original model's AP is at its baseline or below: there is nothing
    to protect, and no trade-off.
    """
    values = {"original_precision": original_precision, "precision": precision, "original_accuracy": original_accuracy}
    for name, value in (values | {"accuracy": accuracy, "baseline_precision": baseline_precision}).items():
        probability(name, value)
    guessing = 1 / whole("classes", classes, low=2)
    if original_precision <= baseline_precision:
        return None
    gain, lost = original_precision - precision, original_accuracy - accuracy
    if gain <= 0:
        return 0.0
    if lost <= 0:
        return LARGEST_PHI
    ratio = max(0.0, gain * (original_accuracy - guessing)) / (lost * (original_precision - baseline_precision))
    return min(LARGEST_PHI, ratio)
