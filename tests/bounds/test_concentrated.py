from __future__ import annotations

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.divergences import (
    best_epsilon,
    classic_conversion,
    epsilon_to_rho,
    rdp_epsilon,
    rho,
    rho_to_epsilon,
    rho_to_epsilon_classic,
    zcdp_epsilon,
)
from deniable.bounds.numeric import InapplicableError
from deniable.mechanisms import ApproximateDP, Gaussian, GaussianDP, Laplace, compose

deltas = st.floats(-300, -1e-6).map(lambda p: 10**p)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-9, 1e6), deltas)
def test_classic_conversion_and_its_inverse_are_a_round_trip(epsilon, delta):
    assert rho_to_epsilon_classic(epsilon_to_rho(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 1e6), deltas)
def test_classic_closed_form_is_the_best_order_of_the_classic_conversion(total, delta):
    searched = best_epsilon(lambda order: total * order, delta, classic_conversion)
    assert searched == pytest.approx(rho_to_epsilon_classic(total, delta), rel=1e-8, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1e6), deltas)
def test_improved_is_never_above_classic(total, delta):
    assert 0 <= rho_to_epsilon(total, delta) <= rho_to_epsilon_classic(total, delta) * (1 + 1e-12)


def test_without_sampling_it_equals_renyi_dp():
    # 11.68862679916635: dp-accounting 0.6.0 RdpAccountant, GaussianDpEvent(5) composed 100 times, delta 1e-6.
    release = Gaussian(5.0).composed(100)
    assert zcdp_epsilon(release, 1e-6) == pytest.approx(
        rdp_epsilon(release, 1e-6, adjacency="add-remove"), rel=1e-12, abs=0
    )
    assert zcdp_epsilon(release, 1e-6) == pytest.approx(11.68862679916635, rel=2e-4, abs=0)


def test_rho_adds_and_ignores_sampling():
    release = compose(Gaussian(2.0).subsampled(0.01).composed(8), GaussianDP(0.5), Laplace(2.0))
    assert rho(release) == pytest.approx(8 / 8 + 1 / 8 + 1 / 8)
    assert rho(Gaussian(2.0).subsampled(0.0)) == 0
    assert zcdp_epsilon(Gaussian(2.0).composed(0), 1e-5) == 0


def test_conversion_by_hand():
    assert rho_to_epsilon_classic(0.5, 1e-5) == pytest.approx(0.5 + 2 * (0.5 * log(1e5)) ** 0.5, rel=1e-14, abs=0)


def test_bad_input():
    with pytest.raises(InapplicableError, match="zcdp"):
        zcdp_epsilon(ApproximateDP(1.0, 1e-6), 1e-5)
    with pytest.raises(ValueError, match="rho"):
        rho_to_epsilon(-1.0, 1e-5)
    with pytest.raises(ValueError, match="delta"):
        rho_to_epsilon_classic(1.0, 0.0)
