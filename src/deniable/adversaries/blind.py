"""The attack that never looks at the model: what members and non-members give away by themselves.

Erlingsson 2019, Section 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from deniable.adversaries.membership import Scored, best_threshold, halves
from deniable.data import Dataset

MOST_RECORDS = 4000
"""Known records that it learns from, at most; a shift that is worth a warning shows on fewer."""
FOLDS = 3
TREES = 50


@dataclass(frozen=True)
class Blind:
    """Tells members from non-members by features and label alone; the model is ignored.

    A linear and a tree classifier are compared on the known half by cross-validation, and the better one is taken: a
    shift may be in the sums of features or in how they go together. Beyond chance, all that it finds is a difference
    of the two groups, and any other attack's score on the same records may be nothing else.
    """

    def __call__(self, model: nn.Module | None, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """The classifier's decision value for each tested record."""
        known, tested = halves(members, non_members, seed)
        chosen = np.random.default_rng([seed, 1]).permutation(len(known.member))[:MOST_RECORDS]
        table, member = features_and_labels(known.records)[chosen], known.member[chosen]
        held = [(_held_out(kind, table, member, seed), kind) for kind in _classifiers(table, seed)]
        scores, best = max(held, key=lambda found: float(average_precision_score(member, found[0])))
        best.fit(table, member)
        return tested.with_scores(_decision(best, features_and_labels(tested.records)), best_threshold(scores, member))


def _classifiers(table: NDArray[np.float32], seed: int) -> tuple[Pipeline, Pipeline]:
    linear = make_pipeline(StandardScaler(), RidgeClassifier(alpha=float(table.shape[1])))
    trees = make_pipeline(ExtraTreesClassifier(TREES, min_samples_leaf=3, random_state=seed % 2**32))
    return linear, trees


def _held_out(kind: Pipeline, table: NDArray[np.float32], member: NDArray[np.bool_], seed: int) -> NDArray[np.float64]:
    folds = StratifiedKFold(
        min(FOLDS, int(member.sum()), int((~member).sum())), shuffle=True, random_state=seed % 2**32
    )
    method = "decision_function" if hasattr(kind[-1], "decision_function") else "predict_proba"
    found = cross_val_predict(kind, table, member, cv=folds, method=method)
    return np.asarray(found if found.ndim == 1 else found[:, 1], dtype=np.float64)


def _decision(kind: Pipeline, table: NDArray[np.float32]) -> NDArray[np.float64]:
    found = kind.decision_function(table) if hasattr(kind[-1], "decision_function") else kind.predict_proba(table)[:, 1]
    return np.asarray(found, dtype=np.float64)


def features_and_labels(records: Dataset) -> NDArray[np.float32]:
    """Features, and the label as one column a class; of a regression, as it is."""
    labels = (
        records.labels[:, None].astype(np.float32)
        if records.regression
        else np.eye(records.classes, dtype=np.float32)[records.labels]
    )
    return np.hstack([records.features.reshape(len(records), -1), labels])
