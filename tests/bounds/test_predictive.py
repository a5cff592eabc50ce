from __future__ import annotations

from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds.risk_bounds import accuracy_from_dp, accuracy_from_tvd, ppv_from_dp, ppv_from_tvd
from draws import when

rates = st.floats(0, 1)
priors = st.floats(0.001, 0.999)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 30), rates)
def test_equation_1_as_printed(epsilon, delta):
    assert accuracy_from_dp(epsilon, delta) == pytest.approx(
        exp(epsilon) / (exp(epsilon) + 1) * (1 - delta) + delta, rel=1e-12, abs=0
    )


@settings(max_examples=50, deadline=None)
@given(rates, rates)
def test_proposition_1(alpha, prior):
    more, less = max(prior, 1 - prior), min(prior, 1 - prior)
    assert accuracy_from_tvd(alpha, prior) == pytest.approx(more + less * alpha, rel=1e-12, abs=0)
    assert accuracy_from_tvd(alpha) == pytest.approx(0.5 + alpha / 2, rel=1e-12, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 20), rates, st.floats(1e-9, 1), priors)
def test_theorem_16_as_printed(epsilon, delta, fpr, prior):
    fnr = max(0, 1 - delta - exp(epsilon) * fpr, exp(-epsilon) * (1 - delta - fpr))
    printed = (1 - fnr) / (1 - fnr + (1 - prior) / prior * fpr)
    assert ppv_from_dp(epsilon, delta, fpr, prior) == pytest.approx(printed, rel=1e-9, abs=0)


@settings(max_examples=50, deadline=None)
@given(rates, st.floats(1e-9, 1), priors)
def test_theorem_17_with_the_true_positive_rate_kept_to_one(alpha, fpr, prior):
    printed = (fpr + alpha) / (fpr + alpha + (1 - prior) / prior * fpr)
    found = ppv_from_tvd(alpha, fpr, prior)
    assert found <= printed * (1 + 1e-12)
    if when(fpr + alpha <= 1):
        assert found == pytest.approx(printed, rel=1e-9, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 20), priors)
def test_at_fpr_zero_it_is_the_limit(epsilon, prior):
    limit = ppv_from_dp(epsilon, 0.0, 1e-12, prior)
    assert ppv_from_dp(epsilon, 0.0, 0.0, prior) == pytest.approx(limit, rel=1e-3, abs=0)
    assert ppv_from_dp(epsilon, 1e-9, 0.0, prior) == 1


def test_extremes():
    assert ppv_from_tvd(0.0, 0.0, 0.2) == 0.2
    assert ppv_from_tvd(0.1, 0.0, 0.2) == 1
    assert ppv_from_tvd(0.0, 1.0, 0.2) == pytest.approx(0.2)
    assert ppv_from_dp(0.0, 0.0, 0.3, 0.2) == pytest.approx(0.2)
    assert ppv_from_dp(800.0, 1e-5, 1e-3, 0.5) == pytest.approx(1 / 1.001)
    assert accuracy_from_dp(800.0, 1e-5) == 1
    assert accuracy_from_tvd(0.3, 0.0) == 1


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, float("nan")])
def test_a_prior_without_doubt_is_refused(prior):
    with pytest.raises(ValueError, match="prior"):
        ppv_from_dp(1.0, 0.0, 0.1, prior)
    with pytest.raises(ValueError, match="prior"):
        ppv_from_tvd(0.1, 0.1, prior)
    with pytest.raises(ValueError, match="prior"):
        ppv_from_tvd(0.0, 0.0, prior)
