"""Independent routes to the same number: contour, grid, lattice, closed form, twin."""

from __future__ import annotations

from math import sqrt

import mpmath as mp
import pytest

import deniable as dn
from deniable.loss import Upper
from deniable.loss.compose.binomial import Binomial, two_losses
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import Grid
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplace, SubsampledReplaceSum
from twins import (
    AtomsTwin,
    GaussianTwin,
    LaplaceTwin,
    SampledTwin,
    composed_stick,
    gaussian_stick,
    many_answers_stick,
    response_stick,
)


def agree(a: Upper, b: Upper, slack: float = 1e-13):
    """Two brackets of the same truth overlap."""
    assert a - a.error <= b + slack * b
    assert b - b.error <= a + slack * a


KS = (-3.0, -0.2, 0.0, 0.1, 1.0, 6.0)
STEP = SubsampledRemove(GaussianStep(1.0), 0.02)


@pytest.mark.parametrize("mu", [0.05, 0.7, 4.0])
def test_contour_of_gaussians_is_the_closed_form(mu):
    contour, closed = Contour(Composition([(GaussianStep(mu / sqrt(8)), 8)])), GaussianStep(mu)
    for k in (-2 * mu, -0.1 * mu, 0.0, 0.3 * mu, 2 * mu, 12 * mu):
        assert contour.hockey_stick(k) == pytest.approx(float(gaussian_stick(mu, k)), rel=1e-10, abs=1e-300)
        agree(contour.hockey_stick(k), closed.hockey_stick(k))
        agree(contour.tail(k), closed.tail(k))
        agree(contour.null_tail(k), closed.null_tail(k))


def test_full_sampling_is_no_sampling():
    plain = dn.privacy_loss(dn.Gaussian(20.0).composed(300))
    assert (
        dn.privacy_loss(dn.Gaussian(20.0).subsampled(1.0).composed(300), adjacency="add-remove").advantage()
        == plain.advantage()
    )
    nearly = dn.privacy_loss(dn.Gaussian(20.0).subsampled(1 - 1e-9).composed(300), adjacency="add-remove")
    assert nearly.method == "contour inversion"
    assert plain.method == "closed form"
    assert nearly.advantage() == pytest.approx(plain.advantage(), rel=1e-8)
    assert nearly.epsilon(1e-6) == pytest.approx(plain.epsilon(1e-6), rel=1e-8)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_grid_and_contour_on_a_mixture(direction):
    composition = Composition([(STEP if direction == "remove" else STEP.reverse(), 500)])
    contour, grid = Contour(composition), Grid(composition)
    for k in KS[1:-1]:
        agree(contour.hockey_stick(k), grid.hockey_stick(k), slack=1e-10)
        assert contour.hockey_stick(k) == pytest.approx(grid.hockey_stick(k), rel=1e-4, abs=1e-9)
        agree(contour.tail(k), grid.tail(k), slack=1e-10)
        agree(contour.null_tail(k), grid.null_tail(k), slack=1e-10)
        assert contour.tail(k) == pytest.approx(grid.tail(k), rel=5e-2)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("k", [0.0, 0.3])
def test_contour_of_either_direction_against_the_twin(direction, k):
    step = STEP if direction == "remove" else STEP.reverse()
    truth = composed_stick([SampledTwin(1.0, 0.02, 500, direction)], k, 4.0, 0.05, 400)
    value = Contour(Composition([(step, 500)])).hockey_stick(k)
    assert truth * (1 - 1e-15) <= value
    assert value - value.error <= truth * (1 + 1e-15)


@pytest.mark.parametrize("k", [0.0, 0.5])
def test_replaced_records_against_the_twin(k):
    truth = composed_stick([SampledTwin(1.0, 0.02, 500, "replace")], k, 4.0, 0.05, 400)
    value = Contour(Composition([(SubsampledReplaceSum(1.0, 0.02), 500)])).hockey_stick(k)
    assert truth * (1 - 1e-15) <= value
    assert value - value.error <= truth * (1 + 1e-15)


@pytest.mark.parametrize("hidden", [0.0, 0.001])
def test_grid_and_lattice(hidden):
    step = AtomStep.of_guarantee(0.3, hidden)
    grid, lattice = Grid(Composition([(step, 40)])), Binomial(two_losses(step), 40)
    for k in (-1.0, 0.0, 0.5, 4.0):
        assert grid.hockey_stick(k) == pytest.approx(lattice.hockey_stick(k), rel=1e-6 if hidden == 0 else 0.01)
        truth = response_stick(0.3, 40, k, hidden)
        assert lattice.hockey_stick(k) == pytest.approx(float(truth), rel=1e-12)
        assert grid.hockey_stick(k) >= truth


@pytest.mark.parametrize("k", [0.0, 1.0, -3.0, 5.0])
def test_many_answers(k):
    loss, truth = dn.privacy_loss(dn.RandomizedResponse(0.5, 4).composed(30)), many_answers_stick(0.5, 4, 30, k)
    value = loss.delta(k)
    assert value == pytest.approx(float(truth), rel=1e-7)
    assert value >= truth
    assert value - value.error <= truth


def test_composed_laplace_against_the_twin():
    """Smoothed by a Gaussian release, so that the twin's line converges; the grid does the same sum."""
    parts = [(LaplaceStep(0.5), 4), (GaussianStep(1.0), 1)]
    truth = composed_stick([LaplaceTwin(0.5, 4), GaussianTwin(1.0)], 0.3, 2.5, 0.05, 300)
    for pair in (Contour(Composition(parts)), Grid(Composition(parts))):
        value = pair.hockey_stick(0.3)
        assert value == pytest.approx(float(truth), rel=1e-7)
        assert value >= truth * (1 - 1e-14)
        assert value - value.error <= truth


@pytest.mark.parametrize("step", [LaplaceStep(0.1), SubsampledReplace(LaplaceStep(1.0), 0.1)], ids=repr)
@pytest.mark.parametrize("k", [-0.4, 0.0, 0.2, 2.0])
def test_the_bracket_of_a_coarse_grid_holds_a_fine_one(step, k):
    coarse, fine = (Grid(Composition([(step, 100)]), points).hockey_stick(k) for points in (2**13, 2**18))
    assert coarse - coarse.error <= fine <= coarse
    assert fine.error <= 2e-5
    assert fine.error <= coarse.error / 10


def test_unlike_phases_against_the_twin():
    """Two training phases, a Laplace release and a randomized response."""
    release = dn.compose(
        dn.Gaussian(1.0).subsampled(0.01).composed(500),
        dn.Gaussian(2.0).subsampled(0.05).composed(200),
        dn.Laplace(2.0),
        dn.RandomizedResponse(0.4),
    )
    lie = 1 / (1 + mp.exp(mp.mpf(0.4)))
    twins = [
        SampledTwin(1.0, 0.01, 500),
        SampledTwin(2.0, 0.05, 200),
        LaplaceTwin(0.5),
        AtomsTwin((0.4, -0.4), (lie, 1 - lie)),
    ]
    for k in (0.0, 1.0):
        truth = composed_stick(twins, k, 4.0, 0.05, 400)
        value = dn.privacy_loss(release, adjacency="add-remove").pair.hockey_stick(k)
        assert truth * (1 - 1e-15) <= value
        assert value - value.error <= truth * (1 + 1e-14)


def test_gaussians_merge_and_order_does_not_matter():
    a, b, c = dn.Gaussian(3.0).composed(4), dn.GaussianDP(0.5), dn.Gaussian(1.5).subsampled(0.1).composed(50)
    assert dn.privacy_loss(dn.compose(a, b), adjacency="add-remove").method == "closed form"
    assert dn.privacy_loss(dn.compose(a, b), adjacency="add-remove").advantage() == pytest.approx(
        float(gaussian_stick(sqrt(4 / 9 + 0.25), 0)), rel=1e-13
    )
    one, other = (dn.privacy_loss(dn.compose(*parts), adjacency="add-remove") for parts in ((a, b, c), (c, a, b)))
    assert one.advantage() == other.advantage()
    assert one.epsilon(1e-6) == other.epsilon(1e-6)
    assert one.tpr(0.01) == other.tpr(0.01)


def test_bare_guarantees_compose_as_in_theorem_6():
    """Jia 2023, Theorem 6 (erratum 12): the worst that k releases of alpha-TVD allow is 1 - (1 - alpha)^k."""
    assert dn.privacy_loss(dn.TotalVariation(0.1).composed(5)).advantage() == pytest.approx(1 - 0.9**5, rel=1e-14)
    mixed = dn.compose(dn.TotalVariation(0.1), dn.Gaussian(1.0))
    truth = 0.1 + 0.9 * float(gaussian_stick(1.0, 0.0))
    assert dn.privacy_loss(mixed, adjacency="add-remove").advantage() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 4.6e-4, 0.02, 0.5])
def test_a_quick_look_at_one_step_changes_no_epsilon(delta, monkeypatch):
    """It says only that epsilon is not 0, without the whole composition's advantage."""
    release = dn.Gaussian(0.8).subsampled(0.001).composed(10_000)
    quick = dn.privacy_loss(release, "add-remove").epsilon(delta)
    monkeypatch.setattr(Contour, "surely_tells_more", lambda *_: False)
    assert quick == dn.privacy_loss(release, "add-remove").epsilon(delta)
    assert (quick > 0) == (dn.privacy_loss(release, "add-remove").advantage() > delta)
