"""Faults that the second pair of eyes found and that were repaired; each stays caught."""

from __future__ import annotations

import pytest

import deniable as dn
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import Grid
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.subsampled import SubsampledRemove
from twins import response_stick


def test_a_guarantee_gives_back_its_own_epsilon():
    """Was inf, since the exact delta was rounded up; belief(1e-5) was 1.0 for the same reason."""
    loss = dn.privacy_loss(dn.ApproximateDP(1.0, 1e-5))
    assert loss.epsilon(1e-5) == pytest.approx(1.0)
    assert loss.belief(1e-5) == pytest.approx(1 / (1 + 2.718281828459045**-1))


def test_a_huge_guarantee_composed():
    """Was a math domain error, since e^-800 underflows."""
    assert dn.privacy_loss(dn.ApproximateDP(800.0, 1e-5).composed(10)).advantage() == pytest.approx(1.0)


def test_grid_tail_is_an_upper_bound():
    """The chord keeps divergences on the safe side, not tails: a cell's mass also moves down, below t."""
    composition = Composition([(SubsampledRemove(GaussianStep(1.0), 0.02), 500)])
    truth, value = Contour(composition).tail(0.0), Grid(composition).tail(0.0)
    assert value >= truth - 1e-12


def test_grid_with_mass_at_infinity_knows_its_error():
    """`lost` adds count * hidden where 1 - (1 - hidden)^count is meant, and does not enter `error`."""
    value, truth = Grid(Composition([(AtomStep.of_guarantee(0.3, 0.001), 40)])).hockey_stick(0.5), 0.0
    truth = response_stick(0.3, 40, 0.5, 0.001)
    assert value - value.error <= truth <= value


def test_a_panelled_line_is_not_reused_for_a_far_k():
    """8e-8 with error 9e-17 where the truth is about 1e-30: the panels were refined for k = .01."""
    loss = dn.privacy_loss(dn.Gaussian(1.4401).subsampled(4.49e-05).composed(247), adjacency="add-remove")
    loss.delta(0.01)
    assert loss.delta(0.1) <= 1e-15


def test_a_grid_whose_round_off_exceeds_its_value():
    """Was a math domain error: Bernstein's bound was asked for a probability above 1."""
    assert (
        0
        <= dn.privacy_loss(dn.Laplace(6.251).subsampled(0.00259).composed(2), adjacency="add-remove").epsilon(1e-5)
        <= 2 / 6.251
    )
