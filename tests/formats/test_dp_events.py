"""dp-accounting's events as mechanisms, held against its own accountants."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

import deniable as dn

accounting = pytest.importorskip("dp_accounting", reason="needs the extra 'oracles'")

events = accounting.dp_event
GAUSSIAN = events.GaussianDpEvent(2.0)
SAMPLED = events.PoissonSampledDpEvent(0.01, events.GaussianDpEvent(1.0))
STEPS = events.SelfComposedDpEvent(SAMPLED, 500)
LAPLACE = events.LaplaceDpEvent(3.0)
RESPONSE = events.RandomizedResponseDpEvent(0.5, 4)
TRUNCATED = events.TruncatedSubsampledGaussianDpEvent(1000, 0.05, 60, 1.0)
WITHOUT = events.SampledWithoutReplacementDpEvent(1000, 50, GAUSSIAN)
WITH = events.SampledWithReplacementDpEvent(1000, 50, GAUSSIAN)
TUNED = events.RepeatAndSelectDpEvent(STEPS, 10.0, 1.0)
NOTHING = dn.ApproximateDP(0.0, 1.0)

MEANT: list[tuple[Any, str, dn.Mechanism]] = [
    (GAUSSIAN, "add-remove", dn.Gaussian(2.0)),
    (GAUSSIAN, "replace", dn.Gaussian(1.0)),
    (STEPS, "add-remove", dn.Gaussian(1.0).subsampled(0.01).composed(500)),
    (LAPLACE, "add-remove", dn.Laplace(3.0)),
    (RESPONSE, "replace", dn.RandomizedResponse.from_retention(0.5, 4)),
    (TRUNCATED, "zero-out", dn.Gaussian(1.0).subsampled(dn.TruncatedPoisson(0.05, 60, 1000))),
    (WITHOUT, "replace", dn.Gaussian(1.0).subsampled(dn.FixedSize(50, 1000))),
    (WITH, "replace", dn.Gaussian(1.0).subsampled(dn.FixedSize(50, 1000, True))),
    (TUNED, "add-remove", dn.RepeatAndSelect(dn.Gaussian(1.0).subsampled(0.01).composed(500), 10.0, 1.0)),
    (
        events.RepeatAndSelectDpEvent(GAUSSIAN, 5.0, inf),
        "add-remove",
        dn.RepeatAndSelect(dn.Gaussian(2.0), 5.0, inf),
    ),
    (events.ZCDpEvent(0.1), "replace", dn.ConcentratedDP(0.1)),
    (events.DiscreteLaplaceDpEvent(0.5, 2), "add-remove", dn.DiscreteLaplace(2.0, 2)),
    (events.DiscreteLaplaceDpEvent(0.5, 2), "replace", dn.DiscreteLaplace(2.0, 4)),
    (
        events.ComposedDpEvent([STEPS, LAPLACE]),
        "add-remove",
        dn.compose(dn.Gaussian(1.0).subsampled(0.01).composed(500), dn.Laplace(3.0)),
    ),
    (
        events.PoissonSampledDpEvent(0.1, events.SelfComposedDpEvent(GAUSSIAN, 4)),
        "add-remove",
        dn.Gaussian(1.0).subsampled(0.1),
    ),
    (events.SingleEpochTreeAggregationDpEvent(2.0, [7, 8]), "zero-out", dn.Gaussian(2.0).composed(4)),
    (events.NoOpDpEvent(), "add-remove", dn.compose()),
    (events.NonPrivateDpEvent(), "add-remove", NOTHING),
    (events.GaussianDpEvent(0.0), "add-remove", NOTHING),
    (events.PoissonSampledDpEvent(0.1, events.NonPrivateDpEvent()), "add-remove", dn.ApproximateDP(0.0, 0.1)),
]


def as_objects(event: Any) -> Any:
    """The JSON form with names, as documented."""
    if not hasattr(event, "__attrs_attrs__"):
        return [as_objects(one) for one in event] if isinstance(event, list) else event
    fields = {one.name: as_objects(getattr(event, one.name)) for one in event.__attrs_attrs__}
    return {"class_name": type(event).__name__, **fields}


@pytest.mark.parametrize(("event", "adjacency", "expected"), MEANT, ids=lambda one: type(one).__name__)
def test_an_event_means_the_same_in_every_form(event: Any, adjacency: str, expected: dn.Mechanism) -> None:
    written = json.loads(json.dumps(event.to_named_tuple()))
    for form in (event, event.to_named_tuple(), written, json.loads(json.dumps(as_objects(event)))):
        assert dn.from_dp_event(form, adjacency) == expected


@pytest.mark.parametrize("event", [GAUSSIAN, LAPLACE, STEPS, events.ComposedDpEvent([STEPS, LAPLACE, GAUSSIAN])])
def test_epsilon_is_that_of_its_own_accountant(event: Any) -> None:
    theirs = accounting.pld.PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(1e-5)
    ours = dn.privacy_loss(dn.from_dp_event(event), "add-remove").epsilon(1e-5)
    assert theirs - 0.01 < ours <= theirs + 1e-9


@pytest.mark.parametrize("event", [GAUSSIAN, events.SelfComposedDpEvent(TRUNCATED, 100), RESPONSE])
def test_epsilon_of_replaced_records_is_that_of_its_own_accountant(event: Any) -> None:
    relation = accounting.NeighboringRelation.REPLACE_ONE
    theirs = accounting.pld.PLDAccountant(relation, 1e-3).compose(event).get_epsilon(1e-5)
    ours = dn.privacy_loss(dn.from_dp_event(event, "replace"), "replace").epsilon(1e-5)
    assert theirs - 0.01 < ours <= theirs + 1e-9


def test_levels_of_trees_are_those_of_its_own_accountant() -> None:
    relation = accounting.NeighboringRelation.REPLACE_SPECIAL
    for steps in (1, 2, 3, 4, 7, 8, 9, 1000):
        event = events.SingleEpochTreeAggregationDpEvent(2.0, steps)
        theirs = accounting.rdp.RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(1e-5)
        levels = dn.from_dp_event(event, "zero-out").parts[0][1]
        same = events.SelfComposedDpEvent(events.GaussianDpEvent(2.0), levels)
        assert theirs == accounting.rdp.RdpAccountant(neighboring_relation=relation).compose(same).get_epsilon(1e-5)


def deep(levels: int) -> dict[str, Any]:
    event: dict[str, Any] = {"class_name": "NoOpDpEvent"}
    for _ in range(levels):
        event = {"class_name": "SelfComposedDpEvent", "count": 1, "event": event}
    return event


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (events.UnsupportedDpEvent(), "dp_event: UnsupportedDpEvent is not known here; known events are NoOp, "),
        (events.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), "MixtureOfGaussiansDpEvent is not known here"),
        ({"class_name": "Magic"}, "MagicDpEvent is not known here"),
        ({"noise_multiplier": 1.0}, "an event must be an object with its class_name, got"),
        (3, "an event must be an object with its class_name, got 3"),
        ([], "an event must be an object"),
        ({"class_name": "GaussianDpEvent"}, "GaussianDpEvent: noise_multiplier is missing"),
        (
            {"class_name": "GaussianDpEvent", "noise_multiplier": -1},
            "GaussianDpEvent: noise_multiplier must be a finite",
        ),
        ({"class_name": "GaussianDpEvent", "noise_multiplier": "2"}, "noise_multiplier must be a finite number >= 0"),
        ({"class_name": "ComposedDpEvent", "events": {"a": 1}}, "ComposedDpEvent: events must be a list"),
        ({"class_name": "SelfComposed", "event": {"class_name": "NoOp"}, "count": 1.5}, "count must be a whole number"),
        (deep(100), "a tree of events may have at most 60 levels"),
        (
            events.PoissonSampledDpEvent(0.1, events.SelfComposedDpEvent(LAPLACE, 2)),
            "PoissonSampledDpEvent: several releases on one sample are known for Gaussian noise alone",
        ),
        (events.SampledWithoutReplacementDpEvent(10, 50, GAUSSIAN), "batch must be at most the 10 records"),
        (events.SingleEpochTreeAggregationDpEvent(1.0, 8), "known for zero-out neighbours alone"),
    ],
)
def test_anything_else_is_refused_by_its_name(event: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        dn.from_dp_event(event)
