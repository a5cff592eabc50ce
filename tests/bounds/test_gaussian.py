from __future__ import annotations

from math import log, sqrt

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from deniable.bounds.risk_bounds import belief_to_epsilon, epsilon_to_belief
from deniable.bounds.textbook import (
    advantage_to_epsilon,
    classic_epsilon,
    classic_is_proved,
    classic_noise,
    epsilon_to_advantage,
    noise_for_belief,
    proved_epsilon,
    renyi_to_advantage,
)
from deniable.bounds.variation import gaussian_tvd

from .twins import gaussian_delta

deltas = st.floats(-30, -0.01).map(lambda p: 10**p)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 1e6), deltas)
def test_classic_round_trip(epsilon, delta):
    assert classic_epsilon(classic_noise(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-13, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-3, 1), deltas)
def test_classic_formula_holds_where_it_is_called_proved(epsilon, delta):
    """Both as delta(epsilon) and as the tail Pr[loss > epsilon], which `loss_bound` relies on."""
    assert classic_is_proved(epsilon)
    mu = 1 / classic_noise(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert ndtr(mu / 2 - epsilon / mu) <= delta


def test_classic_formula_fails_for_large_epsilon():
    assert not classic_is_proved(20.0)
    assert gaussian_delta(20.0, 1 / classic_noise(20.0, 1e-5)) > 1e-5


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 1000), deltas)
def test_proved_epsilon_is_proved(noise, delta):
    epsilon = proved_epsilon(noise, delta)
    assert gaussian_delta(epsilon, 1 / noise) <= delta * (1 + 1e-9)
    assert proved_epsilon(noise * 1.01, delta) <= epsilon


def test_proved_epsilon_at_delta_one_is_nothing():
    assert proved_epsilon(1.0, 1.0) == 0


@settings(max_examples=50, deadline=None)
@given(st.one_of(st.just(0.0), st.floats(1e-300, 30)), deltas)
def test_theorem_3_and_its_corrected_inverse_are_a_round_trip(epsilon, delta):
    advantage = epsilon_to_advantage(epsilon, delta)
    assume(advantage < 0.999)
    assert advantage_to_epsilon(advantage, delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


def test_theorem_3_by_hand():
    assert epsilon_to_advantage(2.2, 0.01) == pytest.approx(
        2 * ndtr(2.2 / (2 * sqrt(2 * log(125)))) - 1, rel=1e-13, abs=0
    )
    assert epsilon_to_advantage(log(9), 0.01) == pytest.approx(0.2763, abs=5e-5)  # erratum 6
    assert epsilon_to_advantage(0.0, 0.01) == 0
    assert advantage_to_epsilon(0.0, 0.01) == 0


@settings(max_examples=50, deadline=None)
@given(st.floats(1.001, 1e4), st.floats(0.01, 100), st.integers(1, 10_000))
def test_advantage_under_renyi_is_the_noise_that_is_really_added(order, noise, steps):
    divergence = order * steps / (2 * noise**2)
    assert renyi_to_advantage(order, divergence) == pytest.approx(gaussian_tvd(noise / sqrt(steps)), rel=1e-9, abs=0)


def test_no_divergence_no_advantage():
    assert renyi_to_advantage(2.0, 0.0) == 0


@settings(max_examples=50, deadline=None)
@given(st.floats(0.51, 0.999), deltas, st.integers(1, 1000))
def test_noise_for_belief_grows_with_the_root_of_steps_and_keeps_the_belief(belief, delta, steps):
    noise = noise_for_belief(belief, delta, steps)
    assert noise == pytest.approx(noise_for_belief(belief, delta) * sqrt(steps), rel=1e-9, abs=0)
    epsilon, mu = belief_to_epsilon(belief), sqrt(steps) / noise
    assert ndtr(mu / 2 - epsilon / mu) <= delta * (1 + 1e-9)  # Pr[belief exceeded]


def test_belief_by_hand_and_back():
    assert epsilon_to_belief(log(9)) == pytest.approx(0.9)
    assert epsilon_to_belief(log(9), prior=0.1) == pytest.approx(0.5)
    assert epsilon_to_belief(0.0, prior=0.3) == pytest.approx(0.3)
    assert epsilon_to_belief(1e5) == 1


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 30), st.floats(0.01, 0.99))
def test_belief_round_trip(epsilon, prior):
    belief = epsilon_to_belief(epsilon, prior)
    assume(prior < belief < 1 - 1e-9)
    assert belief_to_epsilon(belief, prior) == pytest.approx(epsilon, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("belief", "prior"), [(0.5, 0.5), (0.3, 0.5), (0.9, 0.95)])
def test_a_belief_at_or_below_the_prior_is_refused(belief, prior):
    with pytest.raises(ValueError, match="belief must be above the prior"):
        belief_to_epsilon(belief, prior)


def test_bad_input():
    with pytest.raises(ValueError, match="belief"):
        belief_to_epsilon(1.0)
    with pytest.raises(ValueError, match="advantage"):
        advantage_to_epsilon(1.0, 0.01)
    with pytest.raises(ValueError, match="epsilon"):
        classic_noise(0.0, 0.01)
    with pytest.raises(ValueError, match="delta"):
        classic_epsilon(1.0, 0.0)
    with pytest.raises(ValueError, match="steps"):
        noise_for_belief(0.9, 0.01, 0)
