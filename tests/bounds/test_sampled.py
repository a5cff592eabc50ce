from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.numeric import sampled_gaussian_kl, sampled_gaussian_renyi
from deniable.mechanisms import Adjacency

from .twins import hockey_stick, kl_by_quadrature, renyi_by_binomial, renyi_by_quadrature, renyi_by_series

ADD, REPLACE, ZERO = Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT

# dp-accounting 0.6.0: rdp.rdp_privacy_accountant._compute_rdp_poisson_subsampled_gaussian(rate, noise, [order])
DP_ACCOUNTING = [
    (2, 0.01, 1.0, 0.00017181342207455162),
    (32, 0.01, 1.0, 11.246275937048072),
    (64, 1e-3, 4.0, 2.072290466294457e-06),
]
# At fractional orders it adds the absolute values of a series whose terms alternate, so it is up to some per cent high.
DP_ACCOUNTING_FRACTIONAL = [
    (1.5, 0.01, 1.0, 0.00013236850293993048),
    (2.5, 0.005, 0.7, 0.00022002602011489986),
    (7.25, 0.3, 2.0, 0.1354009400107609),
]


@pytest.mark.parametrize(("order", "rate", "noise", "value"), DP_ACCOUNTING)
def test_agrees_with_dp_accounting(order, rate, noise, value):
    assert sampled_gaussian_renyi(order, noise, rate, ADD) == pytest.approx(value, rel=1e-9, abs=0)


@pytest.mark.parametrize(("order", "rate", "noise", "value"), DP_ACCOUNTING_FRACTIONAL)
def test_is_below_dp_accounting_at_fractional_orders_and_right(order, rate, noise, value):
    found = sampled_gaussian_renyi(order, noise, rate, ADD)
    assert value * 0.95 < found < value
    assert found == pytest.approx(renyi_by_quadrature(order, noise, rate), rel=3e-11, abs=0)


@pytest.mark.parametrize(("order", "noise", "rate"), [(1.5, 1.0, 0.01), (2.5, 0.7, 0.3), (10.3, 2.0, 0.02)])
def test_fractional_orders_equal_the_erfc_series(order, noise, rate):
    found = sampled_gaussian_renyi(order, noise, rate, ADD)
    assert found == pytest.approx(renyi_by_series(order, noise, rate), rel=3e-11, abs=0)


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.3, 1 - 1e-6])
@pytest.mark.parametrize("noise", [0.1, 0.44, 1.0, 30.0])
@pytest.mark.parametrize("order", [2, 3, 17, 100])
def test_whole_orders_equal_the_binomial_sum(order, noise, rate):
    found = sampled_gaussian_renyi(order, noise, rate, ADD)
    assert found == pytest.approx(renyi_by_binomial(order, noise, rate), rel=3e-11, abs=0)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("order", "noise", "rate"), [(1.1, 0.44, 0.02), (1.001, 0.5, 0.1), (3.7, 0.7, 0.9), (2.2, 5.0, 1e-5)]
)
def test_both_pairs_equal_quadrature_in_many_digits(order, noise, rate, replace):
    """The first row is one that dp-accounting 0.6.0 gives up on: its series does not converge in 1000 terms."""
    found = sampled_gaussian_renyi(order, noise, rate, REPLACE if replace else ADD)
    assert found == pytest.approx(renyi_by_quadrature(order, noise, rate, replace), rel=3e-11, abs=0)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.005), (2.4, 1e-8), (0.3, 0.999)])
def test_kl_equals_quadrature_in_many_digits(noise, rate, replace):
    found = sampled_gaussian_kl(noise, rate, REPLACE if replace else ADD)
    assert found == pytest.approx(kl_by_quadrature(noise, rate, replace), rel=2e-11, abs=0)


def test_kl_is_quadratic_in_a_tiny_rate():
    """KL ~ rate^2 (e^(1/noise^2) - 1) / 2: 1e-30 must not drown in the 1e-16 of double precision."""
    forward, backward = sampled_gaussian_kl(1.0, 1e-15, ADD)
    assert forward == pytest.approx(1e-30 * np.expm1(1) / 2, rel=1e-10, abs=0)
    assert backward == pytest.approx(forward, rel=1e-10, abs=0)


def test_kl_is_the_limit_of_renyi_divergence():
    for adjacency in (ADD, REPLACE):
        divergence = sampled_gaussian_renyi(1 + 1e-9, 0.8, 0.1, adjacency)
        assert divergence == pytest.approx(sampled_gaussian_kl(0.8, 0.1, adjacency)[0], rel=1e-7, abs=0)


def test_zero_out_is_add_remove():
    assert sampled_gaussian_renyi(3.3, 1.0, 0.1, ZERO) == sampled_gaussian_renyi(3.3, 1.0, 0.1, ADD)


def test_replace_is_symmetric_and_add_remove_is_worse_forwards():
    forward, backward = sampled_gaussian_kl(0.7, 0.1, REPLACE)
    assert forward == pytest.approx(backward, rel=1e-12, abs=0)
    forward, backward = sampled_gaussian_kl(0.7, 0.1, ADD)
    assert forward > backward


@settings(max_examples=40, deadline=None)
@given(st.floats(1, 20), st.floats(0.2, 3), st.floats(0.01, 1), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_no_pair_of_records_is_easier_to_tell_apart_than_the_opposite_ones(gamma, noise, rate, x, y):
    assert hockey_stick(gamma, noise, rate, x, y) <= hockey_stick(gamma, noise, rate, 0.5, -0.5) + 1e-9


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e-6, 100), st.floats(0.02, 100), st.floats(1e-12, 0.5), st.sampled_from([ADD, REPLACE]), st.floats(1, 2)
)
def test_monotone_and_between_its_limits(a, noise, rate, adjacency, factor):
    found = sampled_gaussian_renyi(1 + a, noise, rate, adjacency)
    slightly_less = 1 - 1e-10
    assert 0 <= found <= (1 + a) / (2 * noise**2) * (1 + 1e-10)
    assert sampled_gaussian_renyi(1 + a * factor, noise, rate, adjacency) >= found * slightly_less
    assert sampled_gaussian_renyi(1 + a, noise, rate * factor, adjacency) >= found * slightly_less
    assert sampled_gaussian_renyi(1 + a, noise * factor, rate, adjacency) <= found / slightly_less


def test_fallback_for_tiny_noise_is_above_the_quadrature_it_replaces():
    """At noise .012 the quadrature still runs; the convexity bound that takes over below must not be under it."""
    exact = sampled_gaussian_renyi(1.5, 0.0125, 0.1, ADD)
    unsampled = 1.5 / (2 * 0.0125**2)
    fallback = np.logaddexp(np.log(0.9), np.log(0.1) + 0.5 * unsampled) / 0.5
    assert exact <= fallback <= unsampled
    assert sampled_gaussian_renyi(1.5, 0.0119, 0.1, ADD) > exact


@pytest.mark.parametrize("noise", [1e-130, 1e-3, 1e5, 1e200])
@pytest.mark.parametrize("rate", [5e-324, 1e-12, 1 - 2**-53])
def test_extremes_are_finite_and_silent(noise, rate):
    for adjacency in (ADD, REPLACE):
        assert np.all(np.isfinite(sampled_gaussian_kl(noise, rate, adjacency)))
        for a in (1e-9, 1.0, 1e9):
            assert np.isfinite(sampled_gaussian_renyi(1 + a, noise, rate, adjacency))
