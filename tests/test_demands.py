"""What weaker analyses demand: the fast search against plain scoring of every noise, as a person would do it."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.answers.choose import InapplicableError, calibrate_by
from deniable.bounds import METHODS, epsilon_to_belief, guarantee, loss_bound
from deniable.mechanisms import Adjacency, Gaussian, Laplace, RandomizedResponse
from deniable.promises import (
    Accuracy,
    Advantage,
    Belief,
    Epsilon,
    PositivePredictiveValue,
    TruePositiveRate,
)
from deniable.scores import privacy_loss

ADD = Adjacency.ADD_REMOVE


def training(rate, steps):
    return lambda noise: Gaussian(noise).subsampled(rate).composed(steps)


def full_batches(steps):
    return lambda noise: Gaussian(noise).composed(steps)


def scored(name, mechanism, target, delta, adjacency):
    """The promised score by the analysis, from scratch; inf where it has nothing to say."""
    try:
        if isinstance(target, Belief):
            return epsilon_to_belief(loss_bound(name, mechanism, target.delta, adjacency), target.prior)
        return target.score(privacy_loss(guarantee(name, mechanism, delta, adjacency), adjacency))
    except InapplicableError:
        return inf


def by_halves(name, mechanism_of, target, delta, adjacency):
    """The twin: plain bisection with a score at every noise."""
    low, high = 1e-3, 1e9
    while high / low > 1 + 1e-7:
        middle = sqrt(low * high)
        kept = scored(name, mechanism_of(middle), target, delta, adjacency) <= target.bound
        low, high = (low, middle) if kept else (middle, high)
    return high


@st.composite
def trainings(draw):
    records = int(10 ** draw(st.floats(3, 7)))
    batch = min(int(2 ** draw(st.floats(4, 12))), records // 2)
    return batch / records, -(-records // batch) * round(200 ** draw(st.floats(0, 1)))


@st.composite
def promises(draw):
    """A promise, and the delta at which guarantees are asked for."""
    delta, share = 10 ** draw(st.floats(-9, -3)), draw(st.floats(0.02, 0.98))
    prior, fpr = draw(st.sampled_from([0.5, 0.1, 0.01])), 10 ** draw(st.floats(-3, -1))
    base = max(prior, 1 - prior)
    target = draw(
        st.sampled_from(
            [
                Belief(prior + (1 - prior) * share, delta, prior),
                Advantage(share),
                Accuracy(base + (1 - base) * share, prior),
                TruePositiveRate(fpr + (1 - fpr) * share, fpr),
                PositivePredictiveValue(prior + (1 - prior) * share, fpr, prior),
                Epsilon(10 ** (3 * share - 1.5), delta),
                Epsilon(10 ** (3 * share - 1.5), min(0.5, delta * 1.5)),
            ]
        )
    )
    assume(target.level < 1)  # a promise that every release keeps has its own test
    return target, delta


def assert_least(name, mechanism_of, target, delta, adjacency=ADD):
    """The promise holds at the noise found, but not with a millionth less; or with no noise at all."""
    try:
        noise = calibrate_by(name, mechanism_of, target, delta, adjacency)
    except InapplicableError:
        assert scored(name, mechanism_of(1e9), target, delta, adjacency) > target.bound, name
        return
    assert scored(name, mechanism_of(noise * (1 + 1e-7)), target, delta, adjacency) <= target.bound, name
    if noise > 1.001e-3:
        assert scored(name, mechanism_of(noise * (1 - 1e-6)), target, delta, adjacency) > target.bound, name


@settings(max_examples=40, deadline=None)
@given(trainings(), promises(), st.sampled_from(list(Adjacency)))
def test_the_noise_is_the_least_that_keeps_the_promise(schedule, promise, adjacency):
    for name in ("naive", "advanced", "zcdp", "rdp", "kl"):
        assert_least(name, training(*schedule), *promise, adjacency)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 10**5), promises())
def test_without_sampling_the_classic_formula_has_its_say_too(steps, promise):
    for name in METHODS:
        assert_least(name, full_batches(steps), *promise)


@pytest.mark.parametrize("mechanism_of", [Laplace, lambda noise: RandomizedResponse(1 / noise, 4).composed(7)])
@pytest.mark.parametrize("target", [Belief(0.7, 1e-5), Advantage(0.2), Epsilon(1.0, 1e-5), TruePositiveRate(0.1, 0.01)])
def test_local_mechanisms(mechanism_of, target):
    for name in ("naive", "advanced", "zcdp", "rdp", "kl"):
        assert_least(name, mechanism_of, target, 1e-5)


@pytest.mark.parametrize("target", [Belief(0.9, 1e-5, 0.1), Accuracy(0.6, 0.5), Epsilon(0.3, 1e-6)])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_equals_plain_bisection(target, adjacency):
    for name in ("naive", "advanced", "zcdp", "rdp", "kl"):
        noise = calibrate_by(name, training(0.005, 6000), target, 1e-6, adjacency)
        assert noise == pytest.approx(by_halves(name, training(0.005, 6000), target, 1e-6, adjacency), rel=1e-6, abs=0)


@settings(max_examples=15, deadline=None)
@given(trainings(), st.floats(0.51, 0.98), st.floats(0.001, 0.3), st.floats(-8, -3))
def test_a_weaker_promise_never_demands_more(schedule, belief, step, log10_delta):
    delta = 10**log10_delta
    for name in ("naive", "advanced", "zcdp", "rdp"):
        for strict, weak in (
            (Belief(belief, delta), Belief(belief + step * (1 - belief), delta)),
            (Advantage(2 * belief - 1), Advantage(2 * belief - 1 + step * (1 - belief))),
        ):
            least = calibrate_by(name, training(*schedule), strict, delta, adjacency="add-remove")
            assert calibrate_by(name, training(*schedule), weak, delta, adjacency="add-remove") <= least * (1 + 1e-6), (
                name
            )


def test_a_sharp_wall_of_orders():
    """Here the best order is where the divergence explodes, within a thousandth of the order."""
    rate, steps, delta = 9.020848262837208e-05, 487784, 2.405559536756589e-07
    noise = calibrate_by("rdp", training(rate, steps), Advantage(0.08965294251651558), delta, Adjacency.ZERO_OUT)
    assert noise == pytest.approx(1.99363893, rel=1e-6, abs=0)


def test_a_promise_that_every_release_keeps():
    """Even an attack that finds everybody has a predictive value below .9 here: no noise is needed for that."""
    target = PositivePredictiveValue(0.9, 0.02, 0.01)
    assert target.level == 1
    for name in ("naive", "advanced", "zcdp", "rdp", "kl"):
        assert calibrate_by(name, training(0.01, 1000), target, 1e-5, adjacency="add-remove") == pytest.approx(1e-3)
    with pytest.raises(InapplicableError, match="without sampling"):
        calibrate_by("classic", training(0.01, 1000), target, 1e-5, adjacency="add-remove")


def test_a_promise_that_a_guarantee_at_delta_cannot_keep():
    """(epsilon, delta)-DP allows an advantage of delta, however small epsilon is; total variation knows no delta."""
    for name in ("naive", "advanced", "zcdp", "rdp"):
        with pytest.raises(InapplicableError, match="no noise up to 1e"):
            calibrate_by(name, training(0.01, 1000), Advantage(1e-6), 1e-5, adjacency="add-remove")
    assert calibrate_by("kl", training(0.01, 1000), Advantage(1e-6), 1e-5, adjacency="add-remove") == pytest.approx(
        0.01 * sqrt(1000) / 2e-6, rel=1e-5, abs=0
    )


def test_a_tiny_epsilon_and_none_at_all():
    assert calibrate_by("zcdp", full_batches(1), Epsilon(1e-5, 1e-5), 1e-5) > 1e4
    for name in ("zcdp", "rdp"):  # the improved conversion proves (0, delta) with enough noise
        noise = calibrate_by(name, full_batches(1), Epsilon(0.0, 1e-5), 1e-5)
        assert guarantee(name, Gaussian(noise), 1e-5).epsilon == 0
    with pytest.raises(InapplicableError):
        calibrate_by("naive", full_batches(1), Epsilon(0.0, 1e-5), 1e-5)


def test_total_variation_bounds_a_belief():
    """Pr[loss > t] <= alpha / (1 - e^-t): the noise at which alpha is the failure times (1 - prior odds / odds)."""
    target = Belief(0.9, 1e-3)
    noise = calibrate_by("kl", training(0.1, 100), target, 1e-5, adjacency="add-remove")
    found = guarantee("kl", training(0.1, 100)(noise), 1e-5, adjacency="add-remove").alpha
    assert found == pytest.approx(1e-3 * (1 - exp(-log(9))), rel=2e-6, abs=0)


def test_bad_input():
    with pytest.raises(ValueError, match="name must be one of naive"):
        calibrate_by("pld", training(0.1, 10), Advantage(0.1), 1e-5, adjacency="add-remove")
    for delta in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="delta"):
            calibrate_by("rdp", training(0.1, 10), Advantage(0.1), delta, adjacency="add-remove")
