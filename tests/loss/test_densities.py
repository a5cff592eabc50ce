"""The density of a sampled Laplace loss, integrated at any frequency (loss.moments.laplace_density)."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm

import deniable as dn
from deniable.effort import left_effort, limit_effort
from deniable.loss.pairs.laplace import LaplaceStep
from deniable.loss.pairs.subsampled import SubsampledRemove


def moment(epsilon: float, rate: float, s: complex) -> complex:
    """E_Q[e^{sL}] of the sampled loss by 25-digit quadrature between the atoms, 24 nodes for every 8 radians."""
    with mp.workdps(25):
        e, q, point = mp.mpf(epsilon), mp.mpf(rate), mp.mpc(s)

        def mixed(loss: mp.mpf) -> mp.mpf:
            return (1 - q + q * mp.exp(loss)) ** point

        pieces = mp.linspace(-e, e, 4 + int(abs(s) * 2 * epsilon / 8))

        def weighted(loss: mp.mpf) -> mp.mpf:
            return mp.exp(-(e + loss) / 2) / 4 * mixed(loss)

        between = mp.quad(weighted, pieces, method="gauss-legendre", maxdegree=4)
        return complex(between + mixed(-e) / 2 + mp.exp(-e) / 2 * mixed(e))


@pytest.mark.parametrize(
    ("epsilon", "rate", "c", "frequency"),
    [(1.0, 0.5, 2.0, 900.0), (8.0, 0.5, 1.3, 300.0), (3.0, 0.002, -3.0, 500.0), (15.0, 0.1, 0.5, 60.0)],
)
def test_moments_at_high_frequencies(epsilon, rate, c, frequency):
    """64 nodes were taken for any frequency: they alias what turns more often."""
    points = c + 1j * np.array([0.0, frequency / 7, frequency])
    found = np.exp(SubsampledRemove(LaplaceStep(epsilon), rate).cumulant(points))
    for s, value in zip(points[1:], found[1:], strict=True):
        assert abs(value - moment(epsilon, rate, s)) <= (1e-14 + 3e-16 * abs(s) * epsilon) * abs(found[0])


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("scale", "rate", "t"), [(0.125, 0.5, 6.249), (1.0, 0.5, 0.276), (1.0, 0.5, 0.45), (0.3, 0.01, 0.004)]
)
def test_a_density_beside_a_faint_gaussian(scale, rate, t, adjacency):
    """P(L > t) = E[P(L_1 > t - L_2)] by a plain sum over the Gaussian loss L_2."""
    mechanism, mu = dn.Laplace(scale).subsampled(rate), 1e-3
    one = dn.privacy_loss(mechanism, adjacency).pair
    x, spacing = np.linspace(-9, 9, 200_001, retstep=True)
    truth = float((norm.pdf(x) * one.tails(t - mu * mu / 2 - mu * x)).sum() * spacing)
    tail = dn.privacy_loss(dn.compose(mechanism, dn.Gaussian(1 / mu)), adjacency).pair.tail(t)
    assert tail - tail.error - 1e-7 <= truth <= tail + 1e-7  # 1e-7: of the plain sum, where the tail jumps
    assert tail.error < 1e-4


def test_moments_of_a_density_count_as_effort_and_a_line_asks_once():
    """2.8 s for a belief beside sampled Laplace noise: neither nodes nor moments on the axis were counted, nor kept."""
    step, omega = SubsampledRemove(LaplaceStep(7.3), 0.21), np.array([1.0, 10.0])
    with limit_effort(10**6):
        first = step.envelope(1.37, omega, 0.0)
        left = left_effort()
        assert left < 10**6 - 1000
        assert (step.envelope(1.37, 2 * omega, 0.0) == first).all()
        assert left_effort() == left
