"""Samplings other than Poisson's and random allocation: closed forms, dp-accounting, published values, refusals."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.special import log_ndtr, ndtr

import deniable as dn
from deniable.answers.further_figures import epsilon_at_least, shuffled_epsilon
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import Grid
from deniable.loss.pairs.blend import Blend
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.sampled_half import SampledHalf, join_halves
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplace
from deniable.mechanisms import Adjacency
from twins import gaussian_stick


def sampled(noise, sampling, runs=1, adjacency="replace"):
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(sampling).composed(runs), adjacency)


@pytest.mark.parametrize(
    ("adjacency", "relation", "noise"),
    [("zero-out", NeighboringRelation.ADD_OR_REMOVE_ONE, 1.2), ("replace", NeighboringRelation.REPLACE_ONE, 0.6)],
)
def test_truncated_poisson_against_dp_accounting(adjacency, relation, noise):
    """Their noise is relative to C whatever the neighbours, ours to the sensitivity; they round losses up."""
    theirs = pld.from_truncated_subsampled_gaussian_mechanism(
        1000, 0.05, 60, 1.2, value_discretization_interval=1e-3, neighboring_relation=relation
    ).self_compose(20)
    ours = sampled(noise, dn.TruncatedPoisson(0.05, 60, 1000), 20, adjacency)
    for delta in (1e-3, 1e-6):
        assert ours.epsilon(delta).error < 1e-9
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-5)


def test_a_cap_that_is_never_reached_is_poisson():
    plain = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(100), "zero-out")
    for cap in (1000, 5000):
        assert sampled(1.0, dn.TruncatedPoisson(0.01, cap, 1000), 100, "zero-out").epsilon(1e-5) == plain.epsilon(1e-5)
    near = sampled(1.0, dn.TruncatedPoisson(0.01, 40, 1000), 100, "zero-out").epsilon(1e-5)
    assert plain.epsilon(1e-5) < near < 1.001 * plain.epsilon(1e-5)


@pytest.mark.parametrize(("noise", "batch", "records"), [(0.5, 10, 100), (1.0, 1, 7), (2.0, 300, 1000)])
@pytest.mark.parametrize("k", [0.0, 0.1, 0.8])
def test_one_batch_of_a_fixed_size(noise, batch, records, k):
    """H_a = g H_{1 + (a - 1) / g}."""
    rate = batch / records
    truth = rate * gaussian_stick(1 / noise, np.log1p(np.expm1(k) / rate))
    assert sampled(noise, dn.FixedSize(batch, records)).pair.hockey_stick(k) == pytest.approx(float(truth), rel=1e-10)
    pair = sampled(noise, dn.FixedSize(batch, records)).pair
    assert pair.reverse().hockey_stick(k) == pair.hockey_stick(k)


@pytest.mark.parametrize(
    ("batch", "records", "steps", "sigma", "least"),
    [(10, 10_000, 10**4, 0.78762, 16.23), (10, 1000, 1000, 1.56267, 3.960)],
)
def test_at_the_noise_whose_poisson_epsilon_is_one(batch, records, steps, sigma, least):
    poisson = dn.privacy_loss(dn.Gaussian(sigma).subsampled(batch / records).composed(steps), "add-remove")
    assert poisson.epsilon(1e-6) == pytest.approx(1.0, abs=2e-5)
    release = dn.Gaussian(sigma / 2).subsampled(dn.FixedSize(batch, records)).composed(steps)
    value = dn.privacy_loss(release, "replace").epsilon(1e-6)
    known = epsilon_at_least(release, 1e-6, Adjacency.REPLACE)
    assert known == pytest.approx(least, abs=5e-3)
    assert known < value - value.error


@pytest.mark.parametrize(("noise", "batch", "records", "steps"), [(1.0, 10, 1000, 200), (0.7, 100, 10_000, 50)])
def test_never_looser_than_renyi_accounting(noise, batch, records, steps):
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    accountant.compose(
        dp_event.SampledWithoutReplacementDpEvent(records, batch, dp_event.GaussianDpEvent(noise)), steps
    )
    assert sampled(noise, dn.FixedSize(batch, records), steps).epsilon(1e-6) < accountant.get_epsilon(1e-6)


def test_a_record_blanked_out_is_a_record_replaced():
    blank, replaced = sampled(1.0, dn.FixedSize(3, 50), 9, "zero-out"), sampled(0.5, dn.FixedSize(3, 50), 9)
    assert blank.epsilon(1e-5) == replaced.epsilon(1e-5)


def test_a_whole_batch_is_no_sampling():
    assert sampled(1.0, dn.FixedSize(50, 50), 4).epsilon(1e-5) == dn.privacy_loss(dn.Gaussian(0.5)).epsilon(1e-5)


def test_cyclic_rounds_are_poisson_at_the_rate_of_a_group():
    rounds = sampled(2.0, dn.CyclicPoisson(0.01, 8), 40, "add-remove")
    plain = dn.privacy_loss(dn.Gaussian(2.0).subsampled(0.08).composed(40), "add-remove")
    assert rounds.epsilon(1e-5) == plain.epsilon(1e-5)


SHUFFLED = [(0.5, 10.9948), (0.4, 14.4508), (0.6, 8.7721), (0.7, 6.8796), (0.8, 4.9401), (1.0, 1.8957)]


@pytest.mark.parametrize(("noise", "published"), SHUFFLED)
def test_shuffling_has_at_least(noise, published):
    """Chua et al. 2024, Figure 1 (10^4 steps, delta 1e-6)."""
    assert shuffled_epsilon(noise, 10**4, 1e-6) == pytest.approx(published, abs=6e-5)
    release = dn.Gaussian(noise).subsampled(dn.Shuffled(10**4))
    known = epsilon_at_least(release, 1e-6, Adjacency.ZERO_OUT)
    assert known >= published - 6e-5
    assert known <= dn.privacy_loss(release, "zero-out").epsilon(1e-6)


def test_shuffling_protects_no_more_than_no_sampling():
    assert shuffled_epsilon(0.5, 10**5, 1e-6) == pytest.approx(10.9738, abs=6e-5)
    passes = sampled(3.0, dn.Shuffled(100), 5, "zero-out")
    assert passes.epsilon(1e-5) == dn.privacy_loss(dn.Gaussian(3.0).composed(5)).epsilon(1e-5)
    poisson = dn.privacy_loss(dn.Gaussian(0.5).subsampled(1e-4).composed(10**4), "add-remove").epsilon(1e-6)
    assert poisson == pytest.approx(1.9532, abs=1e-4)


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.02322, 0.03132, 0.1])
@pytest.mark.parametrize("steps", [1, 9, 1000])
def test_shuffling_with_hardly_any_noise_has_a_finite_epsilon_from_below(noise: float, steps: int) -> None:
    """The event's probability was 0 in floating point, and the epsilon "at least" infinite."""
    release = dn.Gaussian(noise).subsampled(dn.Shuffled(steps))
    least = shuffled_epsilon(noise, steps, 1e-5)
    most = dn.privacy_loss(release, "zero-out").epsilon(1e-5)
    assert 0.9 * most <= least <= most


def test_a_blend_is_a_mean():
    parts = ((0.3, GaussianStep(0.7)), (0.7, SubsampledRemove(GaussianStep(1.5), 0.1)))
    blend = Blend(parts)
    k, s = np.array([-0.5, 0.0, 0.7]), 1.4 + 1j * np.array([0.0, 0.5, 2.0])
    for name in ("sticks", "tails", "null_tails"):
        mean = sum(share * getattr(step, name)(k) for share, step in parts)
        assert getattr(blend, name)(k) == pytest.approx(mean)
    assert np.exp(blend.cumulant(s)) == pytest.approx(sum(share * np.exp(step.cumulant(s)) for share, step in parts))
    around = blend.tilted_moments(np.array([1.4 - 1e-4, 1.4, 1.4 + 1e-4]))
    assert around[1, 1] == pytest.approx((around[0, 2] - around[0, 0]) / 2e-4, rel=1e-6)
    assert around[2, 1] == pytest.approx((around[1, 2] - around[1, 0]) / 2e-4, rel=1e-6)
    assert blend.reverse().hockey_stick(-0.3) == pytest.approx(1 - exp(-0.3) * (1 - blend.hockey_stick(0.3)))


@pytest.mark.parametrize(
    ("sampling", "adjacency", "why"),
    [
        (dn.FixedSize(10, 100), "add-remove", "drawn from other records"),
        (dn.TruncatedPoisson(0.1, 10, 100), "add-remove", "depends on the number of records"),
        (dn.CyclicPoisson(0.1, 4), "replace", "different steps"),
        (dn.Shuffled(10), "add-remove", "every later batch"),
    ],
)
def test_what_is_not_proved_is_refused_with_the_reason(sampling, adjacency, why):
    with pytest.raises(ValueError, match=f"adjacency {adjacency} is not proved.*{why}"):
        sampled(1.0, sampling, 1, adjacency)


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: dn.FixedSize(11, 10), "batch must be at most the 10 records"),
        (lambda: dn.TruncatedPoisson(0.1, 0, 10), "cap must be a whole number >= 1"),
        (lambda: dn.TruncatedPoisson(1.5, 3, 10), "rate must be a number from 0 to 1"),
        (lambda: dn.CyclicPoisson(0.3, 4), "rate must be at most 1 / 4 with 4 bands"),
        (lambda: dn.Shuffled(0), "steps_per_epoch must be a whole number >= 1"),
    ],
)
def test_bad_input_is_refused(build, what):
    with pytest.raises(ValueError, match=what):
        build()


def test_the_least_epsilon_with_replacement_counts_a_record_once() -> None:
    """By one step's law of the multiplicity, summed: batch 3 of 2 records, all others pulling the other way."""
    noise, delta = 2.0, 1e-3
    release = dn.Gaussian(noise).subsampled(dn.FixedSize(3, 2, replacement=True))
    known = epsilon_at_least(release, delta, Adjacency.REPLACE)
    assert known is not None
    sizes = np.array([1, 3, 3, 1]) / 8  # of drawing the record 0 to 3 times
    at = np.linspace(-8, 12, 4001)
    above = (sizes[:, None] * ndtr((np.arange(4)[:, None] - at) / noise)).sum(0)
    reached = np.log(np.maximum(above - delta, 1e-300)) - log_ndtr(-at / noise)
    assert 0 < known <= reached.max()
    without = epsilon_at_least(dn.Gaussian(noise).subsampled(dn.FixedSize(2, 2)), delta, Adjacency.REPLACE)
    assert without is not None
    assert known < without


@pytest.mark.parametrize(
    ("noise", "sampling", "steps"),
    [
        (1.0, dn.FixedSize(100, 60_000), 6000),
        (0.4, dn.FixedSize(1, 1000), 3000),
        (0.3, dn.FixedSize(3, 10_000), 6000),
        (40.0, dn.FixedSize(500, 1000), 2000),
        (1.67, dn.FixedSize(10, 1000, replacement=True), 1000),
        (3.6, dn.FixedSize(2, 2907, replacement=True), 7388),
        (2.0, dn.FixedSize(10, 1000, replacement=True, records_per_person=3), 1000),
        (1.5, dn.FixedSize(50, 1000, records_per_person=4), 300),
    ],
)
def test_many_batches_of_a_fixed_size_are_exact_and_within_a_proved_bracket(noise, sampling, steps):
    """Lines through moments on a lifted half-line against a grid of losses: no code in common but the step's tails."""
    pair = sampled(noise, sampling, steps).pair
    grid = Grid(Composition(pair.composition.parts))
    assert pair.method == "contour inversion"
    for k in (0.0, 1.5 * pair.scale, 4 * pair.scale):
        for name in ("hockey_stick", "tail", "null_tail"):
            found, known = getattr(pair, name)(k), getattr(grid, name)(k)
            assert found.error <= 1e-6 * found + 1e-14
            assert found >= known.least * (1 - 1e-9) - 1e-14
            assert found.least <= known * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize(("mu", "rate"), [(0.8, 0.005), (5.0, 0.3), (12.0, 1e-3), (0.02, 0.7)])
@pytest.mark.parametrize("s", [0.3 + 4j, 1.4 + 60j, -0.5 + 0.1j, 1.1 + 900j])
def test_moments_of_losses_above_zero_by_brute_force(mu, rate, s):
    """The lifted path against a sum over the real axis, finer than the fastest turn; and damping leaves the rest."""
    half = SampledHalf(mu, rate)
    x = mu / 2 + (np.arange(4_000_000) + 0.5) * ((mu / 2 + 14.0) / 4_000_000)
    losses = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    weights = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    truth = (weights * np.exp(s * losses)).sum()
    size = (weights * np.exp(s.real * losses)).sum()
    along = np.array([s])
    points, logs = join_halves(((1.0, half),), along)
    found = np.exp(logs + s * points).sum()
    assert abs(found - truth) <= 3e-8 * size
    assert np.log(abs(found)) <= half.log_envelope(s.real, np.array([s.imag]))[0] + 1e-9
    for decay in (2.0, 0.1):
        kept, taken = (
            join_halves(((1.0, one),), along, more)
            for one, more in ((SampledHalf(mu, rate, decay), 0.0), (half, decay))
        )
        both = sum(np.exp(logs + s * points).sum() for points, logs in (kept, taken))
        assert abs(both - found) <= 1e-10 * size


def test_damped_batches_of_a_fixed_size_stay_below_their_bound():
    """Lemma J3: on the path of the whole law the eighth power of the jump turns round, and damping grows."""
    step = SubsampledReplace(GaussianStep(1.6911), 0.49348).damp(1 / 4.5888)
    omega = np.geomspace(1.0, 1e4, 40)
    assert (step.cumulant(-3.0 + 1j * omega).real <= step.envelope(-3.0, omega, 0.0)).all()


def test_moments_that_come_from_left_out_noise_are_not_known():
    """Found by a sweep: a line through such moments was wrong by more than its error."""
    pair = sampled(3.60799298297267, dn.FixedSize(2, 2907, replacement=True), 7388).pair
    assert np.isinf(pair.composition.parts[0][0].tilted_moments(np.array([50.0]))).all()
    assert pair.hockey_stick(0.10342239737427264) == pytest.approx(3.4470329147e-11, rel=1e-7)
