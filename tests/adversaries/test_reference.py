"""What bare chance may claim: nothing, at most as often as it says.

Thresholds of every rule on scores that say nothing are tests/audit/test_false_alarms.py's: ranks have one law.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

import torch
from torch import nn

from deniable.adversaries import LossThreshold, WhiteBox
from deniable.comparison.repeat_measures import lower_bound
from deniable.data import Dataset, purchases
from deniable.evidence.attack_scores import Scores
from deniable.evidence.one_run import one_run, one_run_gaussian

AUDITS = 400


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, Dataset]:
    """A model that was trained before anybody drew who is called a member."""
    carts = purchases(10, 120, seed=2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(600, 8), nn.ReLU(), nn.Linear(8, 10))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(10):
        optimizer.zero_grad()
        outputs = model(torch.from_numpy(carts.features[::2]))
        nn.functional.cross_entropy(outputs, torch.from_numpy(carts.labels[::2])).backward()
        optimizer.step()
    return model, carts


def drawn(carts: Dataset, audit: int) -> tuple[Dataset, Dataset]:
    order = np.random.default_rng(audit).permutation(len(carts))
    return carts.take(order[: len(order) // 2]), carts.take(order[len(order) // 2 :])


@pytest.mark.parametrize("attack", [LossThreshold("average"), LossThreshold("free")], ids=["average", "free"])
def test_thresholds_of_the_known_half_raise_no_false_alarm(
    attack: LossThreshold, trained: tuple[nn.Module, Dataset]
) -> None:
    model, carts = trained
    alarms = [lower_bound([attack(model, *drawn(carts, n), n)], 0.0, 0.95).value > 0 for n in range(AUDITS)]
    assert np.mean(alarms) <= 0.05


def test_the_white_box_attack_raises_no_false_alarm(trained: tuple[nn.Module, Dataset]) -> None:
    """It fits the known half perfectly, which must not count: if it did, nearly all of 60 audits would be alarms."""
    model, carts = trained
    attack = WhiteBox(folds=2, epochs=1)
    alarms = [lower_bound([attack(model, *drawn(carts, n), n)], 0.0, 0.95).value > 0 for n in range(60)]
    assert np.mean(alarms) <= 0.05


@pytest.mark.parametrize("estimator", [one_run, one_run_gaussian])
def test_one_run_raises_no_false_alarm(estimator: object, trained: tuple[nn.Module, Dataset]) -> None:
    delta = 1e-6
    alarms = [estimator(scores, delta).value > 0 for scores in null_scores(*trained)]  # type: ignore[operator]
    assert np.mean(alarms) <= 0.05


def null_scores(model: nn.Module, carts: Dataset) -> list[Scores]:
    """The losses of all records, members drawn after the training, once an audit."""
    members, others = drawn(carts, 0)
    known = LossThreshold()(model, members, others, 0)
    every = np.concatenate([known.members, known.non_members])
    generator = np.random.default_rng(3)
    rows = [generator.permutation(every) for _ in range(AUDITS)]
    return [Scores(row[: len(row) // 2], row[len(row) // 2 :]) for row in rows]
