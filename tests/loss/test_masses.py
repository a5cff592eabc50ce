"""Integer noise, the exponential mechanism and pairs of masses: enumerated sums, dp-accounting, published values."""

from __future__ import annotations

from itertools import product
from math import exp, inf, log, prod, sqrt, tanh

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.loss.pairs.bounded_range import BoundedRangeStep


def naive_stick(own, null, k):
    """Sum of the positive parts, output by output."""
    return sum(max(p - exp(k) * q, 0.0) for p, q in zip(own, null, strict=True))


def naive_tpr(own, null, fpr):
    """Neyman and Pearson: accuse the outputs with the largest ratios, the last one by a coin."""
    reached = 0.0
    for p, q in sorted(zip(own, null, strict=True), key=lambda pair: -pair[0] / max(pair[1], 1e-300)):
        share = 1.0 if q <= fpr else fpr / q
        reached, fpr = reached + share * p, fpr - share * q
        if fpr <= 0:
            break
    return reached


def many(masses, runs):
    """All outputs of so many runs."""
    return [prod(each) for each in product(masses, repeat=runs)]


def integer_masses(weight, shift, reach=60):
    x = np.arange(-reach, reach + 1)
    null, own = weight(np.abs(x)), weight(np.abs(x - shift))
    return own / weight(np.abs(x)).sum(), null / weight(np.abs(x)).sum()


INTEGERS = [
    (dn.DiscreteGaussian(1.3), lambda x: np.exp(-(x**2) / (2 * 1.3**2)), 1),
    (dn.DiscreteGaussian(4.0, 3), lambda x: np.exp(-(x**2) / 32), 3),
    (dn.DiscreteLaplace(2.0), lambda x: np.exp(-x / 2), 1),
    (dn.DiscreteLaplace(1.5, 4), lambda x: np.exp(-x / 1.5), 4),
]


@pytest.mark.parametrize(("mechanism", "weight", "shift"), INTEGERS)
@pytest.mark.parametrize("k", [-0.7, 0.0, 0.31, 1.1])
def test_one_integer(mechanism, weight, shift, k):
    own, null = integer_masses(weight, shift)
    loss = dn.privacy_loss(mechanism)
    assert loss.delta(k) == pytest.approx(naive_stick(own, null, k), rel=1e-10, abs=1e-15)
    for fpr in (1e-3, 0.2):
        assert loss.tpr(fpr) == pytest.approx(naive_tpr(own, null, fpr), rel=1e-10)
        assert loss.tpr(fpr).error < 1e-12


@pytest.mark.parametrize(("mechanism", "weight", "shift"), INTEGERS)
@pytest.mark.parametrize("rate", [0.05, 0.6])
def test_one_integer_on_a_sample(mechanism, weight, shift, rate):
    """Add-remove: the mixture itself. Replace: for k >= 0 the same divergence (Balle 2018), whatever the query."""
    own, null = integer_masses(weight, shift)
    mixed = rate * own + (1 - rate) * null
    for k in (0.0, 0.02, 0.5):
        truth = naive_stick(mixed, null, k)
        for adjacency in ("add-remove", "replace"):
            found = dn.privacy_loss(mechanism.subsampled(rate), adjacency).pair
            assert found.hockey_stick(k) == pytest.approx(truth, rel=1e-9, abs=1e-14)
        assert found.reverse().hockey_stick(k) == pytest.approx(truth, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("sigma", "sensitivity", "runs"), [(1.0, 1, 30), (8.0, 5, 200)])
def test_discrete_gaussian_against_dp_accounting(sigma, sensitivity, runs):
    theirs = pld.from_discrete_gaussian_mechanism(
        sigma, sensitivity=sensitivity, value_discretization_interval=1e-3
    ).self_compose(runs)
    ours = dn.privacy_loss(dn.DiscreteGaussian(sigma, sensitivity).composed(runs))
    for delta in (1e-3, 1e-7):
        value = ours.epsilon(delta)
        assert value.error < 1e-8 * value
        assert value <= theirs.get_epsilon_for_delta(delta) * (1 + 1e-9)
        assert value == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-3)


def test_census():
    """State level: rho 3.65 x .274 in ten integers. As one Gaussian 9.619; on the integers' lattice a little less."""
    rho = 3.65 * 0.274
    limit = dn.privacy_loss(dn.GaussianDP(sqrt(2 * rho)))
    assert sqrt(2 * rho) == pytest.approx(1.4143, abs=5e-5)
    assert limit.epsilon(1e-10) == pytest.approx(9.619, abs=5e-4)
    assert limit.advantage() == pytest.approx(0.5205, abs=5e-5)
    assert limit.success(1 / 582_328) == pytest.approx(6.2e-4, abs=5e-6)
    assert rho + 2 * sqrt(rho * log(1e10)) == pytest.approx(10.6, abs=5e-2)
    sigma = sqrt(10 / (2 * rho))
    ten = dn.privacy_loss(dn.DiscreteGaussian(sigma).composed(10))
    theirs = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-4).self_compose(10)
    assert 9.60 < ten.epsilon(1e-10) <= theirs.get_epsilon_for_delta(1e-10) < 9.62
    assert ten.epsilon(1e-10) == pytest.approx(theirs.get_epsilon_for_delta(1e-10), abs=2e-3)
    assert 0.5190 < ten.advantage() < 0.5206
    finer = dn.privacy_loss(dn.DiscreteGaussian(40 * sigma, 40).composed(10))
    assert finer.epsilon(1e-10) == pytest.approx(9.619, abs=5e-4)


def test_too_many_integers_are_refused():
    with pytest.raises(ValueError, match="400,000 integers"):
        dn.privacy_loss(dn.DiscreteGaussian(1e5))


def test_geometric_noise_of_sensitivity_one_is_a_response():
    assert dn.privacy_loss(dn.DiscreteLaplace(2.0)).pair == dn.privacy_loss(dn.RandomizedResponse(0.5)).pair


PMFS = st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(lambda counts: sum(counts) > 0)


@given(own=PMFS, seed=st.integers(0, 10**6), runs=st.integers(1, 4), k=st.floats(-2, 2))
def test_any_masses_composed(own, seed, runs, k):
    drawn = np.random.default_rng(seed).integers(0, 10, len(own)) + np.eye(len(own), dtype=int)[0]
    p, q = np.array(own) / sum(own), drawn / drawn.sum()
    loss = dn.privacy_loss(dn.PmfPair(p, q).composed(runs))
    forth, back = naive_stick(many(p, runs), many(q, runs), k), naive_stick(many(q, runs), many(p, runs), k)
    for pair, truth in ((loss.pair, forth), (loss.pair.reverse(), back)):
        found = pair.hockey_stick(k)
        assert found.least <= truth * (1 + 1e-9) + 1e-12
        assert truth <= found * (1 + 1e-9) + 1e-12
        assert found.error < 1e-4


def test_masses_that_never_meet():
    loss = dn.privacy_loss(dn.PmfPair([1.0, 0.0], [0.0, 1.0]))
    assert loss.advantage() == loss.delta(50.0) == loss.tpr(1e-9) == 1.0
    assert loss.epsilon(0.5) == inf


@pytest.mark.parametrize("masses", [[0.5, 0.4], [0.5, 0.6], [1.5, -0.5], [0.2, 0.3, 0.5]])
def test_bad_masses_are_refused(masses):
    with pytest.raises(ValueError, match="person"):
        dn.PmfPair(masses, [0.5, 0.5])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_the_range_is_used_up_by_the_worst_of_two_losses(epsilon):
    """H(k) is the largest over t of the pairs with losses t and t - epsilon, in both directions."""
    loss, t = dn.privacy_loss(dn.ExponentialMechanism(epsilon)), np.linspace(0, epsilon, 20_001)
    own = (exp(epsilon) - np.exp(t)) / np.expm1(epsilon)
    for k in np.array([-1.2, -0.9, -0.3, 0.0, 0.4, 0.99, 1.3]) * epsilon:
        largest = (
            own * np.maximum(1 - np.exp(k - t), 0) + (1 - own) * np.maximum(1 - np.exp(k - t + epsilon), 0)
        ).max()
        assert loss.delta(k) == pytest.approx(largest, rel=1e-6, abs=1e-12)
        assert loss.delta(k) >= largest * (1 - 1e-12)
    assert loss.advantage() == pytest.approx(tanh(epsilon / 4), rel=1e-13)


def test_a_choice_among_three():
    """A real one: utilities 0, 1, 2 that move by up to one either way; its profile is below the pair's."""
    loss = dn.privacy_loss(dn.ExponentialMechanism(1.0))
    for moves in product((-1.0, 0.0, 1.0), repeat=3):
        scores = [np.exp(0.5 * (np.arange(3) + np.array(move))) for move in ((0.0, 0.0, 0.0), moves)]
        null, own = (score / score.sum() for score in scores)
        assert np.abs(np.log(own / null)).max() <= 1
        for k in (-0.4, 0.0, 0.2, 0.7):
            assert naive_stick(own, null, k) <= loss.delta(k) + 1e-12


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_choices_composed_against_a_density_on_a_grid(rate):
    """The density e^{-l/2} cut into many masses, which is a channel: below the truth, and close."""
    epsilon, runs = 0.8, 6
    edges = np.linspace(-epsilon, epsilon, 401)
    step = BoundedRangeStep(epsilon)
    own, null = -np.diff(step.tails(edges)), -np.diff(step.null_tails(edges))
    cut = dn.PmfPair(own / own.sum(), null / null.sum())
    whole = dn.ExponentialMechanism(epsilon)
    if rate < 1:
        cut, whole = cut.subsampled(rate), whole.subsampled(rate)
    cut_loss, loss = (dn.privacy_loss(one.composed(runs), "add-remove") for one in (cut, whole))
    for k in (0.0, 0.5, 1.5):
        assert loss.delta(k) == pytest.approx(cut_loss.delta(k), rel=2e-4)
        assert loss.delta(k) >= cut_loss.delta(k).least * (1 - 1e-7)


def test_unlike_releases_together():
    """A Gaussian beside integers and a choice: less than apart, more than each alone."""
    parts = dn.Gaussian(3.0), dn.DiscreteGaussian(3.0), dn.ExponentialMechanism(0.3), dn.PmfPair([0.6, 0.4], [0.5, 0.5])
    together = dn.privacy_loss(dn.compose(*parts))
    alone = [dn.privacy_loss(part) for part in parts]
    assert max(one.advantage() for one in alone) < together.advantage() < sum(one.advantage() for one in alone)
    assert together.advantage().error < 1e-6
    assert together.epsilon(1e-5) > max(one.epsilon(1e-5) for one in alone)


@pytest.mark.parametrize(
    ("family", "promise"),
    [
        (dn.DiscreteGaussian, dn.Epsilon(1.0, 1e-6)),
        (lambda noise: dn.ExponentialMechanism(1 / noise).composed(10), dn.Belief(0.9, 1e-5)),
        (lambda noise: dn.DiscreteLaplace(noise, 2).composed(3), dn.TruePositiveRate(0.05, 0.01)),
    ],
)
def test_calibration(family, promise):
    found = dn.calibrate(family, promise)
    assert promise.score(found.loss) <= promise.bound
    less = dn.privacy_loss(family(found.value * 0.999))
    assert promise.score(less) > promise.bound
