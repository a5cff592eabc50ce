from __future__ import annotations

from math import exp, expm1, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.divergences import kl_divergence, kl_to_tvd, kl_tvd
from deniable.bounds.numeric import InapplicableError
from deniable.bounds.variation import best_composition_tvd, gaussian_tvd, laplace_tvd
from deniable.mechanisms import (
    Adjacency,
    ApproximateDP,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    TotalVariation,
    compose,
)


@pytest.mark.parametrize("divergence", [0.0, 1e-300, 1e-9, 0.5, 1.5, 1.7, 2.5, 50.0, 1e9])
def test_the_smaller_of_two_inequalities(divergence):
    found = kl_to_tvd(divergence)
    assert found == pytest.approx(min(sqrt(divergence / 2), sqrt(-expm1(-divergence))), rel=1e-12, abs=0)
    assert 0 <= found <= 1


def test_the_change_comes_before_two():
    """Jia 2023 changes at KL = 2; the curves cross at 1.594, and between the rule costs something (erratum 14)."""
    assert kl_to_tvd(1.8) < sqrt(1.8 / 2)


def test_closed_forms():
    assert kl_divergence(Gaussian(2.0).composed(8)) == pytest.approx(1.0)
    assert kl_divergence(GaussianDP(0.5)) == pytest.approx(1 / 8)
    assert kl_divergence(Laplace(0.5)) == pytest.approx(2 + exp(-2) - 1, rel=1e-14, abs=0)
    truth, lie = exp(1.3) / (exp(1.3) + 4), 1 / (exp(1.3) + 4)
    assert kl_divergence(RandomizedResponse(1.3, 5)) == pytest.approx((truth - lie) * 1.3, rel=1e-14, abs=0)
    assert kl_divergence(ApproximateDP(1.3)) == pytest.approx(kl_divergence(RandomizedResponse(1.3)), rel=1e-14, abs=0)
    amplified = log(1 + 0.1 * (exp(1.3) - 1))
    assert kl_divergence(ApproximateDP(1.3).subsampled(0.1), adjacency="add-remove") == pytest.approx(
        kl_divergence(ApproximateDP(amplified))
    )
    parts = (Gaussian(2.0).subsampled(0.1).composed(5), Laplace(3.0))
    assert kl_divergence(compose(*parts), adjacency="add-remove") == pytest.approx(
        sum(kl_divergence(part, "add-remove") for part in parts), rel=1e-14, abs=0
    )


@settings(max_examples=50, deadline=None)
@given(st.floats(0.05, 100), st.integers(1, 2000))
def test_never_below_the_exact_total_variation(noise, steps):
    assert kl_tvd(Gaussian(noise).composed(steps)) >= gaussian_tvd(noise / sqrt(steps))
    assert kl_tvd(Laplace(noise)) >= laplace_tvd(noise)
    alpha = min(0.999, 1 / noise)
    answer = RandomizedResponse(log((1 + alpha) / (1 - alpha)))
    assert kl_tvd(answer.composed(steps), adjacency="add-remove") >= best_composition_tvd(alpha, steps) * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05, 50), st.floats(1e-9, 0.5), st.integers(1, 10**6), st.sampled_from(list(Adjacency)))
def test_more_noise_fewer_steps_or_a_smaller_rate_never_raise_it(noise, rate, steps, adjacency):
    here = kl_tvd(Gaussian(noise).subsampled(rate).composed(steps), adjacency)
    slack = 1 + 1e-10
    assert kl_tvd(Gaussian(noise * 1.3).subsampled(rate).composed(steps), adjacency) <= here * slack
    assert kl_tvd(Gaussian(noise).subsampled(rate / 2).composed(steps), adjacency) <= here * slack
    assert kl_tvd(Gaussian(noise).subsampled(rate).composed(steps // 2), adjacency) <= here * slack
    assert 0 <= here <= 1


# seed_numbers.json exact_subsampled_gaussian: total_variation.
@pytest.mark.parametrize(
    ("rate", "steps", "noise", "exact"), [(0.01, 1000, 1.0, 0.161018), (0.01, 100000, 1.0, 0.958158)]
)
def test_above_the_exact_total_variation_of_sampled_gaussians(rate, steps, noise, exact):
    assert exact <= kl_tvd(Gaussian(noise).subsampled(rate).composed(steps), adjacency="add-remove") <= 1


def test_refusals():
    for mechanism in (TotalVariation(0.1), ApproximateDP(1.0, 1e-5)):
        with pytest.raises(InapplicableError, match="kl"):
            kl_tvd(mechanism, adjacency="add-remove")
    with pytest.raises(InapplicableError, match="replace"):
        kl_tvd(GaussianDP(1.0).subsampled(0.5), Adjacency.REPLACE)
    with pytest.raises(ValueError, match="divergence"):
        kl_to_tvd(-1.0)
    with pytest.raises(ValueError, match="neighbours"):
        kl_tvd(Gaussian(1.0), "neighbours")
