"""How good trained models are: one row a training, one column a test record's class or group; limits over repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import inf, sqrt

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from deniable.results.frontier_result import LOWER_IS_BETTER, Repeated
from deniable.results.shared import Ends
from deniable.tradeoff import roc_areas
from deniable.training.together import TrainedTogether
from deniable.utility.parts import Parts

Floats = NDArray[np.float64]
METRICS = {
    "classification": ("accuracy", "balanced_accuracy", "auc"),
    "regression": ("error", "absolute_error", "explained"),
}
"""What can be tuned for, the usual one first."""


def nothing() -> Floats:
    """No figures."""
    return np.empty(0)


@dataclass(frozen=True)
class Measures:
    """Of each training, (trainings,) or (trainings, classes or groups); NaN where it diverged or nobody is meant.

    A classification has the first three, a regression the next; the others' arrays are empty.
    """

    accuracy: Floats = field(default_factory=nothing)
    balanced_accuracy: Floats = field(default_factory=nothing)
    auc: Floats = field(default_factory=nothing)
    error: Floats = field(default_factory=nothing)
    absolute_error: Floats = field(default_factory=nothing)
    explained: Floats = field(default_factory=nothing)
    classes: Floats = field(default_factory=nothing)
    groups: Floats = field(default_factory=nothing)

    def take(self, trainings: NDArray[np.int64]) -> Measures:
        """Of some of the trainings."""
        return Measures(*(value[trainings] if value.size else value for value in self._values()))

    def _values(self) -> list[Floats]:
        return [getattr(self, one.name) for one in fields(self)]


def score(measures: Measures, metric: str) -> Floats:
    """The measure that is tuned for, larger is better; a training that diverged is worse than any other."""
    values: Floats = getattr(measures, metric)
    signed = -values if metric in LOWER_IS_BETTER else values
    return np.where(np.isnan(signed), -np.inf, signed)


def measure(trained: TrainedTogether, parts: Parts, places: NDArray[np.int64] | None = None) -> Measures:
    """How good each training's model is on the test part, or on the training records at `places`."""
    records = parts.test if places is None else parts.train[torch.from_numpy(places)]
    labels = parts.test_labels if places is None else parts.train_labels[torch.from_numpy(places)]
    groups = parts.test_groups if places is None else np.full(len(labels), -1)
    judge = _judge_classes if parts.task == "classification" else _judge_numbers
    return join_measures(
        [judge(outputs.numpy(), labels.numpy(), groups, parts) for _, outputs in trained.outputs(records)]
    )


def join_measures(found: Sequence[Measures]) -> Measures:
    """One row after the other."""
    return Measures(*(np.concatenate([getattr(one, name.name) for one in found]) for name in fields(Measures)))


def measure_answer(parts: Parts) -> tuple[Measures, str]:
    """The best answer that looks at no record, the training part's most common class or mean; and what it is."""
    if parts.task == "regression":
        constant = np.zeros((1, len(parts.test_labels), 1), dtype=np.float32)
        found = _judge_numbers(constant, parts.test_labels.numpy(), parts.test_groups, parts)
        return found, _tell_mean(parts.label_mean)
    common = int(np.bincount(parts.train_labels.numpy()).argmax())
    constant = np.zeros((1, len(parts.test_labels), parts.outputs), dtype=np.float32)
    constant[:, :, common] = 1
    return _judge_classes(constant, parts.test_labels.numpy(), parts.test_groups, parts), parts.classes[common]


def _tell_mean(mean: float) -> str:
    """Four digits, and all of a whole number's."""
    return f"{mean:,.0f}" if 1e4 <= abs(mean) < 1e9 else f"{mean:.4g}"


def _judge_classes(
    outputs: NDArray[np.float32], labels: NDArray[np.int64], groups: NDArray[np.int64], parts: Parts
) -> Measures:
    """From outputs (trainings, records, classes)."""
    usable = np.asarray(np.isfinite(outputs).all(axis=(1, 2)))
    right = np.asarray(outputs.argmax(2) == labels, dtype=np.float64)
    right[~usable] = np.nan
    by_class = _by_part(right, labels, len(parts.classes))
    there = np.isin(np.arange(len(parts.classes)), labels)
    areas = _areas(np.where(usable[:, None, None], outputs, 0), labels)
    return Measures(
        accuracy=right.mean(1),
        balanced_accuracy=by_class[:, there].mean(1),
        auc=np.where(usable, areas, np.nan),
        classes=by_class,
        groups=_by_part(right, groups, len(parts.groups)),
    )


def _judge_numbers(
    outputs: NDArray[np.float32], labels: NDArray[np.float32], groups: NDArray[np.int64], parts: Parts
) -> Measures:
    """From outputs (trainings, records, 1), in units of the label."""
    off = (outputs[:, :, 0].astype(np.float64) - labels) * parts.label_spread
    off[~np.isfinite(off).all(1)] = np.nan
    squares = off**2
    spread = float(np.var(labels.astype(np.float64))) * parts.label_spread**2
    return Measures(
        error=np.sqrt(squares.mean(1)),
        absolute_error=np.abs(off).mean(1),
        explained=1 - squares.mean(1) / spread if spread else np.full(len(off), np.nan),
        groups=np.sqrt(_by_part(squares, groups, len(parts.groups))),
    )


def _by_part(values: Floats, part: NDArray[np.int64], count: int) -> Floats:
    """The mean over each part's records, (trainings, parts); NaN where a part has none."""
    inside = part >= 0
    sizes = np.bincount(part[inside], minlength=count)[:count].astype(np.float64)
    sums = np.zeros((len(values), count))
    for number in np.flatnonzero(sizes):
        sums[:, number] = values[:, part == number].sum(1)
    with np.errstate(invalid="ignore"):
        return sums / np.where(sizes > 0, sizes, np.nan)


def _areas(outputs: NDArray[np.float32], labels: NDArray[np.int64]) -> Floats:
    """Area under the ROC curve; of several classes the mean of each, by its softmax, against all others."""
    if outputs.shape[2] == 2:
        return roc_areas((outputs[:, :, 1] - outputs[:, :, 0]).astype(np.float64), labels == 1)
    shifted = outputs - outputs.max(2, keepdims=True)
    shares = np.exp(shifted) / np.exp(shifted).sum(2, keepdims=True)
    there = [number for number in range(outputs.shape[2]) if 0 < np.count_nonzero(labels == number) < len(labels)]
    areas = [roc_areas(shares[:, :, number].astype(np.float64), labels == number) for number in there]
    return np.mean(areas, axis=0) if areas else np.full(len(outputs), np.nan)


def limits_of_repeats(values: ArrayLike, confidence: float, low: float = -inf, high: float = inf) -> Repeated:
    """Student's limits of the mean, and of one more value, cut off where the measure ends (`low`, `high`).

    Guarantee: exact for normal values; simulated in the tests for shares of test records.
    """
    found = np.asarray(values, dtype=np.float64)
    mean, deviation = float(found.mean()), float(found.std(ddof=1))
    factor = float(stdtrit(len(found) - 1, (1 + confidence) / 2)) * deviation
    of_mean, of_next = factor / sqrt(len(found)), factor * sqrt(1 + 1 / len(found))

    def cut(value: float) -> float:
        return min(high, max(low, value))

    return Repeated(
        mean=mean,
        low=cut(mean - of_mean),
        high=cut(mean + of_mean),
        next_low=cut(mean - of_next),
        next_high=cut(mean + of_next),
        values=tuple(found.tolist()),
    )


def limits_of_difference(first: ArrayLike, second: ArrayLike, confidence: float) -> Ends:
    """Limits of the mean of first - second; both have the same repeats in the same order."""
    found = limits_of_repeats(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64), confidence)
    return Ends(low=found.low, high=found.high)
