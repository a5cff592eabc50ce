"""Compositions taken apart by their largest jump: the parts add up, and every route gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, reject, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.effort import UnresolvedError
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.largest_jump import bands
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplace, SubsampledReplaceSum

TRAININGS = [
    (1.0, 1e-5, 10_000, "add-remove"),
    (0.5722, 2.094e-4, 6560, "add-remove"),
    (0.7649, 3.537e-5, 50, "add-remove"),
    (1.688, 6.646e-5, 80, "replace"),
    (0.3695, 1.102e-3, 2, "add-remove"),
]


def removed(mu, rate):
    return SubsampledRemove(GaussianStep(mu), rate)


def pair(noise, rate, steps, adjacency):
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(steps), adjacency).pair


@pytest.mark.parametrize("training", TRAININGS, ids=repr)
def test_the_bands_hold_all_the_mass(training):
    found = bands(pair(*training).composition)
    assert len(found) > 2
    for pole in (0.0, 1.0):
        masses = [band.mass(pole) for band in found]
        assert min(masses) > 0
        assert sum(masses) == pytest.approx(1.0, abs=1e-14 * training[2] + 1e-13)


def test_where_nothing_is_sampled_there_are_no_bands():
    phases = dn.compose(dn.Gaussian(2.0), dn.Laplace(1.0).composed(3))
    assert not bands(dn.privacy_loss(phases, adjacency="add-remove").pair.composition)


@pytest.mark.parametrize(("k", "functional"), [(0.0, STICK), (0.02, STICK), (0.2, STICK), (0.2, TAIL)])
def test_one_line_and_many_bands_agree(k, functional):
    """Where both serve, neither leaves what the other allows."""
    both = pair(0.5722, 2.094e-4, 6560, "add-remove").reverse() if k == 0 else pair(0.7, 0.002, 3000, "add-remove")
    one, one_error = both._whole.value(functional, k)
    many, many_error = both._by_bands(functional, k)
    assert abs(one - many) <= one_error + many_error + 1e-15 * one
    assert many_error <= 1e-7 * many


@pytest.mark.parametrize("c", [-1.2, 0.5, 1.7])
def test_a_band_beside_atoms_stays_below_what_is_seen_of_it(c):
    """Lemma J3, at frequencies beyond and between those that are looked at."""
    steps = [(SubsampledReplace(GaussianStep(2.5), 0.6), 4), (removed(0.03, 3e-4), 1), (removed(0.4, 0.2), 2)]
    omega, between = np.geomspace(0.5, 1e5, 12), np.geomspace(0.5, 2.5e5, 500)
    for band in bands(Composition(steps)):
        bounds, found = band.seen_height(c, omega), band.cumulant(c + 1j * between).real
        for first, bound in zip(omega, bounds, strict=True):
            assert found[between >= first].max() <= bound + 1e-9


steps_of = st.builds(
    lambda mu, rate, kind: kind(10**mu, 10**rate),
    st.floats(-0.3, 0.7),
    st.floats(-5.0, -1.5),
    st.sampled_from([SubsampledReplaceSum, removed, lambda mu, rate: removed(mu, rate).reverse()]),
)


@settings(max_examples=60)
@given(steps_of, st.floats(0.7, 5.2), st.sampled_from([STICK, TAIL, NULL_TAIL]), st.floats(-3.0, 7.0))
@example(removed(1.3966, 0.017182), 5.1675, TAIL, 0.2)  # nearly all the mass: its round-off is that of all steps
def test_one_line_and_many_bands_agree_wherever_both_serve(step, log_steps, functional, widths):
    both = Contour(Composition([(step, int(10**log_steps))]))
    k = widths * both.scale
    assume(both.least < k < both.largest_finite and not (functional is STICK and k < 0))
    try:
        (one, one_error), (many, many_error) = both._whole.value(functional, k), both._by_bands(functional, k)
    except UnresolvedError:
        reject()
    assert abs(one - many) <= one_error + many_error + 1e-15 * abs(one)


def loss_and_density(noise, rate, adjacency, x):
    """A step's loss at noise x, and P's density there, straight from the definitions."""
    mu = 1 / noise

    def normal(at):
        return np.exp(-at * at / 2) / np.sqrt(2 * np.pi)

    if adjacency == "replace":
        with_it = (1 - rate) * normal(x) + rate * normal(x - mu / 2)
        without = (1 - rate) * normal(x) + rate * normal(x + mu / 2)
        return np.log(with_it) - np.log(without), with_it
    return np.log1p(rate * np.expm1(mu * x - mu * mu / 2)), (1 - rate) * normal(x) + rate * normal(x - mu)


def two_steps(noise, rate, adjacency, k):
    """E_P[H_1(k - L)]: the second step's divergence in closed form, the first step by a fine trapezoidal rule."""
    x = np.arange(-13.0, 13.0 + 1 / noise, 2e-4)
    loss, density = loss_and_density(noise, rate, adjacency, x)
    step = dn.privacy_loss(dn.Gaussian(noise).subsampled(rate), adjacency).pair
    return float((density * step.sticks(k - loss)).sum() * 2e-4)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(("noise", "rate"), [(0.3695, 1.1e-3), (0.6, 1e-4), (1.0, 1e-5), (2.0, 3e-4), (0.25, 0.02)])
@pytest.mark.parametrize("k", [1e-4, 0.003, 0.05, 0.7])
def test_two_steps_at_tiny_rates(noise, rate, adjacency, k):
    truth = two_steps(noise, rate, adjacency, k)
    value = pair(noise, rate, 2, adjacency).hockey_stick(k)
    assert value - value.error <= truth * (1 + 1e-7) + 1e-18
    assert value >= truth * (1 - 1e-7) - 1e-18
    if truth > 1e-14:
        assert value == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(0.05, 0.01, 1000), (0.01, 1e-3, 10), (0.02, 0.5, 10**5)])
def test_hardly_any_noise(noise, rate, steps):
    """Whoever is sampled once is seen: the advantage is at most the chance of that, and nothing fails."""
    loss = dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(steps), adjacency="add-remove")
    assert loss.advantage() == pytest.approx(-np.expm1(steps * np.log1p(-rate)), rel=1e-6)
    assert 0 < loss.tpr(1e-3) <= 1
    assert loss.belief(1e-5) > 0.99


def test_jumps_of_both_records_count():
    step = SubsampledReplaceSum(2.0, 1e-3)
    assert step.jump_probability(step.jump_size(1e-4)) == pytest.approx(1e-4, rel=1e-9)
