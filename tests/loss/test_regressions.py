"""Questions that a well-known package answers wrongly, each checked against a twin that works in 30 digits."""

from __future__ import annotations

from math import exp, inf, isnan, log

import mpmath as mp
import pytest

import deniable as dn
from twins import (
    SampledTwin,
    composed_null_tail,
    composed_stick,
    composed_tail,
    gridded_stick,
    response_null_tail,
    response_stick,
    two_step_stick,
)

ULP = 2.3e-16


def brackets(value, truth, ulps=4):
    """The contract of every score: truth in [value - error, value], up to a few ulps."""
    slack = ulps * ULP * abs(truth)
    assert value >= truth - slack, f"unsafe: {value!r} is below {mp.nstr(truth, 20)}"
    assert value - value.error <= truth + slack, f"{value!r} exceeds {mp.nstr(truth, 20)} by more than {value.error}"


def sgd(noise=1.0, rate=0.01, steps=1000, adjacency="add-remove"):
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(steps), adjacency)


# --- seed_numbers.json, exact_subsampled_gaussian (characteristic-function inversion, add/remove) ---


@pytest.mark.parametrize(
    ("rate", "steps", "noise", "value"),
    [
        (0.005, 6000, 0.7, 0.364698),
        (0.005, 6000, 2.4, 0.067146),
        (0.01, 1000, 1.0, 0.161018),
        (0.01, 100_000, 1.0, 0.958158),
    ],
)
def test_total_variation_of_the_seed(rate, steps, noise, value):
    assert sgd(noise, rate, steps).advantage() == pytest.approx(value, abs=5.1e-7)


def test_epsilon_of_the_seed():
    assert sgd().epsilon(1e-12) == pytest.approx(3.9143, abs=5e-5)


@pytest.mark.parametrize(("fpr", "tpr", "rounding"), [(1e-3, 0.0201, 5e-5), (1e-4, 0.00397, 5e-6)])
def test_true_positive_rate_of_the_seed(fpr, tpr, rounding):
    assert sgd(0.7, 0.005, 6000).tpr(fpr) == pytest.approx(tpr, abs=rounding)


def test_accuracy_of_laplace_and_gaussian_in_the_seed():
    """seed_numbers.json, tvd_experiment_2 (Jia 2023, Section 3; the variance is 2, erratum 13)."""
    assert dn.privacy_loss(dn.Laplace(1.0)).accuracy() == pytest.approx(0.697, abs=5e-4)
    assert dn.privacy_loss(dn.Gaussian(2**0.5)).accuracy() == pytest.approx(0.639, abs=9e-4)


@pytest.mark.parametrize("per_feature", [0.1, 0.5, 1, 2, 3])
@pytest.mark.parametrize("features", [6382, 600, 62500])
def test_local_epsilon_of_a_record_is_that_of_its_features_added(per_feature, features):
    """seed_numbers.json, dbsec_local_epsilon (Bernau 2021b, Eq. 1 and Table 1)."""
    record = dn.privacy_loss(dn.RandomizedResponse(per_feature).composed(features))
    assert record.epsilon(0.0) == pytest.approx(features * per_feature, rel=1e-14)
    assert record.epsilon(1e-5) <= record.epsilon(0.0)


# --- the list ---

# line, spacing and size of the twin: chosen so that its own two checks (aliases, truncation) pass
LINES = {1000: (4.0, 0.05, 500), 10_000: (1.5, 0.05, 300), 100_000: (1.2, 0.02, 200), 1_000_000: (1.05, 0.005, 200)}


@pytest.mark.parametrize("steps", LINES)
def test_advantage_of_many_steps_to_1e_8(steps):
    truth = composed_stick([SampledTwin(1.0, 0.01, steps)], 0.0, *LINES[steps])
    advantage = sgd(steps=steps).advantage()
    assert advantage <= 1
    assert advantage - truth == pytest.approx(0.0, abs=1e-9)
    assert advantage >= truth
    assert advantage.error <= 1e-8


def test_a_million_steps_leave_almost_nothing_hidden():
    """The complement of the advantage, where the advantage itself has no digits left."""
    truth = composed_stick([SampledTwin(1.0, 0.01, 1_000_000)], 0.0, *LINES[1_000_000])
    assert 1 - sgd(steps=1_000_000).advantage() == pytest.approx(float(1 - truth), rel=1e-5)


@pytest.mark.parametrize(("delta", "line"), [(1e-18, (7.0, 0.05, 800)), (1e-30, (8.0, 0.05, 800))])
def test_epsilon_at_tiny_delta(delta, line):
    loss = sgd()
    epsilon = loss.epsilon(delta)
    truth = composed_stick([SampledTwin(1.0, 0.01, 1000)], float(epsilon), *line)
    assert epsilon < inf
    assert truth <= delta, "not on the safe side"
    assert truth == pytest.approx(delta, rel=1e-9)
    brackets(loss.delta(epsilon), truth)


def test_rare_sampling():
    """Rate 1e-5, 10^4 steps: 5.23e-4, not twice that.

    The twin takes 20 s here: composed_stick([SampledTwin(1.0, 1e-5, 10_000)], 0.0, c, spacing, size), without its check
    of aliases, gives these 16 digits with (12, 1.2, 5000) and with (14, 1.5, 4200).
    """
    advantage = sgd(rate=1e-5, steps=10_000).advantage()
    brackets(advantage, 5.227839076469621e-4)
    assert advantage == pytest.approx(5.23e-4, rel=1e-3)
    assert advantage <= 10_000 * sgd(rate=1e-5, steps=1).advantage()


def test_true_positive_rate_at_a_millionth():
    """At the threshold t with Q(L > t) = fpr; there H(t) + e^t fpr is flat in t, so t need not be exact."""
    parts, fpr = [SampledTwin(1.0, 0.01, 1000)], 1e-6
    line = (6.0, 0.05, 800)
    low, high = 0.0, 5.0
    for _ in range(34):
        middle = (low + high) / 2
        above = composed_null_tail(parts, middle, *line) > fpr
        low, high = (middle, high) if above else (low, middle)
    truth = composed_stick(parts, high, *line) + mp.exp(high) * fpr
    assert composed_tail(parts, high, *line) == pytest.approx(float(truth), rel=1e-5)
    assert sgd().tpr(fpr) == pytest.approx(float(truth), rel=1e-12)
    assert sgd().tpr(fpr) >= truth


def test_little_noise():
    truth = gridded_stick((0.3, 0.01), 1000, (-30.0, 390.0), 2**20)
    advantage = sgd(0.3).advantage()
    assert advantage == pytest.approx(truth, abs=1e-8)
    assert advantage.error <= 1e-8


def test_little_noise_and_many_steps():
    truth = composed_stick([SampledTwin(0.3, 0.01, 10_000)], 0.0, 1.02, 0.002, 500)
    brackets(sgd(0.3, steps=10_000).advantage(), truth)


@pytest.mark.parametrize("runs", [100, 6382])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_composed_randomized_response(runs, epsilon):
    loss = dn.privacy_loss(dn.RandomizedResponse(epsilon).composed(runs))
    assert loss.method == "closed form"
    for k in (0.0, 0.3 * runs * epsilon, -0.1):
        brackets(loss.delta(k), response_stick(epsilon, runs, k))


def test_composed_randomized_response_at_a_small_false_positive_rate():
    """The best attack says yes from a threshold on, and tosses a coin on it."""
    epsilon, runs, fpr = 0.1, 100, 1e-6
    loss = dn.privacy_loss(dn.RandomizedResponse(epsilon).composed(runs))
    lattice = [(2 * j - runs) * epsilon for j in range(runs + 1)]
    threshold = next(t for t in lattice if response_null_tail(epsilon, runs, t + 1e-9) <= fpr)
    truth = response_stick(epsilon, runs, threshold) + mp.exp(mp.mpf(threshold)) * fpr
    assert loss.tpr(fpr) == pytest.approx(float(truth), rel=1e-11)
    assert loss.tpr(fpr) >= truth * (1 - 1e-12)


def test_a_guarantee_of_no_use_gives_no_nan():
    loss = dn.privacy_loss(dn.ApproximateDP(800.0, 1e-5))
    shares = [loss.advantage(), loss.accuracy(0.3), loss.belief(1e-6), loss.belief(0.5), *loss.roc(11)[1]]
    shares += [loss.tpr(fpr) for fpr in (0.0, 1e-6, 1.0)] + [loss.ppv(fpr, 0.1) for fpr in (0.0, 1e-6, 1.0)]
    shares += [loss.delta(epsilon) for epsilon in (0.0, 800.0, -800.0, 5000.0)]
    answers = [*shares, loss.epsilon(1e-4), loss.quantile(0.5)]
    assert not any(isnan(answer) for answer in answers)
    assert all(0 <= share <= 1 for share in shares)
    assert loss.advantage() == pytest.approx(1.0)
    assert loss.quantile(0.5) == 800.0
    assert loss.tpr(0.0) == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("mechanism", "certain"),
    [
        (dn.Gaussian(1.0), 0.0),
        (dn.Gaussian(1.0).subsampled(0.01).composed(1000), 0.0),
        (dn.Laplace(1.0), 0.0),
        (dn.RandomizedResponse(1.0).composed(100), 0.0),
        (dn.ApproximateDP(1.0, 0.125), 0.125),
        (dn.TotalVariation(0.25), 0.25),
        (dn.ApproximateDP(1.0, 0.125).composed(2), 1 - 0.875**2),
        (dn.compose(dn.Gaussian(1.0), dn.TotalVariation(0.25)), 0.25),
    ],
    ids=repr,
)
def test_false_positive_rates_of_0_and_1(mechanism, certain):
    loss = dn.privacy_loss(mechanism, adjacency="add-remove")
    assert loss.tpr(0.0) == pytest.approx(certain, abs=1e-14)
    assert loss.tpr(1.0) == 1.0
    assert loss.ppv(1.0, 0.3) == pytest.approx(0.3, abs=1e-14)


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.5, 0.2), (3.0, 0.5)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_steps_against_quadrature(noise, rate, direction):
    pair = sgd(noise, rate, 2).pair if direction == "remove" else sgd(noise, rate, 2).pair.reverse()
    for k in (0.0, 0.01):
        truth = two_step_stick((noise, rate), (noise, rate), k, direction)
        assert pair.hockey_stick(k) == pytest.approx(float(truth), abs=1e-9)
        brackets(pair.hockey_stick(k), truth, ulps=100)


def test_two_unlike_steps_against_quadrature():
    pair = dn.privacy_loss(
        dn.compose(dn.Gaussian(1.0).subsampled(0.05), dn.Gaussian(2.0).subsampled(0.3)), adjacency="add-remove"
    ).pair
    for k in (0.0, 0.2):
        truth = two_step_stick((1.0, 0.05), (2.0, 0.3), k)
        assert float(two_step_stick((2.0, 0.3), (1.0, 0.05), k)) == pytest.approx(float(truth), rel=1e-12)
        brackets(pair.hockey_stick(k), truth, ulps=100)


def test_belief_of_the_gaussian_by_its_quantile():
    """erratum 4: sigmoid(logit(prior) + q), q the (1-p)-quantile of N(mu^2/2, mu^2)."""
    mu, failure, prior = 0.5, 1e-3, 0.3
    q = mu * mu / 2 + mu * mp.findroot(lambda z: mp.ncdf(-z) - mp.mpf(failure), 3)
    truth = 1 / (1 + exp(-float(q)) * (1 - prior) / prior)
    assert dn.privacy_loss(dn.Gaussian(1 / mu)).belief(failure, prior) == pytest.approx(truth, rel=1e-11)
    assert dn.privacy_loss(dn.Gaussian(1 / mu)).quantile(1 - failure) == pytest.approx(float(q), rel=1e-11)
    assert log(truth / (1 - truth)) > 0
