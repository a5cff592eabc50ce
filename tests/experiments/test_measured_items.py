"""What the measured items state can fail, and their pieces do what they say."""

from __future__ import annotations

from copy import deepcopy
from math import log, sqrt
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deniable.bounds import belief_to_epsilon
from deniable.bounds.textbook import epsilon_to_advantage, noise_for_belief
from deniable.bounds.variation import gaussian_tvd
from deniable.experiments.dbsec import figure_panels
from deniable.experiments.dbsec.figure_panels import Source
from deniable.experiments.dbsec.figures import FIGURES
from deniable.experiments.item import Values
from deniable.experiments.tvd.training_figure import tutorial_cnn
from deniable.experiments.vldb import auditing
from deniable.experiments.vldb.costs import _power
from deniable.experiments.vldb.observer_table import Violations, _rarely

AUDITED: Values = {
    "data": "Adult",
    "records": 1000,
    "trials": 1000,
    "delta": 0.001,
    "epsilon": [0.1, 2.2],
    "gap": {"sensitivity": [0.0, 0.0], "belief": [0.1, 0.1], "advantage": [0.3, 0.2]},
    "estimated": {
        kind: {"sensitivity": row, "belief": row, "advantage": row, "sensitivity_exact": row}
        for kind, row in (("local", [0.1, 2.2]), ("global", [0.05, 1.1]))
    },
    "identifiability": {
        "advantage": [0.02, 0.2],
        "advantage_error": [0.03, 0.03],
        "expected_advantage": [0.01, 0.21],
        "expected_advantage_error": [0.001, 0.005],
    },
    "binomial_error": [0.03, 0.03],
    "membership": {
        "advantage": [0.0, 0.01],
        "error": [0.01, 0.01],
        "gain": [0.0, 0.01],
        "gain_error": [0.01, 0.01],
        "draw_error": 0.02,
        "gain_less_3_errors": [-0.07, -0.06],
    },
    "expected_global": [0.005, 0.1],
    "bound": {
        "noise": [0.011, 0.217],
        "theorem_3": [0.012, 0.23],
        "theorem_3_widened": [0.013, 0.24],
        "yeom": [0.1, 8.0],
    },
}


def _missed(values: Values) -> list[str]:
    judged = [one.judge(values, {}) for one in auditing.FIGURE_9.comparisons]
    return [one.what for one in judged if not one.passed]


def test_an_audit_that_holds() -> None:
    assert _missed(AUDITED) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("identifiability.advantage", [0.02, 0.4], "noise really added"),
        ("identifiability.expected_advantage", [0.01, 0.25], "own beliefs"),
        ("estimated.local.sensitivity", [0.1, 2.3], "epsilon itself"),
        ("estimated.global.sensitivity", [0.05, 2.2], "underestimates"),
        ("gap.sensitivity", [0.0, 0.15], "closer than belief"),
        ("gap.advantage", [0.0, 0.1], "least close"),
        ("expected_global", [0.005, 0.3], "leaves less advantage"),
        ("membership.gain", [0.0, 0.25], "outright"),
        ("membership.gain", [0.3, 0.01], "over all epsilons"),
        ("membership.gain_less_3_errors", [0.02, 0.01], "more than 3 standard errors"),
        ("bound.yeom", [0.01, 8.0], "Yeom"),
        ("bound.noise", [0.02, 0.217], "admits at most"),
    ],
)
def test_every_statement_of_an_audit_can_fail(path: str, value: Any, said: str) -> None:
    values = deepcopy(AUDITED)
    *folders, last = path.split(".")
    place = values
    for name in folders:
        place = place[name]
    place[last] = value
    assert any(said in what for what in _missed(values))


@given(belief=st.floats(0.501, 0.9999), delta=st.floats(1e-12, 0.1))
def test_the_widened_bound_holds_whatever_the_promise(belief: float, delta: float) -> None:
    """RDP's noise admits at most Theorem 3's advantage times the root of ln(1.25/delta) / ln(1/delta)."""
    bound = epsilon_to_advantage(belief_to_epsilon(belief), delta)
    admitted = gaussian_tvd(noise_for_belief(belief, delta))
    assert admitted <= bound * sqrt(log(1.25 / delta) / log(1 / delta)) * (1 + 1e-9)


def test_the_tutorials_network() -> None:
    network = tutorial_cnn()
    assert sum(one.numel() for one in network.parameters()) == 26_010
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_beliefs_may_exceed_only_as_often_as_delta_allows() -> None:
    found = Violations(trials=1000, delta={"MNIST": 0.01}, violations={"MNIST": [0.01, 0.019]})
    assert _rarely(found)
    found.violations["MNIST"][1] = 0.02
    assert not _rarely(found)


def test_a_power_law_is_found() -> None:
    sizes = [10, 20, 40]
    assert _power(sizes, [3e-6 * n**2 for n in sizes]) == pytest.approx(2)
    assert _power(sizes, [1e-6] * 3) == pytest.approx(0)


def _source(stand_in: tuple[tuple[str, int], ...]) -> Source:
    return Source("x", (("texas100", None),), stand_in, 10, 10, 1, 0, (0,))


def test_a_stand_in_only_where_the_data_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    other = (("location30", 10),)
    monkeypatch.setattr(figure_panels, "available", lambda _: False)
    assert _source(other).variants() == other
    assert _source(()).variants() == (("texas100", None),)
    monkeypatch.setattr(figure_panels, "available", lambda _: True)
    assert _source(other).variants() == (("texas100", None),)


def _level(precision: float, accuracy: float, epsilon: float) -> Values:
    return {
        "kind": "central",
        "value": 1.0,
        "epsilon": epsilon,
        "record_epsilon": epsilon,
        "phi": 1.0,
        "accuracy": {"mean": accuracy, "deviation": None},
        "train_accuracy": 1.0,
        "precision": {"mean": precision, "deviation": None},
        "curve": {"precision": [1.0, 0.5], "recall": [0.0, 1.0]},
    }


def _variant() -> Values:
    return {
        "data": "x",
        "classes": 10,
        "records": 10,
        "repeats": 1,
        "original": _level(0.8, 0.6, 0),
        "central": [_level(0.6, 0.4, 5), _level(0.5, 0.1, 0.3)],
        "local": [_level(0.7, 0.5, 1800), _level(0.51, 0.2, 60)],
        "chance": 0.52,
        "blind": 0.5,
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("original", "precision", "mean"), 0.51),
        (("central", 1, "precision", "mean"), 0.6),
        (("local", 1, "precision", "mean"), 0.65),
        (("local", 1, "accuracy", "mean"), 0.7),
        (("local", 1, "record_epsilon"), 2.0),
    ],
)
def test_every_statement_of_the_nine_panels_can_fail(path: tuple[Any, ...], value: float) -> None:
    item = FIGURES[0]
    values: Values = {"variants": [_variant()], "shown": 0}
    assert all(one.judge(values, {}).passed for one in item.comparisons)
    place: Any = values["variants"][0]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert not all(one.judge(values, {}).passed for one in item.comparisons)
