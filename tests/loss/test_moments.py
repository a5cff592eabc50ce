"""Sums over nodes: the quick ways against plain ones, term by term in 30 digits."""

from __future__ import annotations

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from deniable.loss.arrays import expm1
from deniable.loss.moments.nodes import Nodes, log_moments, tilted_moments
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum

STEPS = {
    "sampled": SubsampledRemove(GaussianStep(1.3), 0.02),
    "steep": SubsampledRemove(GaussianStep(4.0), 0.3),
    "damped": SubsampledRemove(GaussianStep(0.9), 0.001).damp(8.0),
    "added": SubsampledRemove(GaussianStep(1.3), 0.02).reverse(),
    "exchanged": SubsampledReplaceSum(1.0, 0.05),
    "gaussian": GaussianStep(0.4),
    "laplace": LaplaceStep(0.7),
    "response": AtomStep.of_response(1.2, 3),
}


def _panels(widths: list[float]) -> np.ndarray:
    """Sixteen Gauss-Legendre points in each of the panels that follow one another."""
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    return np.concatenate([a + (b - a) / 2 * (1 + leggauss(16)[0]) for a, b in pairwise(edges)])


FREQUENCIES = {
    "few": np.array([0.0, 0.3, 7.0, 41.0]),
    "even": 0.7 * np.arange(150),
    "even from a half": 0.7 * (np.arange(150) + 0.5),
    "panels": _panels([0.5, 0.5, 1.0, 2.0, 2.0]),
}


@pytest.mark.parametrize("spread", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("c", [-4.0, 0.0, 1.0, 60.0])
@pytest.mark.parametrize("name", FREQUENCIES)
def test_moments_on_a_line(name: str, c: float, spread: float) -> None:
    """To the last digits of the distance from 1, however near 1 the moments are."""
    generator = np.random.default_rng(1)
    losses = spread * (generator.normal(size=40) + 0.1j * generator.random(40))
    weights = generator.random(40)
    weights /= weights.sum()
    s = c + 1j * FREQUENCIES[name]
    found = log_moments(Nodes(losses, np.log(weights), float(1 - weights.sum())), s)
    for place in range(0, s.size, 17):
        with mp.workdps(30):
            terms = [w * mp.expm1(mp.mpc(s[place]) * mp.mpc(x)) for w, x in zip(weights, losses, strict=True)]
            moment = 1 + mp.fsum(terms)
            apart = abs(mp.exp(mp.mpc(found[place])) - moment)
            size = mp.fsum(abs(term) for term in terms)
        assert apart <= 2e-15 * size * (1 + abs(s[place]) * spread) + 1e-18


@pytest.mark.parametrize("name", STEPS)
def test_many_real_points_are_as_good_as_one(name: str) -> None:
    step: Step = STEPS[name]
    points = np.array([-3.0, 0.0, 0.2, 0.5, 1.0, 2.5, 11.0])
    together = step.tilted_moments(points)
    alone = np.concatenate([step.tilted_moments(np.array([c])) for c in points], axis=1)
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("c", [-3.0, 0.2, 1.0, 4.0])
def test_derivatives_at_a_real_point(name: str, c: float) -> None:
    """By differences of K on the line through the point: K(c + i w) = K + i w K' - w^2 K'' / 2 - ..."""
    step: Step = STEPS[name]
    value, slope, bend = step.tilted_moments(np.array([c]))[:, 0]
    width = 0.01 / (abs(slope) + np.sqrt(bend))
    at, near = step.cumulant(c + 1j * np.array([0.0, width]))
    assert value == pytest.approx(at.real, rel=1e-10, abs=1e-14)
    assert slope == pytest.approx(near.imag / width, rel=1e-3, abs=1e-3 * np.sqrt(bend))
    assert bend == pytest.approx(2 * (at.real - near.real) / width**2, rel=1e-2, abs=1e-13 / width**2)


@pytest.mark.parametrize("decay", [0.0, 1.0, 8.0, 30.0])
@pytest.mark.parametrize("c", [-895.6, -300.0, -3.0, 0.5, 8.0])
def test_nodes_resolve_what_moments_are_compared_with(decay: float, c: float) -> None:
    """A moment near 1 is summed as 1 + E[e^{sL} - 1] - missing: the nodes of its line must hold all but `missing`.

    At c = -895.6 half the nodes gave the moments themselves to the last digit, and the mass only to 1e-12.
    """
    step = SubsampledRemove(GaussianStep(1.37263374), 0.0035364314).damp(decay)
    for fastest in (10.0, 400.0, 1611.0, 4000.0):
        nodes = step._law._rule.nodes(c + 1j * np.linspace(0.0, fastest, 5))
        held = np.exp(nodes.log_weights).sum() + (nodes.missing or 0.0)
        assert abs(held - 1) < 2e-15


def test_what_cannot_be_had_is_infinite() -> None:
    """So far out the moment comes from noise beyond all nodes; the other points are not touched by that."""
    found = STEPS["sampled"].tilted_moments(np.array([2.0, 1e4]))
    assert found[0, 1] == np.inf
    np.testing.assert_allclose(found[:, 0], STEPS["sampled"].tilted_moments(np.array([2.0]))[:, 0], rtol=1e-14)


def test_moments_of_atoms_far_from_one() -> None:
    nodes = Nodes(np.array([-50.0, 80.0]), np.log([0.3, 0.7]))
    value, mean, variance = tilted_moments(nodes, np.array([1.0]))[:, 0]
    assert value == pytest.approx(80 + np.log(0.7), rel=1e-14)
    assert mean == pytest.approx(80.0, rel=1e-12)
    assert 0 <= variance < 1e-40


@pytest.mark.parametrize("x", [1e-12 + 1e-9j, 0.3 - 2j, -5 + 3.1415926j, 1e-3 + 1.5707963j, -40 + 500j, 20 - 1e-8j])
def test_complex_growth(x: complex) -> None:
    with mp.workdps(30):
        truth = mp.expm1(mp.mpc(x))
        assert abs(mp.mpc(complex(expm1(np.array([x]))[0])) - truth) <= 1e-15 * abs(truth) + 4e-16 * abs(mp.exp(x))
