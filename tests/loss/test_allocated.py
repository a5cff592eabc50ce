"""Random allocation: each record in one step of an epoch. Every route here shares nothing with the doubling."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import erf, exp, log, pi, sqrt

import numpy as np
import pytest
from scipy.special import gamma, log_ndtr, ndtr

import deniable as dn
from deniable.loss.moments import mean_law
from deniable.loss.moments.mean_law import law_of_mean
from deniable.loss.moments.panel_law import TO_COEFFICIENTS
from deniable.loss.pairs.allocated import AllocatedRemove
from deniable.scores import PrivacyLoss


def allocation(noise, steps, epochs=1, adjacency="add-remove"):
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(dn.RandomAllocation(steps)).composed(epochs), adjacency)


def call_price(mu, strike):
    """E[(Y - strike)^+], Y = e^{mu X - mu^2/2}."""
    strike = np.asarray(strike, dtype=float)
    logs = np.log(np.where(strike > 0, strike, 1.0))
    return np.where(strike > 0, ndtr(mu / 2 - logs / mu) - np.exp(logs + log_ndtr(-mu / 2 - logs / mu)), 1 - strike)


def naive_stick(mu, steps, strike):
    """E[(S - strike)^+]: the first noise on panels up to where it alone makes up the strike, the others in turn."""
    if steps == 1:
        return float(call_price(mu, strike))
    if strike <= 0:
        return 1 - strike
    end = (log(steps * strike) + mu * mu / 2) / mu
    places, shares = np.polynomial.legendre.leggauss(20)
    near = end - 0.5 ** np.arange(45)  # finer and finer: the price depends on the logarithm of the strike
    edges = np.concatenate([np.linspace(min(-12.0, end - 2), end - 1, 25)[:-1], near])
    half = np.diff(edges)[:, None] / 2
    x, weights = (edges[:-1, None] + half * (1 + places)).ravel(), (half * shares).ravel()
    first = np.exp(mu * x - mu * mu / 2)
    strikes = (steps * strike - first) / (steps - 1)
    below = call_price(mu, strikes) if steps == 2 else np.array([naive_stick(mu, steps - 1, left) for left in strikes])
    own = float((np.exp(-x * x / 2) / sqrt(2 * pi) * weights) @ below) * (steps - 1) / steps
    # beyond the end every value of the others gains: E[Y / steps + (steps - 1) / steps - strike; X > end]
    return own + float(ndtr(mu - end)) / steps + ((steps - 1) / steps - strike) * float(ndtr(-end))


@pytest.mark.parametrize(
    ("noise", "steps", "k"),
    [(noise, 2, k) for noise in (1.0, 0.4, 3.0) for k in (-0.7, 0.0, 0.4, 2.0)] + [(1.0, 3, 0.4), (0.5, 3, 1.5)],
)
def test_two_and_three_steps_by_quadrature(noise, steps, k):
    pair = allocation(noise, steps).pair
    truth = naive_stick(1 / noise, steps, exp(k))
    assert pair.hockey_stick(k) == pytest.approx(truth, rel=1e-11, abs=1e-14)
    # H(Q || P) at -k is e^-k (H(P || Q) at k) + 1 - e^-k
    assert pair.reverse().hockey_stick(-k) == pytest.approx(1 - exp(-k) * (1 - truth), rel=1e-10, abs=1e-13)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1000), (0.35, 100), (4.0, 12_345), (0.3, 100_000)])
@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_negative_moments_by_the_laplace_transform(noise, steps, power):
    """E[S^-q] = integral of z^(q-1) E[e^(-z Y / M)]^M dz / Gamma(q): M enters as a power, not by doubling."""
    mu = 1 / noise
    x = np.arange(-14.0, 14.0, 0.04)
    masses, y = np.exp(-x * x / 2) * 0.04 / sqrt(2 * pi), np.exp(mu * x - mu * mu / 2)
    u = np.arange(-75.0, 25.0, 0.04)  # z = e^u
    z = np.exp(u)
    lost = np.array([masses @ np.expm1(-s / steps * y) for s in z])
    found = float((np.exp(power * u + steps * np.log1p(np.maximum(lost, -1 + 1e-16)))).sum() * 0.04 / gamma(power))
    law = law_of_mean(mu, steps)
    assert exp(law.tilted_moments(np.array([-power]))[0, 0]) == pytest.approx(found, rel=1e-10)


def test_complex_moments_by_the_laplace_transform():
    """The same for E[S^-q], q = 1/2 + iu, on the ray z = r e^(1.2 i), where z^q hardly cancels 1 / Gamma(q)."""
    mu, steps, turn = 1 / 1.426215, 100, np.exp(1.2j)
    x = np.arange(-14.0, 14.0, 0.02)
    masses, y = np.exp(-x * x / 2) * 0.02 / sqrt(2 * pi), np.exp(mu * x - mu * mu / 2)
    log_r = np.arange(-75.0, 14.0, 0.02)
    powers = np.array([steps * np.log1p(masses @ np.expm1(-turn * r / steps * y)) for r in np.exp(log_r)])
    frequencies = np.arange(0.0, 12.0, 0.5)
    q = 0.5 + 1j * frequencies
    terms = np.exp(np.multiply.outer(q, log_r + 1.2j) + powers)
    found = terms.sum(axis=1) * 0.02 / gamma(q)
    own = np.exp(AllocatedRemove(mu, steps).cumulant(-0.5 + 1j * frequencies)).conj()
    assert np.abs(found - own).max() < 1e-10


@pytest.mark.parametrize(("noise", "steps", "epochs", "k"), [(0.8, 50, 1, 1.0), (1.0, 40, 5, 0.7), (0.5, 200, 2, 2.5)])
def test_simulation(noise, steps, epochs, k):
    """Draws from P are importance sampling for rare losses: H(k) = E_P[(1 - e^(k - L))^+]."""
    rng, mu, draws = np.random.default_rng(7), 1 / noise, 20_000
    losses = np.zeros(draws)
    for _ in range(epochs):
        x = rng.standard_normal((draws, steps))
        x[:, 0] += mu  # by symmetry the person's step may be the first one
        losses += np.log(np.exp(mu * x - mu * mu / 2).mean(axis=1))
    gains = np.maximum(-np.expm1(k - losses), 0.0)
    value = allocation(noise, steps, epochs).pair.hockey_stick(k)
    assert abs(float(value) - gains.mean()) < 4.5 * gains.std() / sqrt(draws)


PUBLISHED = [  # total variation .10; epsilon at 1e-5 of remove and add, TPR at FPR 1e-2 and 1e-3 by density and FFT
    (100, 10, 1.426215, 0.942732, 0.923333, 0.0190615, 0.00227822),
    (100, 20, 1.907073, 0.934287, 0.929402, 0.0190091, 0.00226694),
    (100, 40, 2.610518, 0.932347, 0.931116, 0.0189963, 0.00226427),
    (250, 20, 1.309428, 0.938348, 0.926081, 0.0190352, 0.00227247),
    (250, 40, 1.732809, 0.933309, 0.930217, 0.0190027, 0.0022656),
    (500, 10, 0.834432, 1.01547, 0.899174, 0.0193586, 0.00235243),
    (500, 40, 1.310146, 0.93494, 0.928755, 0.0190135, 0.00226785),
]


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_values(row):
    steps, epochs, noise, remove, add, often, rarely = row
    loss = allocation(noise, steps, epochs)
    assert loss.advantage() == pytest.approx(0.1, abs=2e-7)
    assert loss.pair.enough(1e-5) == pytest.approx(remove, rel=4e-6)
    assert loss.pair.reverse().enough(1e-5) == pytest.approx(add, rel=4e-6)
    assert loss.epsilon(1e-5) == pytest.approx(remove, rel=4e-6)
    assert loss.tpr(1e-2) == pytest.approx(often, rel=4e-6)
    assert loss.tpr(1e-3) == pytest.approx(rarely, rel=4e-6)
    assert max(loss.advantage().error, loss.epsilon(1e-5).error, loss.tpr(1e-3).error) < 1e-10


@pytest.mark.parametrize(
    ("steps", "epochs", "noise"),
    [
        *((100, 1, 0.6770), (1000, 1, 0.4520), (10**4, 1, 0.3532), (10**5, 1, 0.2970)),
        *((100, 100, 4.0400), (1000, 10, 0.7048), (10**4, 10, 0.4821), (1000, 100, 1.4289)),
    ],
)
def test_published_noise_for_total_variation(steps, epochs, noise):
    """Four digits of noise: the total variation is .10 within what the last digit is worth."""
    above, below = (allocation(noise + shift, steps, epochs).advantage() for shift in (5.1e-5, -5.1e-5))
    assert above < 0.1 < below
    assert max(above.error, below.error) < 1e-10


def test_one_step_is_no_sampling():
    whole = dn.privacy_loss(dn.Gaussian(1.3))
    assert allocation(1.3, 1).advantage() == whole.advantage() == pytest.approx(erf(1 / 1.3 / sqrt(8)))


@pytest.mark.parametrize(
    ("noise", "steps", "epochs"), [(0.37, 200, 1), (0.9, 2, 7), (1.7, 77, 50), (6.0, 31, 3), (19.0, 300, 40)]
)
def test_it_protects_more_than_no_sampling_and_both_ways_agree(noise, steps, epochs):
    loss, whole = allocation(noise, steps, epochs), dn.privacy_loss(dn.Gaussian(noise).composed(epochs))
    there, back = loss.pair.hockey_stick(0.0), loss.pair.reverse().hockey_stick(0.0)
    assert there <= whole.advantage()
    assert there == pytest.approx(float(back), rel=1e-7, abs=1e-9)
    assert there.error < 1e-8


def test_more_steps_an_epoch_and_more_noise_protect_more():
    by_steps = [allocation(1.0, steps, 20).epsilon(1e-6) for steps in (3, 10, 31, 100, 317)]
    by_noise = [allocation(noise, 100, 20).epsilon(1e-6) for noise in (0.6, 0.8, 1.2, 3.0, 10.0)]
    assert all(one > other for values in (by_steps, by_noise) for one, other in pairwise(values))


def test_the_limit_is_gaussian():
    """Many epochs of many steps: mu = sqrt(E (e^(1/noise^2) - 1) / M)."""
    noise, steps, epochs = 4.0, 2000, 5000
    mu = sqrt(epochs * np.expm1(1 / noise**2) / steps)
    assert allocation(noise, steps, epochs).advantage() == pytest.approx(erf(mu / sqrt(8)), rel=2e-5)


def test_several_turns_are_more_epochs():
    turns = dn.privacy_loss(dn.Gaussian(2.0).subsampled(dn.RandomAllocation(103, times=5)).composed(3), "zero-out")
    assert turns.epsilon(1e-5) == allocation(2.0, 20, 15).epsilon(1e-5)


@pytest.mark.parametrize(
    ("noise", "steps", "epochs"),
    [(0.5, 10**5, 1000), (0.35, 10**4, 100), (0.25, 10**5, 2), (20.0, 1000, 10**4), (0.2, 300, 1), (0.15, 7, 3)],
)
def test_extremes_are_answered_with_a_small_error(noise, steps, epochs):
    loss = allocation(noise, steps, epochs)
    for value in (loss.advantage(), loss.epsilon(1e-6), loss.tpr(1e-4), loss.belief(1e-6)):
        assert value.error <= 1e-8 * max(1.0, float(value))


def test_faint_noise_is_no_sampling():
    assert allocation(0.05, 100).advantage() == dn.privacy_loss(dn.Gaussian(0.05)).advantage()


def test_calibration_over_noise():
    mechanism = lambda noise: dn.Gaussian(noise).subsampled(dn.RandomAllocation(100)).composed(10)  # noqa: E731
    found = dn.calibrate(mechanism, dn.Advantage(0.1), "add-remove")
    assert found.value == pytest.approx(1.426215, rel=1e-6)
    assert allocation(found.value, 100, 10).advantage() <= 0.1


def test_beside_other_releases():
    """One epoch and a Gaussian release: convolve both losses on a grid."""
    epoch = dn.Gaussian(1.0).subsampled(dn.RandomAllocation(10))
    both = dn.privacy_loss(dn.compose(epoch, dn.Gaussian(2.0)), "add-remove")
    law, mu = law_of_mean(1.0, 10), 0.5
    total = sum(
        float(np.exp(log_mass) @ (np.exp(losses) * call_price(mu, np.exp(0.3 - losses))))
        for log_mass, losses in zip(law.log_masses, law.nodes, strict=True)
    )
    assert both.delta(0.3) == pytest.approx(total, rel=1e-9)


def test_refusals():
    release = dn.Gaussian(1.0).subsampled(dn.RandomAllocation(10))
    with pytest.raises(ValueError, match="replace is not proved for random allocation"):
        dn.privacy_loss(release, "replace")
    with pytest.raises(ValueError, match="adjacency"):
        dn.privacy_loss(release)
    with pytest.raises(ValueError, match="Gaussian noise on a sum, not for Laplace"):
        dn.privacy_loss(dn.Laplace(1.0).subsampled(dn.RandomAllocation(10)), "add-remove")
    with pytest.raises(ValueError, match="steps_per_epoch"):
        dn.RandomAllocation(0)
    with pytest.raises(ValueError, match="times must be at most the 3 steps"):
        dn.RandomAllocation(3, times=4)


@pytest.mark.parametrize(("noise", "steps", "times", "k"), [(1.0, 4, 2, 0.3), (0.6, 5, 2, 1.0), (1.5, 6, 3, 0.0)])
def test_several_turns_by_their_definition(noise, steps, times, k):
    """Simulated: the product over blocks that are told is the value, and all sets of steps without blocks are less."""
    x = np.random.default_rng(17).standard_normal((400_000, steps))
    ratios = np.exp(x / noise - 0.5 / noise**2)
    size = steps // times
    blocks = np.prod([ratios[:, turn * size : (turn + 1) * size].mean(axis=1) for turn in range(times)], axis=0)
    sets = np.mean([ratios[:, list(drawn)].prod(axis=1) for drawn in combinations(range(steps), times)], axis=0)
    told, untold = (np.maximum(one - np.exp(k), 0.0) for one in (blocks, sets))
    found = dn.privacy_loss(dn.Gaussian(noise).subsampled(dn.RandomAllocation(steps, times)), "add-remove").pair
    assert abs(found.hockey_stick(k) - told.mean()) < 5 * told.std() / np.sqrt(told.size)
    assert found.hockey_stick(k) > untold.mean() - 5 * untold.std() / np.sqrt(untold.size)


def test_a_turn_in_every_step_is_no_sampling():
    allocated = dn.Gaussian(2.0).subsampled(dn.RandomAllocation(5, 5))
    plain = dn.privacy_loss(dn.Gaussian(2.0).composed(5)).epsilon(1e-6)
    assert dn.privacy_loss(allocated, "zero-out").epsilon(1e-6) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("steps", [2, 3])
def test_faint_noise_is_bounded_by_no_sampling_and_near_it(steps):
    """Beyond mu = 18 against the law itself: the same advantage, and an epsilon that is larger by ln(steps) at most."""
    law = AllocatedRemove(18.2, steps)
    found = dn.privacy_loss(dn.Gaussian(1 / 18.2).subsampled(dn.RandomAllocation(steps)), "add-remove")
    assert 0 <= found.advantage() - law.hockey_stick(0.0) < 1e-8
    exact = PrivacyLoss(law).epsilon(1e-5)
    assert exact <= found.epsilon(1e-5) <= exact + np.log(steps) + 1e-6


@pytest.mark.parametrize(("mu", "steps"), [(0.05, 3), (1.0, 100), (10.0, 1), (10.0, 1000)])
def test_pieces_are_the_panels_polynomial(mu, steps):
    """The naive twin: one polynomial of degree 15 on each panel."""
    law = law_of_mean(mu, steps)
    at = np.random.default_rng(1).uniform(law.edges[0], law.edges[-1], 2000)
    place = np.clip(np.searchsorted(law.edges, at) - 1, 0, law.halves.size - 1)
    inside = (at - law.edges[place]) / law.halves[place] - 1
    coefficients = (law.values @ TO_COEFFICIENTS.T)[place].T
    whole = np.polynomial.chebyshev.chebval(inside, coefficients, tensor=False)
    np.testing.assert_allclose(law.log_density(at), whole, rtol=3e-14, atol=1e-13)


def test_panels_far_below_are_one_mass(monkeypatch):
    """The naive twin takes every panel."""
    found = law_of_mean(8.0, 50)
    monkeypatch.setattr(mean_law, "_FAR_NATS", 1e9)
    every = law_of_mean(8.0, 50)
    np.testing.assert_allclose(found.log_density(every.nodes), every.values, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize(("noise", "steps"), [(0.06, 1000), (0.07, 10**5), (0.1, 10)])
def test_faint_noise_lies_between_no_sampling_and_that_less_the_logarithm_of_steps(noise, steps):
    """Of the mean of M ratios one is the own step's: L >= L_own - ln M."""
    loss, whole = allocation(noise, steps), dn.privacy_loss(dn.Gaussian(noise), "add-remove")
    for k in np.array([0.3, 0.5, 0.8, 1.0]) / (2 * noise**2):
        found = loss.delta(float(k))
        assert whole.delta(float(k) + log(steps)).least <= found <= whole.delta(float(k))
        assert found.error < 1e-8


@pytest.mark.parametrize(
    ("noise", "steps", "k"), [(1 / 8, 100, 20.0), (1 / 8, 100, 36.0), (0.1, 1000, 30.0), (1 / 17.9, 9, 90.0)]
)
def test_the_other_direction_far_out(noise, steps, k):
    """E[1 - e^{k+L}; L < -k] panel by panel: it was a difference of numbers near e^k, .0033417 for .0032970."""
    law, pair = law_of_mean(1 / noise, steps), allocation(noise, steps).pair.reverse()
    edges = np.append(law.edges[law.edges < -k], -k)
    places, shares = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    at = edges[:-1, None] + half * (1 + places)
    truth = float((np.exp(law.log_density(at)) * -np.expm1(k + at) * half * shares).sum())
    assert truth > 0
    assert pair.hockey_stick(k) == pytest.approx(truth, rel=1e-10)
    assert pair.hockey_stick(k).error < 1e-9 * truth + 1e-99
