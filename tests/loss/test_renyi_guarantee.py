"""Bare Renyi and zCDP guarantees and the best of many runs: published conversions, dp-accounting, real releases."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq

import deniable as dn
from deniable.loss.pairs.renyi_guarantee import RenyiCurve, concentrated_orders, step_of_renyi, stopping_probability


def converted(curve, delta):
    """Canonne 2020, Proposition 12: the epsilon that proves it, over many orders."""
    orders = 1 + np.geomspace(1e-2, 1e3, 4000)
    return min(
        curve(a) + (log(1 / delta) + (a - 1) * log(1 - 1 / a) - log(a)) / (a - 1) for a in orders if curve(a) < inf
    )


@pytest.mark.parametrize("rho", [0.02, 0.5, 3.0])
def test_zcdp_is_above_a_gaussian_release_and_about_at_the_best_known_conversion(rho):
    bound, release = dn.privacy_loss(dn.ConcentratedDP(rho)), dn.privacy_loss(dn.GaussianDP(sqrt(2 * rho)))
    for delta in (1e-3, 1e-8):
        assert release.epsilon(delta) < bound.epsilon(delta) < 1.01 * converted(lambda a: rho * a, delta)
    assert release.advantage() < bound.advantage() < min(1.0, sqrt(rho / 2) * 1.001)  # Pinsker
    for fpr in (1e-6, 1e-3, 0.1, 0.7):
        assert release.tpr(fpr) < bound.tpr(fpr) <= 1
    assert bound.pair.reverse() is bound.pair


def test_the_curve_is_where_two_coins_use_up_one_order():
    """One order alone: on the curve the larger one of both divergences is the given one."""
    order, epsilon = 3.0, 0.4
    loss = dn.privacy_loss(dn.RenyiDP(order, epsilon))
    for x in (1e-4, 0.03, 0.4):
        y = float(loss.tpr(x))
        forth = log(y**order * x ** (1 - order) + (1 - y) ** order * (1 - x) ** (1 - order)) / (order - 1)
        back = log(x**order * y ** (1 - order) + (1 - x) ** order * (1 - y) ** (1 - order)) / (order - 1)
        assert max(forth, back) == pytest.approx(epsilon, rel=2e-3)
        assert max(forth, back) >= epsilon * (1 - 1e-9)


def test_guarantees_add_up():
    ten = dn.privacy_loss(dn.ConcentratedDP(0.01).composed(10))
    assert ten.epsilon(1e-6) == pytest.approx(dn.privacy_loss(dn.ConcentratedDP(0.1)).epsilon(1e-6), rel=1e-9)
    mixed = dn.privacy_loss(dn.compose(dn.RenyiDP([2.0, 8.0], [0.1, 0.4]), dn.RenyiDP([4.0, 16.0], [0.1, 0.4])))
    # a lower order is no larger: (2, .1 + .1), (4, .4 + .1), (8, .4 + .4)
    twin = dn.privacy_loss(dn.RenyiDP([2.0, 4.0, 8.0], [0.2, 0.5, 0.8]))
    assert mixed.epsilon(1e-5) == pytest.approx(twin.epsilon(1e-5), rel=1e-12)


def test_beside_other_releases_and_on_samples():
    alone = dn.privacy_loss(dn.ConcentratedDP(0.05)).epsilon(1e-5)
    beside = dn.privacy_loss(dn.compose(dn.ConcentratedDP(0.05), dn.Gaussian(5.0), dn.Laplace(9.0))).epsilon(1e-5)
    assert alone < beside < inf
    for adjacency in ("add-remove", "replace"):
        sample = dn.privacy_loss(dn.ConcentratedDP(0.05).subsampled(0.1), adjacency)
        assert sample.epsilon(1e-5) < alone
        real = dn.privacy_loss(dn.GaussianDP(sqrt(0.1)).subsampled(0.1), adjacency)
        assert real.epsilon(1e-5) < sample.epsilon(1e-5)


@pytest.mark.parametrize("beside", [(), (dn.Gaussian(5.0),), (dn.Laplace(5.0), dn.ApproximateDP(0.1, 0.01))])
def test_what_is_counted_as_told_may_be_less(beside):
    """At losses beyond all that a guarantee of a low order tells apart, and at levels below what it hides."""
    loss = dn.privacy_loss(dn.compose(dn.RenyiDP(1.05, 0.1), *beside))
    told = 0.01 if len(beside) == 2 else 0.0
    found = loss.pair.hockey_stick(2e4)
    assert found >= told
    assert found > 0
    assert found.least <= told <= found.least + 1e-9
    assert dn.privacy_loss(dn.ConcentratedDP(1.0)).epsilon(1e-35) < 30
    if not beside:
        assert 0.1 < loss.epsilon(1e-295).least < loss.epsilon(1e-295) <= 1.0001 * (0.1 - log(1e-295) / 0.05)
        assert 0 < loss.epsilon(1e-16).error < 1


@pytest.mark.parametrize("rho", [0.0, 1e-9])
def test_next_to_nothing(rho):
    assert dn.privacy_loss(dn.ConcentratedDP(rho)).advantage() < 1e-3


@pytest.mark.parametrize(
    "build", [lambda: dn.RenyiDP(1.0, 0.5), lambda: dn.RenyiDP([2.0], [0.1, 0.2]), lambda: dn.ConcentratedDP(-1.0)]
)
def test_bad_guarantees_are_refused(build):
    with pytest.raises(ValueError, match="must be"):
        build()


SHAPES = [(10.0, 1.0), (10.0, 0.0), (4.0, 0.5), (10.0, inf)]


@pytest.mark.parametrize(("mean", "shape"), SHAPES)
def test_the_best_of_many_against_dp_accounting(mean, shape):
    """The same theorems by their code; of a Poisson number they bound the one run's delta, which is exact here."""
    accountant = RdpAccountant(orders=list(1 + np.geomspace(3e-2, 300, 300)))
    accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(4.0), mean, shape))
    ours = dn.privacy_loss(dn.RepeatAndSelect(dn.Gaussian(4.0), mean, shape)).epsilon(1e-6)
    assert ours < 1.02 * accountant.get_epsilon(1e-6)
    if shape < inf:
        assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-2)
    assert ours > dn.privacy_loss(dn.Gaussian(4.0)).epsilon(1e-6)


@pytest.mark.parametrize("shape", [0.0, 0.3, 1.0, 2.0])
def test_the_number_of_runs_has_its_mean(shape):
    gamma, k = stopping_probability(7.0, shape), np.arange(1, 4000)
    if shape == 0:
        masses = (1 - gamma) ** k / k
    else:
        masses = np.exp(np.cumsum(np.log((k + shape - 1) / k)) + k * np.log1p(-gamma))
    assert float((k * masses).sum() / masses.sum()) == pytest.approx(7.0, rel=1e-6)


def test_the_best_of_exactly_these_runs():
    """A real one: of a geometric number of coins the best (heads) is released; its divergence is below the bound."""
    gamma, heads = 0.2, (0.5, 0.6)
    best = [1 - gamma * (1 - p) / (1 - (1 - gamma) * (1 - p)) for p in heads]
    base = dn.PmfPair([heads[1], 1 - heads[1]], [heads[0], 1 - heads[0]])
    bound = dn.privacy_loss(dn.RepeatAndSelect(base, 1 / gamma))
    for k in (0.0, 0.2, 0.5):
        real = max(best[1] - exp(k) * best[0], 0.0) + max((1 - best[1]) - exp(k) * (1 - best[0]), 0.0)
        assert real <= bound.delta(k)


def test_a_run_that_may_tell_everything_cannot_be_selected():
    with pytest.raises(ValueError, match="no Renyi divergence"):
        dn.privacy_loss(dn.RepeatAndSelect(dn.ApproximateDP(1.0, 1e-6), 5.0))


def test_trainings_are_selected_with_named_neighbours():
    training = dn.Gaussian(1.0).subsampled(0.01).composed(100)
    with pytest.raises(ValueError, match="adjacency"):
        dn.privacy_loss(dn.RepeatAndSelect(training, 5.0))
    best = dn.privacy_loss(dn.RepeatAndSelect(training, 5.0), "add-remove")
    assert best.epsilon(1e-6) > dn.privacy_loss(training, "add-remove").epsilon(1e-6)


def test_calibration():
    promise = dn.Epsilon(2.0, 1e-6)
    found = dn.calibrate(lambda noise: dn.RepeatAndSelect(dn.Gaussian(noise), 8.0), promise)
    assert found.loss.epsilon(1e-6) <= 2.0
    assert dn.privacy_loss(dn.RepeatAndSelect(dn.Gaussian(found.value * 0.99), 8.0)).epsilon(1e-6) > 2.0


@pytest.mark.parametrize("orders", [((3.99, 11.0), (108.7, 307.6)), ((3.99, 11.0), (1087.0, 3076.0)), ((2.0,), (3e4,))])
def test_large_guarantees_are_as_tight_as_the_best_known_conversion(orders):
    """Rates below 1e-40 lay a decade apart, and those below 1e-290 were counted as told: .055 for .023, and inf."""
    order, epsilon = orders[0][0], orders[1][0]
    loss = dn.privacy_loss(dn.RenyiDP(*orders))
    for more in (0.5, 1.5, 4.0):
        found = loss.delta(epsilon + more)
        assert found <= exp(-(order - 1) * more) / order * (1 - 1 / order) ** (order - 1) * 1.01
        assert found.least > 0.97 * found
    most = epsilon + log(2) / (order - 1)
    for score in (loss.quantile(0.5), loss.epsilon(0.5)):
        assert score.least < score <= most
        assert score.error < 0.3


def test_the_curve_lies_between_both_polygons():
    """The largest attack that one order allows, found by itself: above the inner polygon, below the outer one."""
    order, epsilon = 3.0, 1.2
    step = step_of_renyi(RenyiCurve((order,), (epsilon,)))
    for x in (1e-9, 1e-4, 0.02):
        y = brentq(lambda y, x=x: _joint_divergence(y, x, order) - epsilon, x, 1 - 1e-12)
        dual = [
            [step.hockey_stick(k).least + exp(k) * x, step.hockey_stick(k) + exp(k) * x]
            for k in np.linspace(-2, 12, 2000)
        ]
        low, high = np.min(dual, axis=0)
        assert low * (1 - 1e-9) <= y <= high * (1 + 1e-9)
        assert high - low < 0.003 * high


def _joint_divergence(y, x, order):
    forth = y**order * x ** (1 - order) + (1 - y) ** order * (1 - x) ** (1 - order)
    back = x**order * y ** (1 - order) + (1 - x) ** order * (1 - y) ** (1 - order)
    return log(max(forth, back)) / (order - 1)


@pytest.mark.parametrize("rho", [1e-5, 0.0038103505261258496, 0.1, 5.0, 1e4, 226241.06])
def test_the_error_of_zcdp_covers_the_orders_between(rho):
    """The lower end was made from the same 110 orders as the value: 5.79e-7 where other orders prove 5.72e-7."""
    loss = dn.privacy_loss(dn.ConcentratedDP(rho))
    for epsilon in rho + np.sqrt(rho) * np.linspace(0.5, 9.0, 18):
        found = loss.delta(epsilon)
        most = proven_delta(rho, epsilon)
        assert found.least <= most
        if 1e-8 < most < 0.01 and 1e-3 < rho < 1e5:
            assert found < 1.08 * most
            assert found.least > 0.85 * most


def test_a_curve_that_is_1_but_for_round_off_at_its_diagonal():
    loss = dn.privacy_loss(dn.RepeatAndSelect(dn.Gaussian(3.0), 101.0, inf).composed(5), "add-remove")
    assert loss.tpr(0.5) <= 1


def test_orders_that_are_left_out_are_needed():
    """From the looked at orders alone the lower end is above what the others prove."""
    rho, epsilon = 0.0038103505261258496, 0.383
    alone = step_of_renyi(concentrated_orders(rho)._replace(rho=0.0))
    assert alone.hockey_stick(epsilon).least > proven_delta(rho, epsilon)


def proven_delta(rho, epsilon):
    """Canonne, Kamath, Steinke 2020, Proposition 12, over orders that lie close."""
    orders = 1 + np.geomspace(1e-6, 1e6, 40000)
    logs = (orders - 1) * (rho * orders - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return min(1.0, exp(logs.min()))
