"""A person with several records, draws with replacement, groups: quadrature, dp-accounting, explicit sums, refusals."""

from __future__ import annotations

from math import exp, inf, log1p, sqrt

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import comb, ndtr
from scipy.stats import binom, hypergeom, norm

import deniable as dn
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.sampled_steps import drawn_apart, drawn_together
from deniable.loss.pairs.several_records import SeveralRemove
from deniable.loss.pairs.subsampled import SubsampledRemove
from twins import gaussian_stick


def loss_of(noise, sampling, runs=1, adjacency="add-remove"):
    return dn.privacy_loss(dn.Gaussian(noise).subsampled(sampling).composed(runs), adjacency)


def mixture(weights, mu):
    return lambda x: norm.pdf(x[:, None] - np.arange(len(weights)) * mu) @ weights


def stick_of(p, q, k, ends):
    x = np.linspace(*ends, 100_001)
    return float(np.maximum(p(x) - exp(k) * q(x), 0.0).sum()) * (x[1] - x[0])


@pytest.mark.parametrize(("noise", "rate", "records"), [(2.0, 0.1, 2), (0.8, 0.02, 5), (3.0, 0.5, 12)])
@pytest.mark.parametrize("k", [-0.1, 0.0, 0.3, 1.4])
def test_one_poisson_batch(noise, rate, records, k):
    """The mixture over a binomial number of shifts, by quadrature of the densities."""
    own, null = mixture(binom.pmf(np.arange(records + 1), records, rate), 1 / noise), norm.pdf
    pair, ends = loss_of(noise, dn.Poisson(rate, records_per_person=records)).pair, (-9.0, 9.0 + records / noise)
    assert pair.hockey_stick(k) == pytest.approx(stick_of(own, null, k, ends), rel=1e-7, abs=1e-8)
    assert pair.reverse().hockey_stick(k) == pytest.approx(stick_of(null, own, k, ends), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(("noise", "rate", "records", "runs"), [(1.0, 0.05, 3, 10)])
def test_many_poisson_batches_against_dp_accounting(noise, rate, records, runs):
    theirs = pld.from_mixture_gaussian_mechanism(
        noise,
        list(range(records + 1)),
        list(binom.pmf(np.arange(records + 1), records, rate)),
        value_discretization_interval=5e-3,
    ).self_compose(runs)
    ours = loss_of(noise, dn.Poisson(rate, records_per_person=records), runs)
    for delta in (1e-3, 1e-6):
        value = ours.epsilon(delta)
        assert value.error < 1e-8
        assert value <= theirs.get_epsilon_for_delta(delta) * (1 + 1e-9)
        assert value == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=5e-2)


def test_one_record_is_the_usual_sample():
    several = dn.Gaussian(1.0).subsampled(dn.Poisson(0.1, records_per_person=1))
    assert several == dn.Gaussian(1.0).subsampled(0.1)
    near = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.1).group(1).composed(50), "add-remove").epsilon(1e-5)
    assert near == dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.1).composed(50), "add-remove").epsilon(1e-5)


@pytest.mark.parametrize("records", [2, 7])
def test_all_records_always_is_one_larger_shift(records):
    whole = loss_of(5.0, dn.Poisson(1.0, records_per_person=records), 3)
    shift = dn.privacy_loss(dn.Gaussian(5.0 / records).composed(3))
    assert whole.epsilon(1e-5) == pytest.approx(shift.epsilon(1e-5), rel=1e-11)
    often = loss_of(5.0, dn.Poisson(0.999, records_per_person=records), 3)
    assert often.epsilon(1e-5) == pytest.approx(whole.epsilon(1e-5), rel=1e-2)


@pytest.mark.parametrize(("mu", "rate", "records"), [(1.0, 0.05, 3), (1e-4, 0.3, 6), (8.0, 1e-9, 2), (0.2, 0.01, 60)])
def test_the_noise_of_a_loss_is_that_found_by_halving(mu, rate, records):
    """And far out, below the least loss and at infinity it is a number."""
    step = SeveralRemove(mu, rate, records)
    k = np.concatenate([step.least_loss * np.array([2.0, 1.0, 0.9, 0.1]), [0.0], np.geomspace(1e-9, 300.0, 25)])
    low, high = np.full(k.shape, -1e8), np.full(k.shape, 1e8)
    for _ in range(110):
        middle = 0.5 * (low + high)
        above = step.loss(middle) > k
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found = step.threshold(k)
    assert (found[:2] == -1e300).all()
    assert (np.abs(step.loss(found[2:]) - k[2:]) <= step.blur(k[2:])).all()
    np.testing.assert_allclose(found[2:], high[2:], rtol=1e-6, atol=1e-6)
    assert step.threshold(np.array([inf, -inf])).tolist() == pytest.approx([1e15 / (mu * records), -1e300], rel=0.5)


FIXED = [
    (dn.FixedSize(10, 100, replacement=True), binom(10, 0.01)),
    (dn.FixedSize(40, 100, replacement=True, records_per_person=3), binom(40, 0.03)),
    (dn.FixedSize(10, 100, records_per_person=4), hypergeom(100, 4, 10)),
    (dn.FixedSize(60, 100, records_per_person=50), hypergeom(100, 50, 60)),
    (dn.Poisson(0.1, records_per_person=4), binom(4, 0.1)),
]


@pytest.mark.parametrize(("sampling", "numbers"), FIXED)
@pytest.mark.parametrize("k", [0.0, 0.2, 1.0])
def test_one_batch_by_the_number_of_records_in_it(sampling, numbers, k):
    """Balle 2018, Theorem 10: sum over m of w_m H_{1 + (a - 1)/g}(N(m mu), N(0)), mirrored below 0."""
    noise, presence = 4.0, numbers.sf(0)
    inside = log1p((exp(k) - 1) / presence)
    terms = [numbers.pmf(m) * float(gaussian_stick(m / noise, inside)) for m in range(1, 61)]
    pair = loss_of(noise, sampling, adjacency="replace").pair
    assert pair.hockey_stick(k) == pytest.approx(sum(terms), rel=1e-9, abs=1e-13)
    assert pair.reverse().hockey_stick(k) == pair.hockey_stick(k)


@pytest.mark.parametrize(("sampling", "numbers"), FIXED)
def test_numbers_of_records(sampling, numbers):
    person = sampling.records_per_person
    match sampling:
        case dn.Poisson(rate):
            found = drawn_apart(person, rate)
        case dn.FixedSize(batch, records, True):
            found = drawn_apart(batch, person / records)
        case _:
            found = drawn_together(sampling.records, person, sampling.batch)
    assert found.presence == pytest.approx(numbers.sf(0), rel=1e-12)
    for number, share in found.shares():
        assert share == pytest.approx(numbers.pmf(number) / numbers.sf(0), rel=1e-9, abs=1e-40)


@pytest.mark.parametrize(("sampling", "numbers"), FIXED[:3])
def test_data_that_come_near_the_bound(sampling, numbers):
    """All other vectors -C u, the person's C u: the mixture of N(m mu, 1) against N(0, 1) is never above the bound."""
    noise, pair = 4.0, loss_of(4.0, sampling, adjacency="replace").pair
    weights = numbers.pmf(np.arange(41))
    for k in (0.0, 0.1, 0.4):
        real = stick_of(mixture(weights, 1 / noise), norm.pdf, k, (-9.0, 20.0))
        assert real <= pair.hockey_stick(k) + 1e-10
        assert pair.hockey_stick(k) <= 1.5 * real + 1e-3


def test_draws_with_replacement_composed():
    """More than without: a record may be drawn again. With ever more records they are the same."""
    for batch, records, near in ((5, 50, 2.5), (5, 5000, 2.0)):
        without = loss_of(2.0, dn.FixedSize(batch, records), 20, "replace").epsilon(1e-5)
        again = loss_of(2.0, dn.FixedSize(batch, records, replacement=True), 20, "replace").epsilon(1e-5)
        assert without < again < near * without


def test_larger_batches_than_records_are_possible_with_replacement():
    loss = loss_of(30.0, dn.FixedSize(20, 10, replacement=True), 1, "replace")
    assert 0 < loss.advantage() < dn.privacy_loss(dn.Gaussian(30.0 / 20)).advantage()
    with pytest.raises(ValueError, match="at most the 10 records"):
        dn.FixedSize(20, 10)


def test_two_records_allocated_are_bounded_by_noise_shared_out():
    """Two records over two steps, both steps by quadrature: in the same step with probability 1/2."""
    mu, k = 0.7, 0.3
    x, w = np.polynomial.legendre.leggauss(400)
    x, w = 9 * x, 9 * w
    base = norm.pdf(x)
    shift = [norm.pdf(x - m * mu) for m in range(3)]
    own = 0.25 * np.outer(shift[2], shift[0]) + 0.25 * np.outer(shift[0], shift[2]) + 0.5 * np.outer(shift[1], shift[1])
    real = float((np.outer(w, w) * np.maximum(own - exp(k) * np.outer(base, base), 0.0)).sum())
    bound = loss_of(1 / mu, dn.RandomAllocation(2, records_per_person=2)).delta(k)
    assert real <= bound <= 2 * real
    assert bound == pytest.approx(loss_of(1 / (mu * sqrt(2)), dn.RandomAllocation(2), 2).delta(k), rel=1e-10)


def test_shuffled_records_may_all_fall_into_one_batch():
    loss = loss_of(6.0, dn.Shuffled(10, records_per_person=3), 2, "zero-out")
    assert loss.epsilon(1e-5) == pytest.approx(dn.privacy_loss(dn.Gaussian(2.0).composed(2)).epsilon(1e-5), rel=1e-11)


REFUSED = [
    (dn.TruncatedPoisson(0.1, 5, 20, records_per_person=2), "zero-out", "push each other out"),
    (dn.FixedSize(5, 20, replacement=True), "add-remove", "not proved for batches of a fixed size"),
    (dn.FixedSize(5, 20, records_per_person=2), "add-remove", "not proved for batches of a fixed size"),
    (dn.RandomAllocation(5, records_per_person=2), "replace", "not proved for random allocation"),
    (dn.CyclicPoisson(0.1, 5, records_per_person=2), "replace", "not proved for cyclic"),
    (dn.Poisson(0.1, records_per_person=2000), "add-remove", "at most 1000"),
]


@pytest.mark.parametrize(("sampling", "adjacency", "reason"), REFUSED)
def test_what_is_not_proved_is_refused(sampling, adjacency, reason):
    with pytest.raises(ValueError, match=reason):
        loss_of(1.0, sampling, 2, adjacency)


@pytest.mark.parametrize(
    "build", [lambda: dn.Poisson(0.1, records_per_person=0), lambda: dn.FixedSize(2, 5, records_per_person=6)]
)
def test_numbers_that_cannot_be(build):
    with pytest.raises(ValueError, match="records_per_person"):
        build()


GROUPS = [
    (dn.Gaussian(3.0), dn.Gaussian(1.0)),
    (dn.Laplace(6.0), dn.Laplace(2.0)),
    (dn.DiscreteGaussian(4.0, 2), dn.DiscreteGaussian(4.0, 6)),
    (dn.DiscreteLaplace(4.0), dn.DiscreteLaplace(4.0, 3)),
    (dn.ExponentialMechanism(0.2), dn.ExponentialMechanism(0.2 * 3)),
    (dn.RandomizedResponse(0.5, 4), dn.ApproximateDP(1.5)),
    (dn.GaussianDP(0.1), dn.GaussianDP(0.1 * 3)),
    (dn.ConcentratedDP(0.1), dn.ConcentratedDP(0.1 * 9)),
    (dn.TotalVariation(0.5), dn.TotalVariation(1.0)),
    (dn.ApproximateDP(0.0, 0.1), dn.ApproximateDP(0.0, 0.1 * 3)),
]


@pytest.mark.parametrize(("one", "three"), GROUPS)
def test_groups_of_three(one, three):
    assert one.group(3) == three
    assert one.group(1) is one
    assert one.composed(4).group(3) == three.composed(4)


def test_the_group_bound_of_approximate_dp():
    """Vadhan 2017, Lemma 2.2: (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1))."""
    found = dn.ApproximateDP(0.4, 1e-6).group(3)
    assert found.epsilon == pytest.approx(1.2)
    assert found.delta == pytest.approx(1e-6 * (1 + exp(0.4) + exp(0.8)))
    assert dn.ApproximateDP(300.0, 1e-6).group(3).delta == 1.0


def test_groups_on_samples_are_records_of_one_person():
    assert dn.Gaussian(1.0).subsampled(0.1).group(3) == dn.Gaussian(1.0).subsampled(
        dn.Poisson(0.1, records_per_person=3)
    )
    six = dn.Gaussian(1.0).subsampled(dn.Shuffled(5, records_per_person=2)).group(3)
    assert six == dn.Gaussian(1.0).subsampled(dn.Shuffled(5, records_per_person=6))


def test_any_release_on_a_sample_of_several_records():
    """All of them or none: (1 - rate)^k is the chance of none."""
    group = dn.privacy_loss(dn.Laplace(4.0).subsampled(0.1).group(2).composed(3), "add-remove")
    twin = dn.privacy_loss(dn.Laplace(2.0).subsampled(0.19).composed(3), "add-remove")
    assert group.epsilon(1e-5) == pytest.approx(twin.epsilon(1e-5), rel=1e-9)


def test_groups_that_are_not_proved_are_refused():
    with pytest.raises(ValueError, match="no group privacy is proved here for PmfPair"):
        dn.PmfPair([0.5, 0.5], [0.4, 0.6]).group(2)


def test_more_records_never_protect_better():
    values = [loss_of(1.5, dn.Poisson(0.02, records_per_person=k), 50).epsilon(1e-5) for k in (1, 2, 3, 6, 12)]
    assert values == sorted(values)
    assert values[-1] < inf


def test_calibration_with_several_records():
    promise = dn.Epsilon(2.0, 1e-5)
    found = dn.calibrate(
        lambda noise: dn.Gaussian(noise).subsampled(dn.Poisson(0.01, records_per_person=4)).composed(500),
        promise,
        "add-remove",
    )
    assert found.loss.epsilon(1e-5) <= 2.0
    less = loss_of(found.value * 0.999, dn.Poisson(0.01, records_per_person=4), 500)
    assert less.epsilon(1e-5) > 2.0


@pytest.mark.parametrize(("noise", "rate", "size", "runs", "k"), [(2.0, 0.2, 3, 2, 0.2), (1.5, 0.05, 2, 4, 0.5)])
def test_groups_on_samples_by_simulation(noise, rate, size, runs, k):
    """The number of the group's records in a batch is binomial: the ratio of both densities, drawn under Q."""
    x = np.random.default_rng(5).standard_normal((300_000, runs)) / noise
    numbers = np.arange(size + 1)
    shares = comb(size, numbers) * rate**numbers * (1 - rate) ** (size - numbers)
    ratios = np.exp(np.multiply.outer(x, numbers) - numbers**2 / (2 * noise**2)) @ shares
    gained = np.maximum(ratios.prod(axis=1) - np.exp(k), 0.0)
    release = dn.Gaussian(noise).subsampled(rate).composed(runs).group(size)
    found = dn.privacy_loss(release, "add-remove").pair.hockey_stick(k)
    assert abs(found - gained.mean()) < 5 * gained.std() / np.sqrt(gained.size)


def test_groups_of_noise_by_their_densities():
    """A shift by three: sums and integrals of the positive part of both densities' difference."""
    at = np.arange(-400, 401)
    masses = np.exp(-(at**2) / (2 * 4.0**2))
    moved = np.exp(-((at - 3) ** 2) / (2 * 4.0**2))
    apart = np.maximum(moved - masses, 0.0).sum() / masses.sum()
    assert dn.privacy_loss(dn.DiscreteGaussian(4.0).group(3)).advantage() == pytest.approx(apart, rel=1e-12)
    assert dn.privacy_loss(dn.Laplace(5.0).group(3)).advantage() == pytest.approx(-np.expm1(-0.3), rel=1e-12)
    assert dn.privacy_loss(dn.Gaussian(5.0).group(3)).advantage() == pytest.approx(float(2 * ndtr(0.3) - 1), rel=1e-12)


@pytest.mark.parametrize("place", [1e-9, 1e-3, 0.2, 0.5, 0.8])
@pytest.mark.parametrize(
    ("mu", "rate", "records"), [(5.0, 0.999, 4), (2.0, 0.9999, 3), (0.7, 1 - 1e-9, 1), (3.0, 0.99, 6)]
)
def test_losses_of_records_that_are_hardly_ever_absent(mu, rate, records, place):
    """Of (1 - rate)^records only a few digits were left beside 1, and a divergence was 4e-9 too small."""
    mp.mp.dps = 40
    step = SeveralRemove(mu, rate, records) if records > 1 else SubsampledRemove(GaussianStep(mu), rate)
    weights = [
        mp.binomial(records, m) * mp.mpf(rate) ** m * (1 - mp.mpf(rate)) ** (records - m) for m in range(records + 1)
    ]
    x = -14 + place * (28 + records * mu)
    exact = mp.log(sum(w * mp.exp(m * mu * mp.mpf(x) - (m * mu) ** 2 / mp.mpf(2)) for m, w in enumerate(weights)))
    assert step._law.loss(np.array([x]))[0] == pytest.approx(float(exact), rel=1e-13, abs=1e-14)
    assert step._law.loss(np.array([x + 0j]))[0].real == pytest.approx(float(exact), rel=1e-13, abs=1e-14)


def test_ten_batches_of_four_records_are_told_apart():
    """.9999999968 with an error of 9e-12: two hundred standard deviations leave less than 1e-12."""
    release = dn.Gaussian(0.2).subsampled(dn.Poisson(records_per_person=4, rate=0.999)).composed(10)
    assert dn.privacy_loss(release, "zero-out").pair.hockey_stick(-0.30316573431357713) > 1 - 1e-12


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace"])
@pytest.mark.parametrize("release", [dn.Gaussian(1.0), dn.Laplace(1.0)])
def test_a_poisson_sample_of_a_poisson_sample_is_one(release, adjacency):
    """With several records it ended with a TypeError about compositions."""
    several = {"records_per_person": 3}
    once = dn.privacy_loss(release.subsampled(dn.Poisson(0.1, **several)), adjacency).advantage()
    within = release.subsampled(dn.Poisson(0.5, **several)).subsampled(0.2)
    around = release.subsampled(0.2).subsampled(dn.Poisson(0.5, **several))
    for twice in (within, around):
        found = dn.privacy_loss(twice, adjacency).advantage()
        assert once <= found <= once * (1 + 1e-12)


def test_samples_of_other_samples_are_refused():
    fixed = dn.FixedSize(batch=2, records=10)
    with pytest.raises(dn.checks.RefusedError, match="FixedSize samples is not proved"):
        dn.Gaussian(1.0).subsampled(fixed).subsampled(0.1)
    with pytest.raises(dn.checks.RefusedError, match="must be 3 as in the sample within"):
        dn.Gaussian(1.0).subsampled(dn.Poisson(0.1, records_per_person=3)).subsampled(
            dn.Poisson(0.1, records_per_person=2)
        )
