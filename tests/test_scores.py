"""What must hold for every release, whatever its numbers: over wide random mechanisms, and at the edges."""

from __future__ import annotations

from itertools import pairwise
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import deniable as dn

SLACK = 1e-12


def spread(low, high):
    """Numbers whose logarithm is uniform, rounded so that a failure can be retyped."""
    return st.floats(log(low), log(high)).map(lambda x: float(f"{exp(x):.4g}"))


def steps(most):
    return spread(1, most).map(round)


rates = spread(1e-5, 1.0)
gaussians = spread(0.3, 30.0).map(dn.Gaussian)
adjacencies = st.sampled_from(list(dn.Adjacency))
trainings = st.builds(
    lambda noise, rate, count: dn.Gaussian(noise).subsampled(rate).composed(count),
    spread(0.3, 30.0),
    rates,
    steps(10**6),
)
simple = st.one_of(
    gaussians,
    spread(0.2, 30.0).map(dn.Laplace),
    st.builds(dn.RandomizedResponse, spread(0.01, 8.0), st.sampled_from([2, 3, 10])),
    st.builds(dn.ApproximateDP, spread(0.01, 8.0), st.sampled_from([0.0, 1e-5, 0.1])),
    spread(1e-6, 0.9).map(dn.TotalVariation),
    spread(0.01, 8.0).map(dn.GaussianDP),
)
closed_forms = st.one_of(
    simple,
    st.builds(lambda base, rate: base.subsampled(rate), simple, rates),
    st.builds(lambda base, count: base.composed(count), gaussians, steps(10**6)),
    st.builds(lambda epsilon, count: dn.RandomizedResponse(epsilon).composed(count), spread(0.01, 8.0), steps(5000)),
)
mixed = st.builds(
    lambda training, noise, release: dn.compose(training, dn.Gaussian(noise), release),
    trainings,
    spread(0.5, 30.0),
    st.one_of(spread(0.5, 30.0).map(dn.Laplace), spread(0.01, 3.0).map(dn.RandomizedResponse)),
)

FPR = (1e-9, 1e-6, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.999)
EPSILONS = (-4.0, -0.5, -0.01, 0.0, 0.02, 0.3, 2.0, 9.0)


def probabilities_are_probabilities(loss):
    assert 0 <= loss.advantage() <= 1
    assert loss.advantage().error >= 0
    for prior in (0.001, 0.3, 0.5, 0.95):
        assert max(prior, 1 - prior) - SLACK <= loss.accuracy(prior) <= 1
        assert prior - SLACK <= loss.belief(1e-5, prior) <= 1
        for fpr in (0.0, 1e-6, 0.1, 1.0):
            assert prior - SLACK <= loss.ppv(fpr, prior) <= 1
    assert loss.accuracy(0.5) == pytest.approx((1 + loss.advantage()) / 2, abs=1e-9)


def trade_off_is_concave(loss):
    """Above the diagonal, rising, concave, and never more than the advantage above it."""
    tpr = [loss.tpr(fpr) for fpr in FPR]
    low = [value - value.error for value in tpr]
    for fpr, value in zip(FPR, tpr, strict=True):
        assert fpr - SLACK <= value <= 1
        assert value - value.error - fpr <= loss.advantage() + SLACK
    for i in range(len(FPR) - 1):
        assert low[i] <= tpr[i + 1] + SLACK
    for i in range(1, len(FPR) - 1):
        share = (FPR[i] - FPR[i - 1]) / (FPR[i + 1] - FPR[i - 1])
        assert tpr[i] >= (1 - share) * low[i - 1] + share * low[i + 1] - SLACK


def divergence_is_convex(loss):
    """delta falls, is convex in e^epsilon, and is at least what any event gives: 1 - e^epsilon and 0."""
    delta = [loss.delta(epsilon) for epsilon in EPSILONS]
    low = [value - value.error for value in delta]
    for (a, b), (k, _) in zip(pairwise(range(len(delta))), pairwise(EPSILONS), strict=True):
        assert low[b] <= delta[a] + SLACK
        assert delta[a] >= 1 - exp(k) - SLACK
    for i in range(1, len(EPSILONS) - 1):
        left, here, right = (exp(epsilon) for epsilon in EPSILONS[i - 1 : i + 2])
        share = (here - left) / (right - left)
        assert low[i] <= (1 - share) * delta[i - 1] + share * delta[i + 1] + SLACK


def epsilon_and_delta_are_inverse(loss):
    for delta in (1e-12, 1e-5, 0.01):
        epsilon = loss.epsilon(delta)
        assert epsilon >= 0
        if epsilon < inf:
            assert loss.delta(epsilon) <= delta * (1 + 1e-9)
        if 0 < epsilon < inf:
            tighter = (epsilon - epsilon.error) * (1 - 1e-6)
            assert loss.delta(tighter) + SLACK * delta >= delta or loss.delta(tighter).error > 0.01 * delta
    assert loss.epsilon(1e-12) >= loss.epsilon(1e-5) >= loss.epsilon(0.01)


def all_invariants(mechanism, adjacency):
    loss = dn.privacy_loss(mechanism, adjacency)
    probabilities_are_probabilities(loss)
    trade_off_is_concave(loss)
    divergence_is_convex(loss)
    epsilon_and_delta_are_inverse(loss)


@settings(max_examples=60)
@given(closed_forms, adjacencies)
def test_closed_forms(mechanism, adjacency):
    all_invariants(mechanism, adjacency)


@settings(max_examples=20)
@given(trainings, adjacencies)
def test_trainings(mechanism, adjacency):
    loss = dn.privacy_loss(mechanism, adjacency)
    probabilities_are_probabilities(loss)
    trade_off_is_concave(loss)
    divergence_is_convex(loss)


@settings(max_examples=12)
@given(mixed, adjacencies)
def test_unlike_releases(mechanism, adjacency):
    loss = dn.privacy_loss(mechanism, adjacency)
    probabilities_are_probabilities(loss)
    divergence_is_convex(loss)


def no_better(hidden, shown):
    """Every score of `hidden` is at most that of `shown`."""
    assert hidden.advantage() - hidden.advantage().error <= shown.advantage() + 1e-15
    assert hidden.delta(0.02) - hidden.delta(0.02).error <= shown.delta(0.02) + 1e-15
    assert hidden.tpr(0.01) - hidden.tpr(0.01).error <= shown.tpr(0.01) + 1e-15


@settings(max_examples=12)
@given(spread(0.3, 30.0), spread(1e-5, 0.5), steps(10**6), spread(1.0001, 3.0), adjacencies)
def test_more_noise_fewer_steps_or_a_smaller_rate_never_raise_a_score(noise, rate, count, factor, adjacency):
    def loss(noise, rate, count):
        return dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(count), adjacency)

    shown = loss(noise, rate, count)
    no_better(loss(noise * factor, rate, count), shown)
    no_better(loss(noise, rate / factor, count), shown)
    no_better(loss(noise, rate, int(count / factor)), shown)


@settings(max_examples=30)
@given(simple, spread(1e-4, 1.0), spread(1.0001, 3.0), adjacencies)
@example(dn.Laplace(1.0), 1.0, 1 / 0.9, "replace")
def test_sampling_less_never_raises_a_score(mechanism, rate, factor, adjacency):
    seldom, often = (dn.privacy_loss(mechanism.subsampled(r), adjacency) for r in (rate / factor, rate))
    no_better(seldom, often)
    no_better(often, dn.privacy_loss(mechanism, adjacency))


@pytest.mark.parametrize(
    "mechanism",
    [
        dn.Gaussian(1.0),
        dn.Laplace(1.0),
        dn.RandomizedResponse(1.0, 4),
        dn.ApproximateDP(1.0, 0.1),
        dn.TotalVariation(0.2),
        dn.RandomizedResponse(0.3).composed(20),
    ],
    ids=repr,
)
def test_symmetric_pairs(mechanism):
    """The trade-off curve mirrored at the anti-diagonal is itself: tpr(1 - tpr(f)) = 1 - f."""
    loss = dn.privacy_loss(mechanism, adjacency="add-remove")
    for fpr in (0.05, 0.11, 0.3):
        assert loss.tpr(1 - loss.tpr(fpr)) == pytest.approx(1 - fpr, abs=1e-10)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_both_directions_are_covered(adjacency):
    """A score is at least that of either direction, so the curve is symmetric although the pair is not."""
    loss = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.1).composed(30), adjacency)
    for k in (-0.3, 0.0, 0.7):
        one, other = loss.pair.hockey_stick(k), loss.pair.reverse().hockey_stick(k)
        assert loss.delta(k) == pytest.approx(max(one, other), rel=1e-12)
    for fpr in (0.05, 0.3):
        assert loss.tpr(1 - loss.tpr(fpr)) == pytest.approx(1 - fpr, abs=1e-9)


def test_advantage_is_the_best_gap_of_the_curve():
    for mechanism in (dn.Gaussian(1.0).subsampled(0.1).composed(30), dn.Laplace(1.0), dn.Gaussian(2.0)):
        loss = dn.privacy_loss(mechanism, adjacency="add-remove")
        fpr, tpr = loss.roc(101)
        assert (tpr - fpr).max() == pytest.approx(loss.advantage(), rel=1e-3)
        assert (tpr - fpr).max() <= loss.advantage() + SLACK


def test_the_hull_of_both_directions_is_straight_between_slopes_of_one():
    """At fpr .1 one direction alone has .1968; searching for its threshold took 2 s and was 1e-3 off."""
    loss = dn.privacy_loss(dn.Gaussian(0.19).subsampled(4.865e-4).composed(235), "add-remove")
    for fpr in (0.1, 0.3, 0.8):
        assert loss.tpr(fpr) == pytest.approx(fpr + loss.advantage(), abs=1e-14)
        assert loss.tpr(fpr).error < 1e-9


def test_roc_is_a_curve_from_end_to_end():
    fpr, tpr = dn.privacy_loss(dn.Gaussian(1.0)).roc(51)
    assert fpr[0] == 0
    assert fpr[-1] == tpr[-1] == 1
    assert np.all(np.diff(fpr) > 0)
    assert np.all(np.diff(tpr) >= 0)
    with pytest.raises(ValueError, match="points"):
        dn.privacy_loss(dn.Gaussian(1.0)).roc(2)


def test_ppv_without_false_accusations():
    """At fpr 0 only outputs that prove membership are left; else the most telling output."""
    assert dn.privacy_loss(dn.ApproximateDP(1.0, 0.1)).ppv(0.0, 0.2) == 1
    assert dn.privacy_loss(dn.Gaussian(1.0)).ppv(0.0, 0.2) == 1
    assert dn.privacy_loss(dn.RandomizedResponse(log(3))).ppv(0.0, 0.2) == pytest.approx(3 * 0.2 / (3 * 0.2 + 0.8))


def test_ppv_is_bayes_of_the_rates():
    loss = dn.privacy_loss(dn.Gaussian(0.8))
    for fpr, prior in ((1e-4, 0.01), (0.1, 0.5)):
        tpr = loss.tpr(fpr)
        assert loss.ppv(fpr, prior) == pytest.approx(prior * tpr / (prior * tpr + (1 - prior) * fpr), rel=1e-14)


def test_belief_of_a_pure_guarantee():
    """Bernau 2021, Theorem 2: e^eps / (1 + e^eps) at prior 1/2, never exceeded."""
    for epsilon in (0.1, 1.0, 5.0):
        assert dn.privacy_loss(dn.ApproximateDP(epsilon)).belief(0.0) == pytest.approx(1 / (1 + exp(-epsilon)))
        assert dn.privacy_loss(dn.RandomizedResponse(epsilon)).belief(1e-9) == pytest.approx(1 / (1 + exp(-epsilon)))


def test_belief_falls_with_failure_and_rises_with_prior():
    loss = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), adjacency="add-remove")
    by_failure = [loss.belief(failure) for failure in (1e-9, 1e-5, 0.01, 0.2)]
    assert sorted(by_failure, reverse=True) == by_failure
    by_prior = [loss.belief(1e-5, prior) for prior in (0.0, 0.01, 0.5, 0.9, 1.0)]
    assert sorted(by_prior) == by_prior
    assert by_prior[0] == 0
    assert by_prior[-1] == 1


def test_quantile_and_exceedance_are_inverse():
    loss = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), adjacency="add-remove")
    for failure in (1e-8, 1e-3, 0.2, 0.7):
        assert loss.exceedance(loss.quantile(1 - failure)) == pytest.approx(failure, rel=1e-7)


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_nothing_is_learnt_where_nothing_is_open(prior):
    loss = dn.privacy_loss(dn.Gaussian(1.0))
    assert loss.accuracy(prior) == 1
    assert loss.belief(1e-5, prior) == prior
    assert loss.ppv(0.1, prior) == prior


def test_posterior():
    assert dn.posterior(log(3), 0.5) == pytest.approx(0.75)
    assert dn.posterior(inf, 0.1) == 1
    assert dn.posterior(-inf, 0.1) == 0
    assert dn.posterior(-2000.0, 0.5) == pytest.approx(0.0, abs=1e-300)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda loss: loss.epsilon(-0.1), "delta"),
        (lambda loss: loss.epsilon(float("nan")), "delta"),
        (lambda loss: loss.delta(inf), "epsilon"),
        (lambda loss: loss.delta("1"), "epsilon"),
        (lambda loss: loss.tpr(1.5), "fpr"),
        (lambda loss: loss.ppv(-0.1, 0.5), "fpr"),
        (lambda loss: loss.ppv(0.1, 2), "prior"),
        (lambda loss: loss.accuracy(-1), "prior"),
        (lambda loss: loss.belief(2, 0.5), "delta"),
        (lambda loss: loss.belief(0.1, 1.5), "prior"),
        (lambda loss: loss.quantile(1.1), "p"),
    ],
)
def test_a_refused_question_names_its_argument(ask, named):
    with pytest.raises(ValueError, match=f"^{named} must be"):
        ask(dn.privacy_loss(dn.Gaussian(1.0)))


# Gaussian releases at delta 1e-5 by their mu: success at baselines 1/10, 1/100, 1/1000 and 1e-6 (to the digits given)
@pytest.mark.parametrize(
    ("mu", "advantage", "successes"),
    [
        (0.2681, 0.1066, ("0.1554", "0.01978", "0.002385", "3.64e-6")),
        (0.9249, 0.3563, ("0.3607", "0.08054", "0.01518", "6.45e-5")),
        (1.6660, 0.5952, ("0.6497", "0.2545", "0.07719", "0.00101")),
    ],
)
def test_success_of_re_identification(mu, advantage, successes):
    loss = dn.privacy_loss(dn.GaussianDP(mu))
    for baseline, printed in zip((0.1, 0.01, 1e-3, 1e-6), successes, strict=True):
        assert loss.success(baseline) == pytest.approx(float(printed), rel=3e-3)
        assert loss.success(baseline) == loss.tpr(baseline) >= baseline
    assert loss.advantage() == pytest.approx(advantage, abs=2e-4)
    worst = (1 - loss.advantage()) / 2  # where the gain over the baseline is the advantage
    assert loss.success(worst) - worst == pytest.approx(loss.advantage(), abs=1e-9)
    assert all(loss.success(baseline) - baseline <= loss.advantage() + 1e-12 for baseline in (0.01, 0.2, 0.5, 0.9))


def test_one_of_wyomings_people_in_the_census():
    """US Census 2020, state level: mu 1.4143, one of 582,328 people."""
    assert dn.privacy_loss(dn.GaussianDP(1.4143)).success(1 / 582_328) == pytest.approx(6.2e-4, rel=0.01)
