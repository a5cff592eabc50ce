"""Rare large losses that stand apart: brackets from single steps, against closed forms and longer ways."""

from math import exp, isfinite, log, log1p

import pytest

import deniable as dn
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import Grid
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL
from deniable.loss.pairs.subsampled import SubsampledRemove


@pytest.mark.parametrize(("noise", "rate", "steps"), [(0.05, 1e-4, 1000), (0.01, 1e-5, 10), (0.01, 1e-3, 1000)])
@pytest.mark.parametrize("fpr", [1e-6, 1e-3, 0.1, 0.9])
def test_faint_noise_is_seen_exactly_when_somebody_is_sampled(noise, rate, steps, fpr):
    """Without noise worth the name, the best attack has rate V at no false alarm, and the reversed one 1 at 1 - V."""
    found = dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(steps), adjacency="add-remove").tpr(fpr)
    truth = min(1.0, 1 - exp(steps * log1p(-rate)) + fpr)
    assert found.least - 1e-9 <= truth <= found + 1e-9
    assert found.error < 1e-9


@pytest.mark.parametrize("k", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("functional", [STICK, TAIL, NULL_TAIL])
def test_single_steps_bracket_what_the_grid_finds(functional, k, monkeypatch):
    """Also where they know little: the grid's bracket and theirs have a point in common."""
    parts = [(SubsampledRemove(LaplaceStep(20.0), 0.01), 30), (SubsampledRemove(GaussianStep(9.0), 0.02), 3)]
    grid = Grid(Composition(parts))
    monkeypatch.setattr(type(grid), "stands_apart", False)
    long_way = functional.at(grid, k)
    monkeypatch.setattr(type(grid), "stands_apart", True)
    short = grid.by_single_steps(functional, k)
    assert short.least <= long_way
    assert long_way.least <= short


@pytest.mark.parametrize(
    "release",
    [
        dn.privacy_loss(dn.Laplace(1e-5).subsampled(0.1).composed(1000), adjacency="add-remove"),
        dn.privacy_loss(dn.GaussianDP(1.0).subsampled(0.5).composed(2), "replace"),
        dn.privacy_loss(dn.Pixelization(2798.69, 1, 16).subsampled(0.71).composed(4), "replace"),
    ],
)
def test_hard_grids_have_all_scores(release):
    scores = [release.belief(1e-5), release.tpr(0.5), release.advantage(), release.ppv(0.3, 0.5), release.quantile(0.5)]
    assert all(isfinite(score) for score in scores)
    assert release.tpr(0.5).error < 0.01


def test_calibrations_that_need_no_noise_do_not_search_on_a_grid(monkeypatch):
    monkeypatch.setattr(Grid, "_compose", None)
    found = dn.calibrate(
        lambda s: dn.Laplace(s).subsampled(0.0058).composed(3),
        dn.TruePositiveRate(0.9026, 1e-8),
        adjacency="add-remove",
    )
    assert found.value == 1e-3


def test_a_question_on_a_grid_ends_on_a_coarse_one(monkeypatch):
    """Hundreds of unlike tilts would cost minutes at full size."""
    sizes, compose = [], Grid._compose
    monkeypatch.setattr(Grid, "_compose", lambda self, c, points: sizes.append(points) or compose(self, c, points))
    found = dn.calibrate(lambda s: dn.Laplace(s).composed(10), dn.Epsilon(5000.0, 1e-5))
    assert found.loss.epsilon(1e-5) <= 5000
    assert sum(sizes) < 40 * 2**18
    assert min(sizes) < 2**14


def test_a_tail_that_underflows_is_no_proof():
    """Q's tail of 1e-600 is far from nothing beside e^k: the lower end stays below the truth, 37 deviations out."""
    found = dn.privacy_loss(dn.Gaussian(0.01).subsampled(0.5).composed(10**9), adjacency="add-remove").epsilon(1e-300)
    mean, deviation = 1e9 * (2500 - log(2)), (1e9 * (0.25 * 5000**2 + 0.5 * 100**2)) ** 0.5
    assert found.least < mean + 37.1 * deviation
    assert found > mean + 37 * deviation


def test_epsilons_are_finite_where_an_atom_hides_the_law_half_way():
    """Under replace, faint noise leaves nothing but the unsampled runs half-way between P and Q."""
    found = dn.privacy_loss(dn.Gaussian(0.01).subsampled(0.5).composed(1000), "replace").epsilon(1e-5)
    mean, deviation = 1000 * 0.5 * 1250, (1000 * 0.5 * (0.5 * 1250**2 + 50**2)) ** 0.5
    assert mean + 4 * deviation < found.least <= found < mean + 4.6 * deviation


def test_the_largest_loss_of_a_sample_is_known_up_to_round_off_only():
    """At -ln(1 - rate), rounded, the divergence is 1e-20 and not nothing (40 digits; find of the hunt)."""
    loss = dn.privacy_loss(
        dn.ApproximateDP(1.0, 1.0).subsampled(0.0003).subsampled(0.4963167264914161), adjacency="add-remove"
    )
    assert loss.pair.reverse().hockey_stick(0.00014890610391105308) > 1.0795253322403275e-20
