from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.divergences import (
    best_epsilon,
    classic_conversion,
    improved_conversion,
    laplace_renyi,
    randomized_response_renyi,
    rdp_epsilon,
    renyi_curve,
)
from deniable.bounds.numeric import InapplicableError
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Gaussian,
    GaussianDP,
    Laplace,
    Pixelization,
    RandomizedResponse,
    TotalVariation,
    compose,
)

from .twins import gaussian_epsilon, improved, laplace_renyi_by_quadrature

# dp-accounting 0.6.0: RdpAccountant([order]), compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate,
# GaussianDpEvent(noise)), steps)), get_epsilon(delta). Whole orders; at fractional ones it is not right (test_sampled).
DP_ACCOUNTING = [
    ((0.01, 1.0, 1000), 1e-5, 8, 2.1077530754515745),
    ((0.005, 1.4, 6000), 1e-5, 14, 1.344075667165211),
    ((1.0, 5.0, 100), 1e-6, 4, 11.855389993163014),
    ((0.016, 4.0, 12500), 0.000125, 9, 1.6664783503059568),
    ((0.02, 0.44, 5000), 1e-5, 2, 346.71509047549426),
    ((1e-5, 0.3, 10**6), 1e-30, 2, 74.38218555352728),
]


@pytest.mark.parametrize(("training", "delta", "order", "value"), DP_ACCOUNTING)
def test_epsilon_agrees_with_dp_accounting(training, delta, order, value):
    rate, noise, steps = training
    release = Gaussian(noise).subsampled(rate).composed(steps)
    assert improved_conversion(order, renyi_curve(release, adjacency="add-remove")(order), delta) == pytest.approx(
        value, rel=1e-9, abs=0
    )
    assert rdp_epsilon(release, delta, adjacency="add-remove") <= value


def test_epsilon_where_dp_accounting_loses_its_best_orders():
    """It gives 107.14 with steps of 1/20: at rate .02, noise .44 its series fails for every order below 1.35."""
    assert rdp_epsilon(Gaussian(0.44).subsampled(0.02).composed(5000), 1e-5, adjacency="add-remove") == pytest.approx(
        101.62, abs=0.01
    )


def test_laplace_agrees_with_dp_accounting_and_its_twin():
    # dp-accounting 0.6.0: rdp.rdp_privacy_accountant._laplace_rdp(1/scale, order)
    for scale, order, value in (
        (1.0, 2.0, 0.6191236299985929),
        (0.5, 1.5, 1.4368091584145994),
        (3.0, 20.0, 0.29818453200359),
    ):
        assert laplace_renyi(order, scale) == pytest.approx(value, rel=1e-12, abs=0)
        assert laplace_renyi_by_quadrature(order, scale) == pytest.approx(value, rel=1e-12, abs=0)


def test_randomized_response_agrees_with_dp_accounting():
    # dp-accounting 0.6.0: _randomized_response_rdp_replace_one(p = k / (e^eps + k - 1), k, order)
    for epsilon, categories, order, value in (
        (1.0, 2, 3.0, 0.8467268304854473),
        (2.0, 5, 1.5, 1.4447265369372868),
        (0.3, 10, 20.0, 0.19382480097331936),
    ):
        assert randomized_response_renyi(order, epsilon, categories) == pytest.approx(value, rel=1e-12, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(1.001, 50), st.floats(1e-3, 20), st.integers(2, 9))
def test_randomized_response_equals_its_direct_sum(order, epsilon, categories):
    lie = 1 / (exp(epsilon) + categories - 1)
    truth = exp(epsilon) * lie
    logs = [order * log(truth) + (1 - order) * log(lie), order * log(lie) + (1 - order) * log(truth)]
    direct = np.logaddexp(*logs)
    if categories > 2:
        direct = np.logaddexp(direct, log((categories - 2) * lie))
    found = randomized_response_renyi(order, epsilon, categories)
    assert found == pytest.approx(direct / (order - 1), rel=1e-9, abs=3e-15 / (order - 1))


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-8, 1e-3), st.floats(1.01, 30))
def test_small_losses_are_order_times_half_the_square(epsilon, order):
    """No cancellation: D -> order epsilon^2 / 2 to full accuracy where e^x - 1 - x would be noise."""
    near = order * epsilon
    assert laplace_renyi(order, 1 / epsilon) == pytest.approx(order * epsilon**2 / 2, rel=2 * near, abs=0)
    assert randomized_response_renyi(order, epsilon) == pytest.approx(order * epsilon**2 / 2, rel=2 * near, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 60), st.floats(1.0001, 500))
def test_randomized_response_is_the_worst_pure_mechanism(epsilon, order):
    worst = randomized_response_renyi(order, epsilon)
    assert laplace_renyi(order, 1 / epsilon) <= worst * (1 + 1e-12) <= epsilon * (1 + 1e-11)
    assert randomized_response_renyi(order, epsilon, 5) <= worst * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.floats(-0.5, 4).map(lambda p: 10**p), st.floats(1e-4, 0.9), st.integers(1, 10**6), st.floats(-30, -0.5))
def test_search_over_orders_is_no_worse_than_a_dense_grid(noise, rate, steps, log10_delta):
    delta = 10**log10_delta
    curve = renyi_curve(Gaussian(noise).subsampled(rate).composed(steps), adjacency="add-remove")
    found = best_epsilon(curve, delta)
    grid = min(improved(1 + a, curve(1 + a), delta) for a in np.geomspace(1e-5, 30 + 30 * noise, 40))
    assert found <= max(0, grid) * (1 + 1e-9)


@settings(max_examples=50, deadline=None)
@given(st.floats(1 + 1e-9, 1e6), st.floats(0, 1e3), st.floats(1e-300, 0.999))
def test_improved_conversion_is_below_the_classic(order, divergence, delta):
    assert improved_conversion(order, divergence, delta) <= classic_conversion(order, divergence, delta)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 50), st.integers(1, 10**6), st.floats(-30, -0.01))
def test_never_below_the_exact_epsilon_of_a_gaussian(noise, steps, log10_delta):
    mu, delta = steps**0.5 / noise, 10**log10_delta
    assert rdp_epsilon(Gaussian(noise).composed(steps), delta) >= gaussian_epsilon(delta, mu) * (1 - 1e-9)


def test_never_below_the_exact_epsilon_of_a_sampled_gaussian():
    # seed_numbers.json exact_subsampled_gaussian: rate .01, steps 1000, noise 1, delta 1e-12.
    assert 3.9143 <= rdp_epsilon(Gaussian(1.0).subsampled(0.01).composed(1000), 1e-12, adjacency="add-remove") <= 4.4


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_wide_extremes_are_finite(adjacency):
    for noise, rate, steps, delta in ((0.3, 1e-5, 10**6, 1e-30), (0.02, 0.5, 10**6, 1e-300), (1e6, 1e-12, 1, 0.999)):
        found = rdp_epsilon(Gaussian(noise).subsampled(rate).composed(steps), delta, adjacency)
        assert 0 <= found < 1e13


def test_a_step_on_all_records_is_the_limit_of_sampled_ones():
    for adjacency in Adjacency:
        almost = rdp_epsilon(Gaussian(2.0).subsampled(1 - 1e-12).composed(10), 1e-5, adjacency)
        assert almost == pytest.approx(rdp_epsilon(Gaussian(2.0).composed(10), 1e-5, adjacency), rel=1e-9, abs=0)


def test_guarantees_and_combinations():
    assert rdp_epsilon(GaussianDP(0.5), 1e-5) == rdp_epsilon(Gaussian(2.0), 1e-5)
    assert rdp_epsilon(GaussianDP(0.0), 1e-5) == 0
    assert rdp_epsilon(Gaussian(1.0).subsampled(0.0).composed(9), 1e-5, adjacency="add-remove") == 0
    assert rdp_epsilon(Gaussian(1.0).composed(0), 1e-5) == 0
    assert rdp_epsilon(ApproximateDP(1.5), 1e-9) == rdp_epsilon(RandomizedResponse(1.5), 1e-9)
    assert rdp_epsilon(Pixelization(1.5, 4, 2), 1e-9) == rdp_epsilon(ApproximateDP(1.5), 1e-9)
    twice = Gaussian(1.0).subsampled(0.1).subsampled(0.2)
    assert rdp_epsilon(twice, 1e-5, adjacency="add-remove") == pytest.approx(
        rdp_epsilon(Gaussian(1.0).subsampled(0.02), 1e-5, adjacency="add-remove"), rel=1e-12, abs=0
    )
    phases = (Gaussian(1.0).subsampled(0.01).composed(100), Gaussian(2.0).subsampled(0.05).composed(50), Laplace(3.0))
    curves = [renyi_curve(phase, adjacency="add-remove") for phase in phases]
    assert renyi_curve(compose(*phases), adjacency="add-remove")(3.5) == pytest.approx(
        sum(curve(3.5) for curve in curves), rel=1e-12, abs=0
    )
    assert renyi_curve(compose(*phases[::-1]), adjacency="add-remove")(3.5) == pytest.approx(
        renyi_curve(compose(*phases), adjacency="add-remove")(3.5), rel=1e-12, abs=0
    )


def test_sampled_pure_mechanisms_are_amplified():
    amplified = log(1 + 0.1 * (exp(2) - 1))
    assert renyi_curve(Laplace(0.5).subsampled(0.1), adjacency="add-remove")(4.0) == pytest.approx(
        randomized_response_renyi(4.0, amplified), rel=1e-12, abs=0
    )


def test_what_has_no_renyi_divergence_is_refused():
    for mechanism in (ApproximateDP(1.0, 1e-5), TotalVariation(0.1), compose(Gaussian(1.0), TotalVariation(0.1))):
        with pytest.raises(InapplicableError, match="rdp"):
            rdp_epsilon(mechanism, 1e-5, adjacency="add-remove")
    with pytest.raises(InapplicableError, match="replace"):
        rdp_epsilon(RandomizedResponse(1.0).subsampled(0.5), 1e-5, Adjacency.REPLACE)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan")])
def test_delta_outside_its_range_is_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        rdp_epsilon(Gaussian(1.0), delta)


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, float("inf")])
def test_order_outside_its_range_is_refused(order):
    with pytest.raises(ValueError, match="order"):
        renyi_curve(Gaussian(1.0))(order)
