from __future__ import annotations

from functools import partial
from math import exp, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.numeric import InapplicableError
from deniable.bounds.runs import amplify_epsilon
from deniable.bounds.textbook import (
    advanced_composition,
    advanced_epsilon,
    classic_epsilon,
    naive_composition,
    naive_epsilon,
    proved_epsilon,
)
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

from .twins import gaussian_epsilon


def test_naive_composition_of_unlike_guarantees():
    found = naive_composition([(ApproximateDP(0.5, 1e-6), 3), (ApproximateDP(1.0, 2e-6), 2)])
    assert found.epsilon == pytest.approx(3.5)
    assert found.delta == pytest.approx(7e-6)
    assert naive_composition([(ApproximateDP(0.1, 0.4), 5)]).delta == 1


def test_advanced_composition_by_hand():
    found = advanced_composition([(ApproximateDP(0.1, 1e-7), 100), (ApproximateDP(0.2), 25)], 1e-5)
    squares, drift = 100 * 0.01 + 25 * 0.04, 100 * 0.1 * (exp(0.1) - 1) + 25 * 0.2 * (exp(0.2) - 1)
    assert found.epsilon == pytest.approx(sqrt(2 * log(1e5) * squares) + drift)
    assert found.delta == pytest.approx(2e-5)


def test_advanced_wins_for_many_small_steps_and_loses_for_large_ones():
    small, large = [(ApproximateDP(0.001), 10_000)], [(ApproximateDP(3.0), 10)]
    assert advanced_composition(small, 1e-5).epsilon < naive_composition(small).epsilon
    assert advanced_composition(large, 1e-5).epsilon > naive_composition(large).epsilon


def test_naive_epsilon_by_hand():
    """Three Gaussian steps on a tenth of the data share delta; the pure release needs none."""
    release = compose(Gaussian(20.0).subsampled(0.1).composed(3), Laplace(4.0).composed(2))
    step = sqrt(2 * log(1.25 / (1e-5 / 3 / 0.1))) / 20
    assert naive_epsilon(release, 1e-5, adjacency="add-remove") == pytest.approx(
        3 * log(1 + 0.1 * (exp(step) - 1)) + 0.5, rel=1e-12, abs=0
    )


def test_bare_guarantees_spend_their_own_delta():
    release = compose(ApproximateDP(1.0, 2e-6).subsampled(0.5).composed(3), TotalVariation(1e-6), Gaussian(20.0))
    gaussian = sqrt(2 * log(1.25 / (1e-5 - 4e-6))) / 20
    assert naive_epsilon(release, 1e-5, adjacency="add-remove") == pytest.approx(
        3 * log(1 + 0.5 * (exp(1) - 1)) + gaussian, rel=1e-9, abs=0
    )
    for delta in (1e-6, 4e-6):
        with pytest.raises(InapplicableError, match="delta must be above 4e-06"):
            naive_epsilon(release, delta, adjacency="add-remove")
    with pytest.raises(InapplicableError, match="delta"):
        advanced_epsilon(ApproximateDP(1.0, 1e-5), 1e-5)


def test_pure_releases_compose_without_delta_naively():
    release = compose(RandomizedResponse(0.3).composed(4), Pixelization(0.5, 4, 2), ApproximateDP(0.1))
    assert naive_epsilon(release, 0.0, adjacency="add-remove") == pytest.approx(1.8)
    pure = [(ApproximateDP(0.3), 4), (ApproximateDP(0.6), 1)]
    release = compose(RandomizedResponse(0.3).composed(4), Laplace(1 / 0.6))
    assert advanced_epsilon(release, 1e-6, adjacency="add-remove") == pytest.approx(
        advanced_composition(pure, 1e-6).epsilon
    )


def test_advanced_split_is_no_worse_than_halves_and_many_others():
    release = Gaussian(6.99).subsampled(0.02).composed(5000)
    found = advanced_epsilon(release, 1e-5, adjacency="add-remove")
    for share in [10**-k for k in range(1, 12)] + [0.1 * k for k in range(1, 10)]:
        step = amplify_epsilon(proved_epsilon(6.99, 1e-5 * (1 - share) / (0.02 * 5000)), 0.02)
        assert found <= advanced_composition([(ApproximateDP(step), 5000)], 1e-5 * share).epsilon * (1 + 1e-7)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 50), st.integers(1, 10**5), st.floats(-12, -0.1))
def test_never_below_the_exact_epsilon(noise, steps, log10_delta):
    """With the proved step also where the classic formula fails: one step of noise .3 claims 16."""
    delta, release = 10**log10_delta, Gaussian(noise).composed(steps)
    exact = gaussian_epsilon(delta, sqrt(steps) / noise)
    assert naive_epsilon(release, delta, adjacency="add-remove") >= exact * (1 - 1e-9)
    assert advanced_epsilon(release, delta, adjacency="add-remove") >= exact * (1 - 1e-9)


def test_the_classic_step_is_not_safe_everywhere():
    assert naive_epsilon(Gaussian(0.3), 1e-5, gaussian_step=classic_epsilon) < gaussian_epsilon(1e-5, 1 / 0.3)
    assert naive_epsilon(Gaussian(0.3), 1e-5) > gaussian_epsilon(1e-5, 1 / 0.3)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 50), st.floats(1e-6, 0.5), st.integers(2, 10**6), st.floats(-20, -0.5))
def test_monotone(noise, rate, steps, log10_delta):
    delta = 10**log10_delta
    for function in (naive_epsilon, advanced_epsilon):
        epsilon = partial(function, adjacency="add-remove")
        here = epsilon(Gaussian(noise).subsampled(rate).composed(steps), delta) * (1 + 1e-5)
        assert epsilon(Gaussian(noise * 1.2).subsampled(rate).composed(steps), delta) <= here
        assert epsilon(Gaussian(noise).subsampled(rate / 1.2).composed(steps), delta) <= here
        assert epsilon(Gaussian(noise).subsampled(rate).composed(steps // 2), delta) <= here
        assert epsilon(Gaussian(noise).subsampled(rate).composed(steps), min(0.99, delta * 2)) <= here


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 800), st.floats(0, 1))
def test_amplification_stays_between_nothing_and_everything(epsilon, rate):
    assert 0 <= amplify_epsilon(epsilon, rate) <= epsilon * (1 + 1e-12)


def test_amplification_extremes():
    assert amplify_epsilon(2.0, 1.0) == 2.0
    assert amplify_epsilon(2.0, 0.0) == 0.0
    assert amplify_epsilon(1e5, 0.01) == pytest.approx(1e5 + log(0.01), rel=1e-12, abs=0)
    assert amplify_epsilon(1e-12, 1e-12) == pytest.approx(1e-24, rel=1e-9, abs=0)


def test_extremes_are_finite():
    for noise, rate, steps, delta in ((0.3, 1e-5, 10**6, 1e-30), (0.01, 1e-300, 10**6, 1e-300), (1e-6, 0.5, 9, 0.5)):
        release = Gaussian(noise).subsampled(rate).composed(steps)
        assert 0 <= naive_epsilon(release, delta, adjacency="add-remove") < float("inf")
        assert 0 <= advanced_epsilon(release, delta, adjacency="add-remove") < float("inf")
    assert (
        naive_epsilon(Gaussian(1.0).subsampled(1e-6), 1e-5, adjacency="add-remove") == 0
    )  # (0, 1e-6)-DP: the record is rarely there
    assert naive_epsilon(GaussianDP(0.0), 1e-5) < 1e-290
    assert naive_epsilon(Gaussian(1.0).composed(0), 1e-5) == 0


def test_sampling_under_replace():
    assert naive_epsilon(Gaussian(4.0).subsampled(0.1), 1e-5, Adjacency.REPLACE) == naive_epsilon(
        Gaussian(4.0).subsampled(0.1), 1e-5, adjacency="add-remove"
    )
    for mechanism in (ApproximateDP(1.0), GaussianDP(1.0), RandomizedResponse(1.0), Pixelization(1.0, 1, 1)):
        with pytest.raises(InapplicableError, match="replace"):
            naive_epsilon(mechanism.subsampled(0.5), 1e-5, Adjacency.REPLACE)
        assert naive_epsilon(mechanism.subsampled(1.0), 1e-5, Adjacency.REPLACE) > 0


def test_losses_beyond_every_analysis_are_refused():
    for mechanism in (Gaussian, Laplace):
        with pytest.raises(ValueError, match="between 1e-06 and"):
            mechanism(1e-200)
    with pytest.raises(ValueError, match=r"and 1e\+06"):
        GaussianDP(1e200)
    with pytest.raises(InapplicableError, match="beyond"):
        naive_epsilon(ApproximateDP(1e200), 1e-5, adjacency="add-remove")


def test_bad_slack():
    with pytest.raises(ValueError, match="slack"):
        advanced_composition([(ApproximateDP(1.0), 1)], 0.0)
