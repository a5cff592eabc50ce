"""Calls that `make hunt` or an outsider found, each against another route."""

from __future__ import annotations

import warnings
from math import exp, expm1, inf, log1p, sqrt

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import bdtrc, ndtr

import deniable as dn
from deniable.effort import UnresolvedError
from deniable.loss.compose.grid import Grid
from deniable.loss.moments.half_line import half_line
from deniable.upper import Upper

G, PL = dn.Gaussian, dn.privacy_loss


@pytest.mark.parametrize(
    "release",
    [
        dn.compose(dn.Laplace(10.0).composed(100), G(100.0).subsampled(0.01)),
        dn.compose(dn.Pixelization(0.062026137063276414, 4, 4).composed(20), G(2.0549).subsampled(0.014363866)),
        dn.compose(dn.ApproximateDP(0.1, 1e-6).composed(50), G(100.0).subsampled(0.5).composed(3)),
    ],
    ids=str,
)
def test_atoms_beside_a_faint_gaussian(release):
    """Their moment function comes back beyond a line's end: .37749757 +- 4e-14 was .37748864 in the first one."""
    loss = PL(release, "add-remove")
    found, proved = loss.advantage(), Grid(loss.pair.composition, 2**15).hockey_stick(0.0)
    assert found >= proved.least
    assert found.least <= proved


def test_round_off_of_large_losses_is_no_privacy():
    """K(1) came out as -.003 instead of 0, and Chernoff's bound on the advantage as .997."""
    advantage = PL(G(0.001).subsampled(1 - 1e-16).composed(10**9), "replace").advantage()
    assert advantage == 1
    assert advantage.error < 1e-9


def test_lines_that_cost_too_much_give_way_to_single_steps():
    """Half of the steps have the person, and large losses tell: 1 - 1/4. The line alone took 5 s."""
    accuracy = PL(G(0.001).subsampled(0.5).composed(2), "replace").accuracy(0.5)
    assert accuracy == pytest.approx(0.875, rel=1e-9)
    assert accuracy.error < 1e-9


@pytest.mark.parametrize("step", [dn.RandomizedResponse(1.0, 100), dn.ApproximateDP(1e-15, 0.5), dn.Laplace(1e15)])
def test_rates_that_underflow(step):
    """Products of rates below the least number were NaN on the grid."""
    advantage = PL(step.subsampled(1e-153).subsampled(1e-163).composed(2), "replace").advantage()
    assert 0 <= advantage < 1e-9


def test_a_bare_guarantee_beside_a_gaussian_far_out():
    """ln 0 met an infinite round-off."""
    assert PL(dn.compose(dn.TotalVariation(0.5), G(1.0))).delta(300.0) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("make", [lambda: G(1e-7), lambda: dn.Laplace(1e16), lambda: dn.GaussianDP(1e7)])
def test_noise_beyond_all_use_is_refused(make):
    with pytest.raises(ValueError, match="must be between"):
        make()


def test_tiny_losses_on_a_fine_grid():
    """Round-off of a cell's masses hides where in the cell its losses are: 3.5117e-7 +- 4e-12 was 3.50514e-7."""
    composition = PL(G(19.887001824458792).subsampled(1e-6).composed(157), "add-remove").pair.composition
    found = Grid(composition, 2**20).hockey_stick(-1.7829247864335618e-07)
    assert found.least <= 3.505144782e-07 <= found


@pytest.mark.parametrize("sigmas", [1, 3])
@pytest.mark.parametrize("runs", [10**8, 10**9])
def test_a_grid_knows_nothing_below_its_window(runs, sigmas):
    """A billion moves reach far below the window, where a tilt hides the mass: 1.6e-36 was said of .159."""
    pair = PL(dn.Laplace(40.0).subsampled(0.08).composed(runs), "add-remove").pair
    t = pair.composition.null_mean + sigmas * sqrt(pair.composition.saddle(0.0).bend)
    assert pair.null_tail(t) >= 0.9 * ndtr(-sigmas)
    assert pair.null_tail(t).least <= 1.1 * ndtr(-sigmas)


def test_a_grid_of_a_billion_sampled_gaussians_brackets_their_line():
    """Seed 42366017910297: from 0 to 1e-309 where the line has 3e-223."""
    release = dn.compose(
        dn.TotalVariation(4e-116).composed(10), G(40.0).subsampled(0.08248131786913078).composed(10**9)
    )
    pair = PL(release, "add-remove").pair
    for t in (-1500.0, -47.84637041205487):
        found, proved = pair.null_tail(t), Grid(pair.composition, 2**14).null_tail(t)
        assert found.least <= proved
        assert found >= proved.least


def test_moments_that_overflow_are_no_exception():
    """Where k and the moments are beyond all numbers, the width of a line was an OverflowError."""
    loss = PL(G(0.001).subsampled(dn.TruncatedPoisson(0.01, 30, 1000)).composed(5), "zero-out")
    assert loss.belief(1e-3) == 1
    found = [loss.tpr(0.01), loss.advantage(), loss.ppv(0.01, 0.5)]
    taken = -expm1(5 * log1p(-0.01))  # the chance that the person takes part in some step, which is then seen
    assert found[:2] == pytest.approx([0.01 + taken, taken], rel=1e-3)
    assert found[2] == pytest.approx(found[0] / (found[0] + 0.01), rel=1e-3)


def test_a_divergence_at_an_atom_is_known():
    """Both its terms were granted the whole atom: this rate was .469 +- .469, and no number of steps kept a promise."""
    loss = PL(dn.Laplace(8.66993186296927).subsampled(0.4346216946675255), "replace")
    assert loss.tpr(9e-8) == pytest.approx(9e-8 * exp(loss.pair.largest), rel=1e-6)
    assert loss.pair.hockey_stick(loss.pair.largest) < 1e-14


def test_the_largest_loss_of_a_sample_is_rounded():
    """Its divergence there was 0 +- 0, and is 1.4e-17: the loss itself is a little larger than its nearest number."""
    pair = PL(dn.ApproximateDP(0.06440197726307091, 0.1).subsampled(0.8895283661634382), "add-remove").pair.reverse()
    assert pair.hockey_stick(pair.largest_finite) >= 1.3916644125494223e-17


def test_a_sampled_gaussian_guarantee_beside_a_faint_gaussian():
    """Its fixed nodes did not follow fast waves: .2000000000013 +- 2e-13. By an FFT of 2^21 cells and Richardson."""
    release = dn.compose(dn.GaussianDP(0.5).subsampled(0.9).composed(9), G(80.0))
    assert PL(release, "replace").pair.tail(2.0930897057941356) == pytest.approx(0.19999991713, abs=2e-11)


def test_selection_that_never_runs_or_is_sampled():
    """TypeError: cannot compose RepeatAndSelect."""
    best = dn.RepeatAndSelect(G(2.0), 5.0)
    assert PL(best.composed(0), "add-remove").advantage() == 0
    assert PL(best.subsampled(0.1), "add-remove").advantage() == pytest.approx(0.1 * PL(best, "add-remove").advantage())


@pytest.mark.parametrize("release", [G(0.005).subsampled(0.5), G(0.005).for_any_query().subsampled(0.5)], ids=str)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_person_is_told_apart_no_more_often_than_sampled(release, adjacency):
    """epsilon(.5) was 4213 +- 4213: the divergence at 0 was .5 and a rounding."""
    assert PL(release, adjacency).epsilon(0.5) == 0
    assert PL(release, adjacency).advantage() == 0.5


def test_several_records_that_are_hardly_ever_sampled():
    """RuntimeWarning: overflow in expm1."""
    nothing = PL(G(36.8).subsampled(dn.Poisson(4e-173, records_per_person=4)), "add-remove")
    assert nothing.ppv(0.01, 0.5) == pytest.approx(0.5)
    rare = dn.compose(G(0.2).subsampled(dn.Poisson(1e-86, records_per_person=5)).composed(10**8), dn.Laplace(0.1))
    found = PL(rare, "add-remove").exceedance(9.0)
    assert found.least <= PL(dn.Laplace(0.1)).exceedance(9.0) <= found


@pytest.mark.parametrize(
    ("release", "k"),
    [
        (dn.compose(dn.Pixelization(5000.0, 1, 1).subsampled(0.5), G(1.0).subsampled(dn.FixedSize(1123, 10_000))), 1.0),
        (G(0.001).subsampled(dn.FixedSize(15, 3_000_000, replacement=True, records_per_person=2)).composed(2), 1e-10),
    ],
    ids=str,
)
def test_moments_that_cannot_be_had_leave_a_grid_its_window(release, k):
    """OverflowError: cannot convert float infinity to integer. Such steps tell whether the person takes part."""
    pair = PL(release, "replace").pair
    found = pair.hockey_stick(k)
    seen = 1 - 0.5 * (1 - 0.1123 * PL(G(1.0)).advantage()) if k == 1 else -expm1(30 * log1p(-2 / 3e6))
    assert found.least <= seen
    assert found >= 0.999 * min(seen, 0.5)


def test_an_allocation_beside_faint_noise_is_integrated():
    """.6820 +- .0029 after 5 s: looks at evenly spaced frequencies cost as much as all lines."""
    release = dn.compose(G(8.0).subsampled(dn.RandomAllocation(3)), G(3720.944874819826))
    assert PL(release, "add-remove").tpr(0.6558080669313087).error < 1e-9


def test_every_loss_is_exceeded_or_not():
    """RuntimeWarning: invalid value encountered in multiply."""
    assert PL(G(0.37).subsampled(0.42).composed(6000), "add-remove").quantile(0.0) == float("-inf")


def test_a_saddle_where_moments_overflow():
    """RuntimeWarning: invalid value in subtract. Who is drawn in a step is seen there, so both attacks are certain."""
    loss = PL(G(0.0885).subsampled(1 / 60).composed(180), "add-remove")
    never_drawn = (59 / 60) ** 180
    assert loss.tpr(0.01) == pytest.approx(1 - never_drawn + 0.01, abs=1e-4)


def test_a_saddle_that_is_infinitely_far_away():
    """OverflowError in `choose --tpr .628 --fpr .01 --sampling truncated --rate .01 --cap 20 --records 600`."""

    def release(noise: float) -> dn.Mechanism:
        return G(noise).subsampled(dn.TruncatedPoisson(rate=0.01, cap=20, records=600)).composed(30)

    loss = dn.calibrate(release, dn.TruePositiveRate(0.628, fpr=0.01), "zero-out").loss
    assert loss.tpr(0.01) == pytest.approx(1 - 0.99**30 + 0.01, abs=1e-4)  # who is drawn is seen: any noise is enough
    assert 0 < loss.belief(1e-5, 0.5) <= 1


def test_losses_beyond_a_grid():
    """OverflowError in `choose --tpr .842 --fpr .01 --sampling fixed ... --with-replacement`: now a safe bracket."""
    draws = dn.FixedSize(batch=20, records=600, replacement=True)
    found = PL(G(0.001).subsampled(draws).composed(30), "replace").epsilon(1 / 600)
    assert found.least <= found < inf
    assert found > 1000**2 / 2  # of one record that is drawn and seen, once


def test_what_left_a_window_does_not_come_back_as_a_lower_end():
    """.7000 with no error: the true law had moved out of the grid's window, and came in again at its other end."""
    found = PL(dn.Pixelization(4.0, 1, 1).composed(5_000_000), "add-remove").delta(15089674.136)
    assert found.least < 0.6989 < found < 0.701  # Edgeworth: .6989


def test_losses_put_on_a_grid_change_masses():
    """A tail of 1 with no error, where 1.6e-10 is missing: the person may never be drawn."""
    draws = dn.TruncatedPoisson(rate=0.08, cap=1, records=10)
    pair = PL(G(0.04).subsampled(draws).composed(387), "replace").pair
    truth, grid = pair.tail(7.6e-5), Grid(pair.composition).tail(7.6e-5)
    assert grid.least <= truth.least <= truth <= grid


def test_a_line_that_ends_early_knows_nothing_of_what_is_beyond():
    """1.4e-10 with an error of 4e-16: at the last frequency of the line nothing had fallen yet."""
    found = PL(G(0.17).subsampled(1e-19).composed(10), "add-remove").quantile(0.99)
    assert found.least <= 1e-18 <= found < 1e-14  # nobody can be surer than where the person takes no part in any batch


def test_jumps_that_add_nothing_beside_other_noise():
    """ValueError: zero-size array to reduction operation maximum."""
    draws = dn.FixedSize(records_per_person=4, batch=66, records=77)
    found = PL(dn.compose(G(0.3).subsampled(draws), G(1.0)), "zero-out").tpr(1e-5)
    assert found.error < 1e-5


def test_brackets_that_contradict_each_other_are_both_kept():
    """Met, they had no error at all."""
    one, other = Upper.between(0.2, 0.3), Upper.between(0.6, 0.7)
    assert (one.meet(other), one.meet(other).least) == (0.7, 0.2)
    assert Upper.between(0.2, 0.65).meet(other).least == pytest.approx(0.6)


def test_steps_are_found_when_looks_are_dear():
    """2.6 to 3.7 s: every look had used up its share, and said 1."""
    target = dn.TruePositiveRate(0.9161168186687122, 1.805004620422896e-07)
    found = dn.calibrate(
        lambda s: G(0.12882495953658055).subsampled(0.0005).composed(int(s)), target, "add-remove", "steps"
    )
    assert PL(found.mechanism, "add-remove").tpr(target.fpr).least <= target.bound
    assert 4000 < found.value < 6000


def test_outputs_that_only_the_other_side_has():
    """An advantage of 0 beside a Gaussian: below the least loss Q's mass at minus infinity was counted against P."""
    alone = dn.PmfPair((1.0, 0.0), (0.010218471147420815, 0.9897815288525792))
    loss = PL(dn.compose(alone, G(1.0).subsampled(0.5)), "add-remove")
    assert loss.advantage() >= PL(alone).advantage().least > 0.98
    for k in (-3.0, 0.0, 1.0, 3.5):  # below the least loss, 3.89, P loses nothing but e^k times what Q has left
        assert loss.pair.hockey_stick(k) == pytest.approx(1 - exp(k) * 0.010218471147420815, abs=1e-12)
    assert loss.ppv(0.5, 0.5) == pytest.approx(2 / 3)


@pytest.mark.parametrize("runs", [100, 10**5, 2 * 10**8])
def test_guarantees_of_many_runs(runs):
    """IndexError, and epsilon inf: no rate was looked at where the curve rises."""
    one = PL(dn.RepeatAndSelect(G(1.0), 1.8, 0.5).composed(runs), "add-remove")
    assert one.advantage() == 1
    assert one.ppv(0.5, 1.0) == 1
    found = PL(dn.RenyiDP(1.5, 2.7).composed(runs)).epsilon(1e-6)
    assert found.least < 2.7 * runs + 26 < found + 1
    assert found < 2.7 * runs + 26 or runs > 10**6  # there no two rates are told apart any more


def test_the_lower_end_survives_the_rounding_of_the_error():
    """5.2e-9 - 5.2e-9 was 8e-25, above the truth of 5e-25."""
    found = PL(dn.TotalVariation(6e-49).subsampled(0.1).composed(10), "add-remove").pair.reverse().hockey_stick(-5e-25)
    assert found - found.error <= 5.000000001e-25
    bracket = Upper.between(5e-25, 5.199916503657185e-09)
    assert bracket - bracket.error <= 5e-25
    with pytest.raises(ArithmeticError, match="no number on the safe side"):
        Upper.between(float("nan"), 0.5)


def test_masses_of_very_many_steps_grant_their_round_off():
    """.9999972 +- 4e-7 after 2e8 steps of very faint noise: each moment's round-off counts as often."""
    draws = dn.CyclicPoisson(records_per_person=6, rate=0.009750653754484705, bands=9)
    release = dn.compose(dn.RenyiDP(2.0, 0.05), G(0.05).subsampled(draws).composed(38529321))
    assert PL(release, "add-remove").advantage() > 1 - 1e-9


def test_losses_as_small_as_a_tiny_rate_are_not_resolved():
    """9 s: a quarter of a million panels where e^{sL} needs an s of 10^53; now the safe bracket answers."""
    with pytest.raises(UnresolvedError, match="panels needed"):
        half_line(0.27, 5.8e-54).nodes(np.array([1e53 + 1e54j]))
    loss = PL(dn.GaussianDP(0.27).subsampled(5.8e-54).composed(6000), "replace")
    found = loss.quantile(0.99)
    assert found.least <= 0 <= found < 1e-12
    assert loss.advantage() < 1e-45


@pytest.mark.parametrize(
    ("batches", "faint"),
    [
        (dn.FixedSize(8, 13), G(32.8).subsampled(dn.TruncatedPoisson(rate=2.85e-4, cap=1, records=2))),
        (dn.FixedSize(8, 13), G(50.0).subsampled(1e-3)),
        (dn.FixedSize(4, 9, replacement=True), G(32.8).subsampled(dn.TruncatedPoisson(rate=2.85e-4, cap=1, records=2))),
        (dn.FixedSize(3, 12, records_per_person=2), G(50.0).subsampled(1e-3)),
    ],
    ids=str,
)
def test_batches_of_a_fixed_size_beside_a_faint_gaussian(batches, faint):
    """.97620431 +- 1.4e-13 was .97617930, and .97614224 was too low: a line ended where one step's jumps had fallen."""
    loss = PL(dn.compose(G(0.4).subsampled(batches).composed(4), faint), "zero-out")
    found, proved = loss.advantage(), Grid(loss.pair.composition, 2**15).hockey_stick(0.0)
    assert found >= proved.least
    assert found.least <= proved


@pytest.mark.parametrize("runs", [10**6, 10**8, 10**9])
def test_masses_of_very_large_losses_grant_their_round_off(runs):
    """.99999999982 +- 2e-9, of a guarantee that allows a Gaussian of mu 10^4: masses e^{10^8 - 10^8}."""
    loss = PL(dn.ConcentratedDP(0.5).composed(runs), "add-remove")
    assert loss.advantage() >= 1 - 1e-15
    assert loss.pair.reverse().hockey_stick(1.0) >= 1 - 1e-15


@pytest.mark.parametrize(("sigma", "shift", "rate"), [(0.6812386651536846, 4, 0.9333220430501158), (0.31, 3, 0.5)])
def test_sampled_noise_on_integers_grants_the_round_off_of_its_masses(sigma, shift, rate):
    """.9259106798185553 +- 3.8e-15 was .9259106798185562."""
    with mp.workdps(40):
        logs = {x: -(mpf(x) ** 2) / (2 * mpf(sigma) ** 2) for x in range(-40, 41)}
        total = sum(mp.exp(log) for log in logs.values())
        gaps = (mp.exp(logs[x - shift]) - mp.exp(logs[x]) for x in range(-40 + shift, 41))
        truth = mpf(rate) * sum(max(gap, 0) for gap in gaps) / total
    found = PL(dn.DiscreteGaussian(sigma, shift).subsampled(rate), "add-remove").advantage()
    assert found.least <= truth <= found


@pytest.mark.parametrize(
    ("adjacency", "jumps", "rate"), [("replace", 61.5, 0.2), ("add-remove", 61.5, 0.2), ("add-remove", 0.5, 0.01)]
)
def test_jumps_of_faint_noise_are_counted(adjacency, jumps, rate):
    """.6512 +- 3e-7 was .6627: a tapered line took the sum of jumps of nearly one size for a smooth law (V1)."""
    noise, steps = 0.0013553045371233448, 323
    size = (1 / noise) ** 2 / (8 if adjacency == "replace" else 2)
    truth = float(bdtrc(int(jumps), steps, rate))
    found = PL(G(noise).subsampled(rate).composed(steps), adjacency).pair.tail(jumps * size)
    assert found >= truth * (1 - 1e-9)
    assert found.least <= truth * (1 + 1e-9)


@pytest.mark.parametrize("runs", [10**8, 10**9])
def test_a_guarantee_of_very_large_losses_has_a_finite_epsilon_at_a_tiny_delta(runs):
    """It was inf +- inf: the round-off that its masses grant is above delta."""
    orders, epsilons, delta = (1.12, 1.14), (2.0e-4, 2.8e-4), 8e-12
    found = PL(dn.RenyiDP(orders, epsilons).composed(runs), "add-remove").epsilon(delta)
    markov = runs * 2e-4 - np.log(delta) / 0.12
    assert 0.999 * markov < found <= markov * (1 + 1e-9)
    assert 0 < found.least <= found


def test_unlikely_numbers_of_a_persons_records_tell_most_far_out():
    """Numbers rarer than 2e-45 were left out, and losses exceeded with probability 4e-124 were said to be 3e-152."""
    noise, batch, records, loss = 4000.0, 31, 3286, 0.0018
    with mp.workdps(50):
        mu, odds = 2 / mpf(noise), mpf(1) / records
        weights = [mp.binomial(batch, m) * odds**m * (1 - odds) ** (batch - m) for m in range(batch + 1)]
        slope, truth = 1 + mp.expm1(loss) / (1 - weights[0]), mpf(0)
        for m in range(1, batch + 1):
            x = mp.log(slope) / (m * mu) + m * mu / 2
            own, null = mp.ncdf(m * mu - x), mp.ncdf(-x)
            truth += weights[m] * (own - slope * null + mp.exp(loss) * null / (1 - weights[0]))
    sampling = dn.FixedSize(batch=batch, records=records, replacement=True)
    found = PL(G(noise).subsampled(sampling), "zero-out").exceedance(loss)
    assert found.least <= truth <= found
    assert found < 1.001 * truth


@pytest.mark.parametrize("rho", [1e-300, 1e-39, 1e-23])
def test_a_guarantee_of_next_to_nothing_reaches_down_to_guessing(rho):
    """What round-off counts as told was said to be told for sure: 1.0000013e-9 at least, for 1e-9."""
    rate = 1e-9
    found = PL(dn.ConcentratedDP(rho), "add-remove").tpr(rate)
    assert found.least <= rate * (1 + 1e-9)
    assert rate <= found < rate * 1.01
    assert PL(dn.ConcentratedDP(rho), "add-remove").tpr(0.0).least == 0


def test_no_divergence_is_no_loss():
    """epsilon(0) was infinite."""
    for release in (dn.ConcentratedDP(0.0), dn.RenyiDP([1.5, 3.0], [0.0, 1.0]), dn.ConcentratedDP(0.0).composed(3)):
        assert PL(release, "add-remove").epsilon(0.0) == 0
        assert PL(release, "add-remove").tpr(0.01) == pytest.approx(0.01, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_losses_far_beyond_a_faint_gaussian():
    """k / mu overflowed with a warning."""
    release = dn.compose(dn.RandomizedResponse(1e6).composed(2), G(1e15).composed(9), G(1e15).subsampled(0.1))
    assert PL(release, "zero-out").pair.tail(1e300) == 0


def test_a_cut_batch_that_keeps_nobody_to_all_numbers_needs_no_warning() -> None:
    """Whoever is drawn into a batch that is cut stays with a probability that underflows to 0."""
    release = G(2.0).subsampled(dn.TruncatedPoisson(rate=1e-5, cap=64, records=100)).composed(30)
    uncut = G(2.0).subsampled(1e-5).composed(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PL(release, "zero-out").advantage() == pytest.approx(PL(uncut, "zero-out").advantage(), rel=1e-9)
