"""Descriptions: what they accept, what they refuse and how they combine."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from math import inf, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn

GOOD = [
    dn.Gaussian(1.5),
    dn.Laplace(2.0),
    dn.RandomizedResponse(1.0),
    dn.RandomizedResponse(1.0, 7),
    dn.Pixelization(0.5, 16, 4),
    dn.ApproximateDP(1.0, 1e-5),
    dn.TotalVariation(0.3),
    dn.GaussianDP(1.0),
    dn.Gaussian(1.5).subsampled(0.01),
    dn.Gaussian(1.5).subsampled(0.01).composed(1000),
]


@pytest.mark.parametrize(
    ("build", "argument", "value", "range_"),
    [
        (dn.Gaussian, "noise", 0, "a finite number > 0"),
        (dn.Gaussian, "noise", -1.0, "a finite number > 0"),
        (dn.Gaussian, "noise", nan, "a finite number > 0"),
        (dn.Gaussian, "noise", inf, "a finite number > 0"),
        (dn.Gaussian, "noise", "1", "a finite number > 0"),
        (dn.Gaussian, "noise", True, "a finite number > 0"),
        (dn.Gaussian, "noise", None, "a finite number > 0"),
        (dn.Laplace, "scale", 0.0, "a finite number > 0"),
        (dn.RandomizedResponse, "epsilon", 0.0, "a finite number > 0"),
        (lambda v: dn.RandomizedResponse(1.0, v), "categories", 1, "a whole number >= 2"),
        (lambda v: dn.RandomizedResponse(1.0, v), "categories", 2.5, "a whole number >= 2"),
        (dn.RandomizedResponse.from_retention, "retention", 0.0, "strictly between 0 and 1"),
        (dn.RandomizedResponse.from_retention, "retention", 1.0, "strictly between 0 and 1"),
        (lambda v: dn.RandomizedResponse.from_retention(0.5, v), "categories", 1, "a whole number >= 2"),
        (lambda v: dn.Pixelization(v, 16, 4), "epsilon", 0, "a finite number > 0"),
        (lambda v: dn.Pixelization(1.0, v, 4), "pixels", 0, "a whole number >= 1"),
        (lambda v: dn.Pixelization(1.0, 16, v), "cell", 0, "a whole number >= 1"),
        (dn.ApproximateDP, "epsilon", -0.1, "a finite number >= 0"),
        (lambda v: dn.ApproximateDP(1.0, v), "delta", 1.5, "a number from 0 to 1"),
        (lambda v: dn.ApproximateDP(1.0, v), "delta", nan, "a number from 0 to 1"),
        (dn.TotalVariation, "alpha", -0.1, "a number from 0 to 1"),
        (dn.GaussianDP, "mu", -1.0, "a finite number >= 0"),
        (lambda v: dn.Gaussian(1.0).subsampled(v), "rate", 1.01, "a number from 0 to 1"),
        (lambda v: dn.Gaussian(1.0).subsampled(v), "rate", nan, "a number from 0 to 1"),
        (lambda v: dn.Gaussian(1.0).composed(v), "steps", -1, "a whole number >= 0"),
        (lambda v: dn.Gaussian(1.0).composed(v), "steps", 10.0, "a whole number >= 0"),
        (lambda v: dn.Gaussian(1.0).composed(3).composed(v), "steps", 1.5, "a whole number >= 0"),
    ],
)
def test_a_refused_argument_names_itself_its_value_and_its_range(build, argument, value, range_):
    with pytest.raises(ValueError) as refusal:
        build(value)
    message = str(refusal.value)
    assert message.startswith(argument)
    assert range_ in message
    assert repr(value) in message


@pytest.mark.parametrize("mechanism", GOOD, ids=repr)
def test_frozen_equal_hashable_and_picklable(mechanism):
    with pytest.raises(FrozenInstanceError):
        setattr(mechanism, fields(mechanism)[0].name, 2.0)
    twin = pickle.loads(pickle.dumps(mechanism))
    assert twin == mechanism
    assert hash(twin) == hash(mechanism)
    assert sum(mechanism == other for other in GOOD) == 1


def test_unlike_mechanisms_with_the_same_number_differ():
    assert dn.Gaussian(1.0) != dn.Laplace(1.0)
    assert dn.RandomizedResponse(1.0) != dn.RandomizedResponse(1.0, 3)


def test_retention_half_is_ln_3():
    """seed_numbers.json, dbsec_local_epsilon; Bernau 2021b, Eq. 1."""
    assert dn.RandomizedResponse.from_retention(0.5).epsilon == pytest.approx(log(3), rel=1e-15)


@given(st.floats(0.01, 0.99), st.integers(2, 50))
def test_retention_gives_the_ratio_of_truth_to_lie(retention, categories):
    lie = (1 - retention) / categories
    ratio = (retention + lie) / lie
    assert dn.RandomizedResponse.from_retention(retention, categories).epsilon == pytest.approx(log(ratio), rel=1e-13)


def test_pixelization_scale():
    """Bernau 2021b, Section 2.1 and erratum 17: 255 m / (b^2 eps)."""
    assert dn.Pixelization(epsilon=0.5, pixels=16, cell=4).scale == 255 * 16 / (16 * 0.5)


def test_compose_flattens():
    a, b, c = dn.Gaussian(1.0).subsampled(0.1), dn.Laplace(2.0), dn.Gaussian(3.0)
    nested = dn.compose(dn.compose(a.composed(10), b), c)
    assert nested == dn.Composed(((a, 10), (b, 1), (c, 1)))
    assert dn.compose(a) == dn.Composed(((a, 1),))
    assert dn.compose() == dn.Composed(())


def test_composing_a_composition_multiplies_runs():
    a, b = dn.Gaussian(1.0), dn.Laplace(2.0)
    assert a.composed(3).composed(4) == a.composed(12)
    assert dn.compose(a.composed(2), b).composed(5) == dn.Composed(((a, 10), (b, 5)))
    assert a.composed(3).composed(0) == a.composed(0)


def test_a_composition_on_one_sample_is_refused():
    with pytest.raises(ValueError, match=r"subsampled\(rate\)\.composed\(steps\)"):
        dn.Gaussian(1.0).composed(10).subsampled(0.1)


@pytest.mark.parametrize("adjacency", list(dn.Adjacency))
def test_nested_sampling_multiplies_rates(adjacency):
    twice = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.5).subsampled(0.125).composed(7), adjacency)
    once = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.0625).composed(7), adjacency)
    assert twice.advantage() == once.advantage()
    assert twice.epsilon(1e-5) == once.epsilon(1e-5)


@pytest.mark.parametrize("name", ["add-remove", "replace", "zero-out"])
def test_adjacency_by_name(name):
    assert (
        dn.privacy_loss(dn.Gaussian(1.0), name).advantage()
        == dn.privacy_loss(dn.Gaussian(1.0), dn.Adjacency(name)).advantage()
    )


def test_an_unknown_adjacency_is_refused():
    with pytest.raises(ValueError, match="substitute"):
        dn.privacy_loss(dn.Gaussian(1.0), "substitute")


@pytest.mark.parametrize(
    "mechanism",
    [
        dn.Gaussian(1.0).composed(0),
        dn.compose(),
        dn.Gaussian(1.0).subsampled(0.0),
        dn.Gaussian(1.0).subsampled(0.0).composed(100),
        dn.TotalVariation(0.0),
        dn.GaussianDP(0.0),
        dn.ApproximateDP(0.0, 0.0),
        dn.ApproximateDP(0.0, 0.0).composed(50),
    ],
    ids=repr,
)
@pytest.mark.parametrize("adjacency", list(dn.Adjacency))
def test_a_release_of_nothing_tells_nothing(mechanism, adjacency):
    loss = dn.privacy_loss(mechanism, adjacency)
    assert loss.advantage() == 0
    assert loss.epsilon(0.0) == 0
    assert loss.epsilon(1e-5) == 0
    assert loss.tpr(0.25) == pytest.approx(0.25, abs=1e-15)
    assert loss.belief(1e-9, 0.3) == pytest.approx(0.3, abs=1e-15)
