from __future__ import annotations

from math import exp, inf, log

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.bounds.risk_bounds import (
    advantage_at_fpr,
    advantage_at_fpr_from_tvd,
    erlingsson_advantage,
    kairouz_advantage,
    least_epsilon_erlingsson,
    least_epsilon_from_rates,
    least_epsilon_kairouz,
    least_epsilon_yeom,
    least_fnr,
    yeom_advantage,
)
from draws import when

epsilons = st.floats(0, 30)
rates = st.floats(0, 1)


@settings(max_examples=50, deadline=None)
@given(epsilons, rates)
def test_formulas_as_printed(epsilon, delta):
    assert yeom_advantage(epsilon) == pytest.approx(min(1, exp(epsilon) - 1), abs=1e-12)
    assert erlingsson_advantage(epsilon, delta) == pytest.approx(1 - exp(-epsilon) * (1 - delta), abs=1e-12)
    printed = (exp(epsilon) - 1 + 2 * delta) / (exp(epsilon) + 1)
    assert kairouz_advantage(epsilon, delta) == pytest.approx(printed, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(epsilons, rates)
def test_loosest_to_tightest(epsilon, delta):
    assert kairouz_advantage(epsilon, delta) <= erlingsson_advantage(epsilon, delta) + 1e-15
    assert erlingsson_advantage(epsilon) <= yeom_advantage(epsilon) + 1e-15


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 8), st.floats(0, 0.5))
def test_lower_bounds_invert_the_upper_ones(epsilon, delta):
    assert least_epsilon_erlingsson(erlingsson_advantage(epsilon, delta), delta) == pytest.approx(epsilon, abs=1e-9)
    assert least_epsilon_kairouz(kairouz_advantage(epsilon, delta), delta) == pytest.approx(epsilon, abs=1e-9)
    if when(epsilon < log(2)):
        assert least_epsilon_yeom(yeom_advantage(epsilon)) == pytest.approx(epsilon, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1), st.floats(0, 0.5))
def test_kairouz_finds_at_least_as_much_as_erlingsson(advantage, delta):
    assert least_epsilon_kairouz(advantage, delta) >= least_epsilon_erlingsson(advantage, delta) - 1e-12


@settings(max_examples=50, deadline=None)
@given(rates, rates, st.floats(0, 0.5))
def test_rates_find_at_least_as_much_as_their_advantage(fpr, fnr, delta):
    advantage = 1 - fpr - fnr
    assume(advantage < 1 - 1e-6)  # nearer to 1 the subtraction loses the rates
    assert least_epsilon_from_rates(fpr, fnr, delta) >= least_epsilon_kairouz(advantage, delta) - 1e-9


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 20), st.floats(0, 0.9), rates)
def test_rates_on_the_trade_off_curve_give_epsilon_back(epsilon, delta, fpr):
    fnr = least_fnr(epsilon, delta, fpr)
    assert least_epsilon_from_rates(fpr, min(1, fnr + 1e-12), delta) <= epsilon + 1e-6
    if when(fnr > 1e-6 and fpr > 1e-6):
        assert least_epsilon_from_rates(fpr, fnr, delta) == pytest.approx(epsilon, abs=1e-6)


def test_erlingsson_table_2_by_the_advantage_form():
    """Erlingsson 2019, Table 2 from Table 1's TPRs at 5 % FPR; the rate form finds more on the same counts.

    Erratum 15.
    """
    for tpr, printed in ((0.053, 0.003), (0.056, 0.006), (0.089, 0.04)):
        assert least_epsilon_erlingsson(tpr - 0.05, 1e-5) == pytest.approx(
            printed, abs=0.0005 if printed < 0.01 else 0.005
        )
    assert least_epsilon_from_rates(0.05, 1 - 0.089, 1e-5) == pytest.approx(log(0.08899 / 0.05))


@settings(max_examples=50, deadline=None)
@given(epsilons, rates, rates)
def test_theorem_14_is_never_above_the_best_advantage(epsilon, delta, fpr):
    found = advantage_at_fpr(epsilon, delta, fpr)
    assert -1e-15 <= found <= kairouz_advantage(epsilon, delta) + 1e-12


def test_theorem_14_reaches_the_best_advantage():
    fpr = 0.9 / (exp(1.5) + 1)
    assert advantage_at_fpr(1.5, 0.1, fpr) == pytest.approx(kairouz_advantage(1.5, 0.1), rel=1e-12, abs=0)


def test_theorem_15():
    assert advantage_at_fpr_from_tvd(0.3, 0.1) == 0.3
    assert advantage_at_fpr_from_tvd(0.3, 0.8) == pytest.approx(0.2)
    assert advantage_at_fpr_from_tvd(0.3, 1.0) == 0


def test_extremes():
    assert kairouz_advantage(800.0, 1e-5) == 1
    assert erlingsson_advantage(800.0, 1e-5) == 1
    assert yeom_advantage(800.0) == 1
    assert kairouz_advantage(0.0, 0.0) == 0
    assert kairouz_advantage(0.0, 0.25) == 0.25
    assert least_fnr(800.0, 1e-5, 0.0) == pytest.approx(1 - 1e-5)
    assert least_fnr(800.0, 1e-5, 1e-6) == pytest.approx(0, abs=1e-300)
    assert least_fnr(1.0, 1.0, 0.5) == 0
    assert advantage_at_fpr(1.0, 0.0, 0.0) == 0
    assert advantage_at_fpr(1.0, 0.0, 1.0) == 0
    assert least_epsilon_kairouz(1.0) == inf
    assert least_epsilon_erlingsson(1.0, 0.5) == inf
    assert least_epsilon_from_rates(0.0, 0.5) == inf
    assert least_epsilon_from_rates(0.0, 1.0) == 0
    assert least_epsilon_from_rates(0.0, 0.0, 1.0) == 0
    assert least_epsilon_kairouz(-0.5) == 0
    assert least_epsilon_yeom(-0.5) == 0


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: yeom_advantage(-1.0), "epsilon"),
        (lambda: kairouz_advantage(1.0, 1.5), "delta"),
        (lambda: least_fnr(1.0, 0.0, float("nan")), "fpr"),
        (lambda: least_epsilon_kairouz(float("nan")), "advantage"),
        (lambda: least_epsilon_yeom(1.1), "advantage"),
        (lambda: least_epsilon_from_rates(0.1, -0.1), "fnr"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
