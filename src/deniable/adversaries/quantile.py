"""The attack without shadow models of Bertran, Tang, Kearns, Morgenstern, Roth and Wu 2023: quantile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from deniable.adversaries.membership import Half, Scored, best_threshold, halves
from deniable.adversaries.model_observation import closeness, errors, losses, margins, outputs
from deniable.adversaries.threshold import features_and_labels
from deniable.checks import whole
from deniable.data import Dataset

Floats = NDArray[np.float64]
LEAST_DEVIATION = 1e-3


@dataclass(frozen=True)
class Quantile:
    """How far a record's confidence lies above what is usual for non-members with such features and such a label.

    A regression of the confidence on the known non-members tells mean and deviation of a Gaussian for each record, as
    Bertran 2023's do; the score is the distance from the mean in deviations, and a quantile is a threshold on it. Trees
    stand where Bertran 2023 has boosted trees or a network: each known record is told by trees that did not see it.
    """

    trees: int = 200
    least_leaf_records: int = 5

    def __post_init__(self) -> None:
        whole("trees", self.trees, low=10)
        whole("least_leaf_records", self.least_leaf_records)

    def __call__(self, model: Any, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """The distance of each tested record in deviations."""
        known, tested = halves(members, non_members, seed)
        scale = 2 * float(losses(model, known.non_members).mean())
        told = _Usual(self, known.non_members, _confidence(model, known.non_members, scale), seed)
        seen, asked = (_confidence(model, half.records, scale) for half in (known, tested))
        scores = told.distance(tested, asked)
        on_known = told.distance(known, seen)
        on_known[len(known.members) :] = told.own_distance
        return tested.with_scores(scores, best_threshold(on_known, known.member))


def _confidence(model: Any, records: Dataset, scale: float) -> Floats:
    """`scale` is the mean squared error of a regression; classes do not need it."""
    if records.regression:
        return closeness(errors(model, records), scale)
    found: Floats = margins(outputs(model, records), records.labels).numpy()
    return found


class _Usual:
    """Mean and deviation of the confidence, by a regression on non-members."""

    def __init__(self, settings: Quantile, records: Dataset, confidence: Floats, seed: int) -> None:
        table = features_and_labels(records)
        self._mean = _forest(settings, seed).fit(table, confidence)
        residual = confidence - self._mean.oob_prediction_
        self._square = _forest(settings, seed + 1).fit(table, np.square(residual))
        self.own_distance = residual / _root(self._square.oob_prediction_)

    def distance(self, half: Half, confidence: Floats) -> Floats:
        """Of each record, in deviations."""
        table = features_and_labels(half.records)
        found: Floats = (confidence - self._mean.predict(table)) / _root(self._square.predict(table))
        return found


def _root(square: Floats) -> Floats:
    found: Floats = np.sqrt(np.maximum(square, LEAST_DEVIATION**2))
    return found


def _forest(settings: Quantile, seed: int) -> ExtraTreesRegressor:
    return ExtraTreesRegressor(
        settings.trees,
        min_samples_leaf=settings.least_leaf_records,
        max_features=0.3,
        bootstrap=True,
        oob_score=True,
        random_state=seed % 2**32,
    )
