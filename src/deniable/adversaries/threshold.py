"""Attacks that need no other model: the loss threshold, and the control that never looks at the model.

Loss threshold: Yeom, Giacomelli, Fredrikson and Jha 2018; Bernau 2021, Section 5.3; Erlingsson 2019, Section 4.
Control: Erlingsson 2019, Section 5.4.

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
from deniable.adversaries.model_observation import losses
from deniable.data import Dataset
from deniable.training.threads import one_thread

Rule = Literal["average", "free"]


@dataclass(frozen=True)
class LossThreshold:
    """A record with a small loss is a member; the score is the loss, negated.

    The `average` rule calls members those with at most the average training loss, as Yeom does; the average is that of
    the known members, so that the tested ones have no part in it. The `free` rule takes the threshold with the largest
    advantage on the known half, which Erlingsson 2019 (Section 5.4) takes on the tested records themselves.
    """

    rule: Rule = "average"

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}, got {self.rule!r}")

    def __call__(self, model: nn.Module, members: Dataset, non_members: Dataset, seed: int) -> Scored:
        """Minus the loss of each tested record."""
        known, tested = halves(members, non_members, seed)
        with one_thread():
            seen, asked = (-losses(model, half.records) for half in (known, tested))
        average = float(np.mean(seen[known.member]))
        return tested.with_scores(asked, average if self.rule == "average" else best_threshold(seen, known.member))


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
