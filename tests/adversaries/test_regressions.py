"""Attacks on models that predict numbers: they find what is there, nothing where nothing is, and refuse in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

import torch
from sklearn.kernel_ridge import KernelRidge
from torch import nn

import deniable as dn
from deniable.adversaries import LossThreshold, ShadowTraining
from deniable.adversaries.model_observation import closeness, errors, share_explained
from deniable.comparison.own_model import read_model, read_records
from deniable.data import Dataset, from_arrays


def drawn_records(count: int = 240, seed: int = 0) -> tuple[Dataset, Dataset]:
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(2 * count, 12))
    labels = features[:, 0] + 0.8 * generator.normal(size=2 * count)
    parts = slice(count), slice(count, None)
    first, second = (from_arrays("numbers", features[part], labels[part], regression=True) for part in parts)
    return first, second


def fitted_ridge(records: Dataset) -> KernelRidge:
    return KernelRidge(kernel="rbf", alpha=0.3, gamma=0.1).fit(records.features, records.labels)


def trained_network(records: Dataset, steps: int = 300) -> nn.Module:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
    learner = torch.optim.Adam(model.parameters(), 0.01)
    inputs, labels = torch.from_numpy(records.features), torch.from_numpy(records.labels).float()
    for _ in range(steps):
        learner.zero_grad()
        (model(inputs).squeeze(1) - labels).square().mean().backward()
        learner.step()
    return model


def test_shadow_attacks_beat_the_loss_threshold() -> None:
    members, others = drawn_records()
    found = dn.attack(fitted_ridge(members), members, others, shadows=16, repeats=1)
    auc = {row.name: row.auc.value for row in found.attacks}
    assert min(auc["lira"], auc["rmia"], auc["bayes"]) > auc["threshold"] + 0.05
    assert found.shadows is not None
    assert found.accuracy is not None
    assert found.accuracy.members > found.accuracy.non_members
    assert "of the variance of their own records" in found.summary()


def test_networks_are_trained_by_the_engine() -> None:
    members, others = drawn_records()
    training = ShadowTraining(epochs=60, batch=64, learning_rate=0.01)
    found = dn.attack(trained_network(members), members, others, shadows=8, repeats=1, training=training)
    assert found.shadows is not None
    assert found.shadows.trained_by == "engine"
    assert max(row.auc.low for row in found.attacks) > 0.55


def test_where_nothing_is_nothing_is_found() -> None:
    """The model was fitted to other records than those that are called members."""
    members, others = drawn_records(seed=3)
    found = dn.attack(fitted_ridge(drawn_records(seed=4)[0]), members, others, shadows=8, repeats=1)
    assert all(row.auc.low < 0.5 for row in found.attacks)


def test_all_attacks_but_the_white_box() -> None:
    members, others = drawn_records(60)
    found = dn.attack(trained_network(members, 40), members, others, attack="all", shadows=4, repeats=1)
    assert "whitebox" not in {row.name for row in found.attacks}
    assert "quantile" in {row.name for row in found.attacks}
    with pytest.raises(ValueError, match="whitebox reads classes"):
        dn.attack(trained_network(members, 2), members, others, attack="whitebox")


def test_the_threshold_reads_squared_errors() -> None:
    members, others = drawn_records(40)
    model = fitted_ridge(members)
    scored = LossThreshold("free")(model, members, others, 0)
    squares = np.square(np.concatenate([errors(model, members), errors(model, others)])) / 2
    assert set(np.round(-scored.scores, 12)) <= set(np.round(squares, 12))


def test_closeness_falls_with_the_error_and_ends_near_zero() -> None:
    found = closeness(np.array([0.0, 1e-9, 0.5, -0.5, 3.0]), 1.0)
    assert np.all(np.diff(found[[0, 2, 4]]) < 0)
    assert found[0] == pytest.approx(found[1])
    assert found[2] == found[3]
    assert share_explained(np.zeros(3), np.array([1.0, 2.0, 3.0])) == 1
    assert share_explained(np.ones(3), np.full(3, 7.0)) == 0


def test_files_and_estimators_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members, others = drawn_records(12)
    for name, part in (("in", members), ("out", others)):
        table = np.column_stack([part.features, part.labels])
        header = ",".join([*(f"x{k}" for k in range(12)), "y"])
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", header=header, comments="")
        np.savez(tmp_path / f"{name}.npz", X=part.features, y=part.labels)
    for kind in ("csv", "npz"):
        read = read_records([tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"], regression=True)
        assert read[0].regression
        assert np.allclose(read[0].labels, members.labels)
    with pytest.raises(ValueError, match="whole numbers"):
        read_records([tmp_path / "in.csv", tmp_path / "out.csv"])
    (tmp_path / "my_ridge.py").write_text(
        "from sklearn.linear_model import Ridge\ndef made():\n    return Ridge().fit([[0.0], [1.0]], [0.0, 1.0])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert hasattr(read_model("my_ridge:made", regression=True), "predict")
    with pytest.raises(ValueError, match=r"must return an nn\.Module"):
        read_model("my_ridge:made")


class TwoOutputs:
    def predict(self, features: Any) -> Any:
        return np.zeros((len(features), 2))


def test_bad_models_and_records_are_refused() -> None:
    members, others = drawn_records(20)
    with pytest.raises(ValueError, match="one finite number a record"):
        dn.attack(TwoOutputs(), members, others)
    with pytest.raises(ValueError, match=r"one value a record, shape \(20, 1\)"):
        dn.attack(nn.Linear(12, 3), members, others)
    with pytest.raises(ValueError, match="have predict"):
        dn.attack(object(), members, others)
    classes = from_arrays("classes", others.features, (others.labels > 0).astype(int))
    with pytest.raises(ValueError, match="both have classes"):
        dn.attack(fitted_ridge(members), members, classes)
    with pytest.raises(ValueError, match="finite numbers"):
        from_arrays("numbers", members.features, np.full(20, np.nan), regression=True)
