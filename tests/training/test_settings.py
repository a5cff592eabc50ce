from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deniable.mechanisms import Adjacency
from deniable.training.settings import Neighbours, TrainingSettings

GOOD = TrainingSettings("digits", noise=1.0, adjacency="replace")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise", 0.0),
        ("noise", float("nan")),
        ("clip", -1.0),
        ("learning_rate", float("inf")),
        ("steps", 0),
        ("trials_per_block", 2.5),
        ("rate", 0.0),
        ("rate", 1.5),
        ("optimizer", "lbfgs"),
        ("sensitivity", "none"),
        ("adjacency", "near"),
    ],
)
def test_bad_settings_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        replace(GOOD, **{name: value})


def test_global_sensitivity_follows_the_adjacency() -> None:
    values = {a: replace(GOOD, adjacency=a, clip=3.0).global_sensitivity for a in ("replace", "add-remove", "zero-out")}
    assert values == {"replace": 6.0, "add-remove": 3.0, "zero-out": 3.0}


def test_local_sensitivity_carries_no_guarantee() -> None:
    assert GOOD.differentially_private
    assert not replace(GOOD, sensitivity="local").differentially_private


def test_columns_put_the_differing_records_last() -> None:
    x, y = np.arange(8.0).reshape(4, 2), np.arange(4)
    data = Neighbours.of(x, y, 1, ([9, 9], 7))
    records, labels, differing = data.columns(Adjacency.REPLACE)
    assert labels.tolist() == [0, 2, 3, 1, 7]
    assert records[-1].tolist() == [9, 9]
    assert differing == 2
    assert data.columns(Adjacency.ADD_REMOVE).labels.tolist() == [0, 2, 3, 1]


def test_bad_data_is_refused() -> None:
    x, y = np.zeros((4, 2)), np.zeros(4, dtype=int)
    with pytest.raises(ValueError, match="index"):
        Neighbours.of(x, y, 4)
    with pytest.raises(ValueError, match="equally many"):
        Neighbours.of(x, y[:3], 0)
    with pytest.raises(ValueError, match="finite"):
        Neighbours.of(x * np.nan, y, 0)
    with pytest.raises(ValueError, match="other"):
        Neighbours.of(x, y, 0, (np.zeros(3), 0))
    with pytest.raises(ValueError, match="other"):
        Neighbours.of(x, y, 0).columns(Adjacency.REPLACE)
