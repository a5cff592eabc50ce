"""Every member on one scale: LiRA's own likelihood, and what an observer of every step may believe."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

from msgspec import structs
from sklearn.linear_model import LogisticRegression
from torch import nn

import deniable as dn
from deniable.adversaries import ShadowTraining
from deniable.campaigns.exposure import exposure
from deniable.data import Dataset, from_arrays
from deniable.mechanisms import Adjacency
from deniable.report.words.attack_words import exposed_rows, exposure_sentence
from deniable.results import AttackResult, read_result
from deniable.training.attacked.targets import fit
from deniable.training.settings import TrainingSettings

RECIPE = ShadowTraining(epochs=4, batch=20, learning_rate=0.02, noise=1.0)


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def drawn_records() -> tuple[Dataset, Dataset]:
    generator = np.random.default_rng(2)
    features, labels = generator.normal(size=(120, 6)), generator.integers(0, 3, 120)
    features[:3] *= 6  # three that stand out
    first, second = (from_arrays("few", features[p], labels[p]) for p in (slice(60), slice(60, None)))
    return first, second


@pytest.fixture(scope="module")
def found() -> AttackResult:
    members, others = drawn_records()
    model = fit(RECIPE.settings(small, 4), members, members, 1).model
    return dn.attack(model, members, others, training=RECIPE, shadows=8, repeats=1, exposure=True)


def test_both_beliefs_of_every_member(found: AttackResult) -> None:
    people = found.exposure
    assert people is not None
    assert len(people.lira) == len(people.observer) == 60
    assert all(0 <= belief <= 1 for belief in people.lira)
    assert all(0.5 <= belief <= 1 for belief in people.observer)
    assert people.surer == sum(a > b for a, b in zip(people.lira, people.observer, strict=True))
    first = found.most_exposed[0]
    assert first.belief == pytest.approx(max(people.lira), abs=1e-6)
    assert first.observer == people.observer[first.number]


def test_the_observers_belief_is_the_exposure_of_the_same_recipe(found: AttackResult) -> None:
    """Recomputed from the audit's own exposure, with the network's shape alone."""
    members, _ = drawn_records()
    settings = TrainingSettings(
        small, noise=1.0, steps=12, clip=1.0, learning_rate=0.02, optimizer="adam", rate=1 / 3,
        adjacency=Adjacency.ADD_REMOVE,
    )  # fmt: skip
    again = exposure(settings, members, seed=0, delta=1 / 60)
    assert found.exposure is not None
    assert max(again.belief) == pytest.approx(max(found.exposure.observer), rel=0.1)
    assert "upper bound for sampling" in found.exposure.method


def test_words_follow_the_figures(found: AttackResult) -> None:
    people = found.exposure
    assert people is not None
    nobody = found.replace(exposure=structs.replace(people, surer=0))
    varied = structs.replace(people, surer=7, observer=(0.9, 0.95) * 30, rank_correlation=None)
    some = found.replace(exposure=varied)
    assert "surer than that observer of no member." in exposure_sentence(nobody)
    assert "by likelihoods that are estimates" in exposure_sentence(some)
    assert "of 7 of 60 members; there it overstates, if" in exposure_sentence(some)
    assert "equally sure of every member" in exposure_sentence(some)
    ranked = structs.replace(varied, rank_correlation=-0.07)
    assert "rank correlation of the two is -0.07" in exposure_sentence(found.replace(exposure=ranked))
    alike = found.replace(exposure=structs.replace(ranked, observer=(0.99401, 0.99402) * 30))
    assert "for every member: there is no order to compare" in exposure_sentence(alike)
    assert "rank correlation" not in exposure_sentence(alike)
    assert exposure_sentence(found.replace(exposure=None)) == ""
    assert all(len(row) == 3 for row in exposed_rows(found))
    assert "exposed-members" in found.pictures()
    again = read_result(json.loads(found.to_json()))
    assert isinstance(again, AttackResult)
    assert again.exposure == people


def test_what_has_no_exact_exposure_is_refused() -> None:
    members, others = drawn_records()
    with pytest.raises(ValueError, match="without noise an observer of every step is certain"):
        dn.attack(small(), members, others, exposure=True)
    with pytest.raises(ValueError, match="needs shadow models"):
        dn.attack(small(), members, others, attack="threshold", training=RECIPE, exposure=True)
    estimator = LogisticRegression().fit(members.features, members.labels)
    with pytest.raises(ValueError, match="training is about networks"):
        dn.attack(estimator, members, others, training=replace(RECIPE), exposure=True)
