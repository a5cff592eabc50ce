"""Stated errors of single steps cover the truth to the last digit: exact parameters, many digits, no tolerance."""

from __future__ import annotations

from math import exp, log

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mpf

import deniable as dn
from deniable.loss.compose.grid import Grid
from deniable.upper import Upper

G, PL = dn.Gaussian, dn.privacy_loss


def base_tails(base: dn.Mechanism, t: mpf) -> tuple[mpf, mpf]:
    """P0(L > t) and Q0(L > t)."""
    match base:
        case dn.Gaussian(noise):
            mu = 1 / mpf(noise)
            return mp.ncdf(mu / 2 - t / mu), mp.ncdf(-mu / 2 - t / mu)
        case dn.Laplace(scale):
            epsilon = 1 / mpf(scale)
            if abs(t) >= epsilon:
                return (mpf(0), mpf(0)) if t > 0 else (mpf(1), mpf(1))
            return 1 - mp.exp((t - epsilon) / 2) / 2, mp.exp(-(t + epsilon) / 2) / 2
        case dn.ApproximateDP(epsilon, delta):
            high = (1 - mpf(delta)) / (1 + mp.exp(-mpf(epsilon)))
            low = high * mp.exp(-mpf(epsilon))
            up, down = mpf(epsilon) > t, -mpf(epsilon) > t
            return delta + high * up + low * down, low * up + high * down
    raise TypeError(base)


def tails(base: dn.Mechanism, rate: mpf, way: str, t: mpf) -> tuple[mpf, mpf]:
    """P(L > t) and Q(L > t) of one sampled step; `way` is remove, add or replace."""
    if way == "replace" and isinstance(base, dn.Gaussian):
        return exchanged_tails(1 / mpf(base.noise), rate, t)
    inside = 1 + mp.expm1(t if way == "remove" or (way == "replace" and t >= 0) else -t) / rate
    if way == "remove" or (way == "replace" and t >= 0):
        p, q = base_tails(base, mp.log(inside)) if inside > 0 else (mpf(1), mpf(1))
        return (1 - rate) * q + rate * p, q
    if inside <= 0:
        return mpf(0), mpf(0)
    q, p = base_tails(base, -mp.log(inside))  # the base is symmetric: Q0(L < t) = P0(L > -t)
    return q, (1 - rate) * q + rate * p


def exchanged_tails(mu: mpf, rate: mpf, t: mpf) -> tuple[mpf, mpf]:
    scale, rest = rate * mp.exp(-(mu**2) / 8), (1 - rate) * mp.expm1(t)
    root = mp.sqrt(rest**2 + 4 * scale**2 * mp.exp(t))
    x = 2 / mu * mp.log((rest + root) / (2 * scale) if rest >= 0 else 2 * scale * mp.exp(t) / (root - rest))
    return tuple((1 - rate) * mp.ncdf(-x) + rate * mp.ncdf(sign * mu / 2 - x) for sign in (1, -1))


def covers(found: Upper, truth: mpf) -> bool:
    truth = min(truth, mpf(1))  # but for the last of 120 digits
    return bool(mpf(float(found)) - mpf(found.error) <= truth + mpf("1e-300") and truth <= float(found) + mpf("1e-300"))


powers = st.floats(-1, 1)
bases = st.one_of(
    powers.map(lambda x: G(10 ** (2 * x))),
    powers.map(lambda x: dn.Laplace(10 ** (2.3 * x))),
    st.tuples(powers, st.sampled_from([0.0, 1e-9, 0.3])).map(
        lambda both: dn.ApproximateDP(10 ** (2 * both[0]), both[1])
    ),
)
rates = st.one_of(st.floats(1e-6, 0.999), st.sampled_from([1e-100, 0.5, 1 - 1e-9]), st.floats(-60, -2).map(exp))


@given(
    base=bases,
    rates=st.lists(rates, min_size=1, max_size=3),
    way=st.sampled_from(["remove", "add", "replace"]),
    share=powers,
)
@settings(max_examples=60, deadline=None)
def test_errors_of_one_sampled_step_cover_the_truth(base, rates, way, share):
    release, exact = base, mpf(1)
    with mp.workdps(120):
        for rate in rates:
            release, exact = release.subsampled(rate), exact * mpf(rate)
        pair = PL(release, "replace" if way == "replace" else "add-remove").pair
        pair = pair.reverse() if way == "add" else pair
        size = (
            1 / base.noise**2
            if isinstance(base, dn.Gaussian)
            else 1 / base.scale
            if isinstance(base, dn.Laplace)
            else 3
        )
        k = share * pair.scale if abs(share) < 0.5 else share * size + float(mp.log(exact))
        assume(abs(k) < 700 and exact > 1e-200)
        p, q = tails(base, exact, way, mpf(k))
        assert covers(pair.tail(k), p)
        assert covers(pair.null_tail(k), q)
        assert covers(pair.hockey_stick(k), max(p - mp.exp(mpf(k)) * q, mpf(0)))


@pytest.mark.parametrize("noise", [0.001115805713701278, 0.0142, 0.504])
@pytest.mark.parametrize("sigmas", [-20.0, -1.0, 0.1, 1.1, 15.0])
def test_errors_of_large_shifts_cover_the_truth(noise, sigmas):
    """The arguments of Gaussian tails are rounded: 2e-15 was claimed where 2e-14 is right."""
    k = 0.5 / noise**2 + sigmas / noise
    pair = PL(G(noise)).pair
    with mp.workdps(60):
        p, q = base_tails(G(noise), mpf(k))
        assert covers(pair.tail(k), p)
        assert covers(pair.null_tail(k), q)
        assert covers(pair.hockey_stick(k), p - mp.exp(mpf(k)) * q)


def test_divergences_far_above_700_under_replace():
    """The threshold of the noise was held at a loss of 1400, and e^k at e^700."""
    pair = PL(G(0.01).subsampled(0.5), "replace").pair
    with mp.workdps(100):
        for k in (1000.0, 3000.0, 5100.0):
            p, q = exchanged_tails(mpf(1) / mpf(0.01), mpf(0.5), mpf(k))
            assert covers(pair.tail(k), p)
            assert covers(pair.hockey_stick(k), p - mp.exp(mpf(k)) * q)


def test_rare_samples_of_large_losses_keep_their_digits():
    """ln(1 - rate + rate e^L) was rounded to 0, or to 1e-15, from L = 30 on."""
    pair = PL(dn.RandomizedResponse(44.0, 3).subsampled(1e-30), "replace").pair
    assert pair.largest == pytest.approx(1e-30 * exp(44), rel=1e-9)
    assert pair.tail(0.0) > 1e-20


def test_atoms_beside_a_faint_gaussian_band_by_band():
    """Bands took the end of a line from sparse frequencies: .8053195006 +- 8e-11, less than the atoms have alone."""
    atoms = dn.ApproximateDP(0.008, 1.1415851723548137e-07).composed(104027)
    alone = PL(atoms).advantage()
    both = PL(dn.compose(G(30.0).subsampled(1.8e-05), atoms), "add-remove")
    proved = Grid(both.pair.composition, 2**16).hockey_stick(0.0)
    assert both.advantage() >= alone.least
    assert proved.least <= both.advantage() <= proved * (1 + 1e-12)


def test_a_mass_of_1e_102_that_single_steps_know():
    """Seed 158229547364632: a grid said 7.6e-109."""
    pair = PL(dn.TotalVariation(8e-103).subsampled(0.0005).composed(5), "add-remove").pair.reverse()
    assert pair.tail(5e-54) == pytest.approx(4e-102, rel=1e-9)


def test_a_tilt_whose_octave_is_out_of_reach():
    """The saddle was within reach, the power of two above it was not: OverflowError on the grid."""
    step = G(7.170084574045235).subsampled(0.00013644600249231877).composed(2)
    release = dn.compose(dn.TotalVariation(2.3e-05).composed(29), step, dn.ApproximateDP(0.009907530137031939, 0.0))
    pair = PL(release, "replace").pair
    found, proved = pair.hockey_stick(0.012965), Grid(pair.composition, 2**14).hockey_stick(0.012965)
    assert proved.least <= found
    assert found.least <= proved


def test_steps_calibrated_near_one_are_few_questions():
    """From one safe step the search went on at a billion."""
    asked = []

    def release(steps):
        asked.append(steps)
        return G(0.5981).subsampled(0.03975).composed(int(steps))

    promise = dn.PositivePredictiveValue(0.2, 0.01, 0.1)
    assert dn.calibrate(release, promise, "add-remove", over="steps").value == 1
    assert max(asked) <= 1000
    assert log(len(asked)) < 4
