"""One step: closed forms against quadrature of the densities, in both directions."""

from __future__ import annotations

from math import exp, inf, log

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.loss.pairs.atoms import AtomStep
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.pair import Pair
from deniable.loss.pairs.subsampled_replace import subsample_replace
from deniable.upper import Upper, upper
from twins import gaussian_stick, gaussian_tpr, laplace_densities, sampled_densities, stick_by_quadrature


def pair_of(mechanism, adjacency="add-remove"):
    return dn.privacy_loss(mechanism, adjacency).pair


def flipped(densities):
    return densities[1], densities[0]


REACH = (-14.0, -5.0, 0.0, 1.0, 5.0, 18.0)


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.3, 0.5), (5.0, 0.9), (1.0, 1e-5)])
@pytest.mark.parametrize("k", [-1.0, -0.005, 0.0, 0.004, 0.5])
def test_sampled_gaussian(noise, rate, k):
    pair, densities = pair_of(dn.Gaussian(noise).subsampled(rate)), sampled_densities(noise, rate)
    assert pair.hockey_stick(k) == pytest.approx(float(stick_by_quadrature(densities, k, REACH)), rel=1e-11, abs=5e-15)
    back = pair.reverse().hockey_stick(k)
    assert back == pytest.approx(float(stick_by_quadrature(flipped(densities), k, REACH)), rel=1e-11, abs=5e-15)


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.3, 0.5), (5.0, 0.9)])
@pytest.mark.parametrize("k", [-0.4, 0.0, 0.004, 2.0])
def test_exchanged_gaussian(noise, rate, k):
    """`replace`: both records pull, each by half the sensitivity; the pair is its own reverse."""
    pair, densities = (
        pair_of(dn.Gaussian(noise).subsampled(rate), "replace"),
        sampled_densities(noise, rate, "replace"),
    )
    truth = stick_by_quadrature(densities, k, REACH)
    assert pair.hockey_stick(k) == pytest.approx(float(truth), rel=1e-11, abs=1e-16)
    assert pair.reverse() == pair


@pytest.mark.parametrize("scale", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("k", [-1.01, -0.05, 0.0, 0.05, 0.9, 3.0])
def test_laplace(scale, k):
    ends = (-60 * scale, 0.0, 1.0, 1 + 60 * scale)
    truth = stick_by_quadrature(laplace_densities(scale), k, ends)
    assert pair_of(dn.Laplace(scale)).hockey_stick(k) == pytest.approx(float(truth), rel=1e-12, abs=1e-16)


@pytest.mark.parametrize(("scale", "rate"), [(1.0, 0.1), (0.3, 0.5)])
@pytest.mark.parametrize("k", [-0.3, 0.0, 0.05])
def test_sampled_laplace(scale, rate, k):
    p0, q0 = laplace_densities(scale)
    densities = (lambda x: (1 - mp.mpf(rate)) * q0(x) + mp.mpf(rate) * p0(x)), q0
    pair, ends = pair_of(dn.Laplace(scale).subsampled(rate)), (-60 * scale, 0.0, 1.0, 1 + 60 * scale)
    assert pair.hockey_stick(k) == pytest.approx(float(stick_by_quadrature(densities, k, ends)), rel=1e-9)
    back = float(stick_by_quadrature(flipped(densities), k, ends))
    assert pair.reverse().hockey_stick(k) == pytest.approx(back, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize(("scale", "rate"), [(1.0, 0.1), (0.3, 0.5), (1.0, 0.99)])
@pytest.mark.parametrize("k", [0.0, 0.05, 0.6])
def test_sampled_laplace_where_a_record_that_counts_replaces_one_that_does_not(scale, rate, k):
    """`replace`: a count attains the bound, read forwards at k and backwards at -k; its cumulant is of the same law."""
    p0, q0 = laplace_densities(scale)
    counted = lambda x: (1 - mp.mpf(rate)) * q0(x) + mp.mpf(rate) * p0(x)  # noqa: E731
    pair, ends = pair_of(dn.Laplace(scale).subsampled(rate), "replace"), (-60 * scale, 0.0, 1.0, 1 + 60 * scale)
    truth = float(stick_by_quadrature((counted, q0), k, ends))
    assert pair.hockey_stick(k) == pytest.approx(truth, rel=1e-9, abs=1e-16)
    assert pair.hockey_stick(-k) == pytest.approx(-np.expm1(-k) + exp(-k) * truth, rel=1e-9)
    nodes = pair._nodes(np.zeros(1))
    losses, weights = nodes.losses.real, np.exp(nodes.log_weights.real)
    by_nodes = (weights * np.maximum(np.exp(losses) - exp(k), 0)).sum()
    assert by_nodes == pytest.approx(truth, abs=2e-4)  # Gauss nodes under a kink
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights * np.exp(losses)).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.999])
@pytest.mark.parametrize("base", [AtomStep.of_response(1.3, 5), AtomStep.of_guarantee(0.7, 0.1)], ids=repr)
def test_sampled_atoms_under_replace_are_a_pair_of_distributions(base, rate):
    step = subsample_replace(base, rate)
    assert step.up + step.still + step.down + step.hidden == pytest.approx(1, abs=1e-15)
    assert step.up == pytest.approx(step.down * exp(step.epsilon), rel=1e-13)
    assert step.hockey_stick(0.0) == pytest.approx(rate * base.hockey_stick(0.0), rel=1e-13)


@pytest.mark.parametrize("mu", [0.01, 0.7, 3.0, 20.0])
@pytest.mark.parametrize("k", [-50.0, -1.0, 0.0, 0.3, 5.0, 40.0, 200.0])
def test_gaussian_to_the_last_digits_also_in_the_tail(mu, k):
    value, truth = GaussianStep(mu).hockey_stick(k), gaussian_stick(mu, k)
    if truth > 1e-300:
        assert value >= truth * (1 - mp.mpf(2e-14))
        assert value - value.error <= truth * (1 + mp.mpf(2e-14))
        assert float(value) == pytest.approx(float(truth), rel=1e-9)
    else:
        assert value <= 1e-290


@pytest.mark.parametrize("fpr", [1e-12, 1e-6, 1e-3, 0.2])
@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_tpr_of_the_gaussian(mu, fpr):
    assert dn.privacy_loss(dn.GaussianDP(mu)).tpr(fpr) == pytest.approx(float(gaussian_tpr(mu, fpr)), rel=1e-11)


@pytest.mark.parametrize(
    "mechanism",
    [
        dn.Gaussian(1.0),
        dn.Laplace(0.7),
        dn.RandomizedResponse(1.0, 3),
        dn.ApproximateDP(1.0, 0.1),
        dn.Gaussian(0.8).subsampled(0.1),
        dn.Laplace(0.7).subsampled(0.2),
        dn.RandomizedResponse(1.0).subsampled(0.2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("direction", [1, -1])
def test_tails_are_the_slope_of_the_divergence(mechanism, direction):
    """-dH/dk = e^k Q(L > k), and H(k) = P(L > k) - e^k Q(L > k)."""
    pair = pair_of(mechanism) if direction == 1 else pair_of(mechanism).reverse()
    for k in (-0.31, -0.02, 0.013, 0.05, 0.4):
        width = 1e-5
        slope = (pair.hockey_stick(k - width) - pair.hockey_stick(k + width)) / (2 * width)
        assert slope == pytest.approx(exp(k) * pair.null_tail(k), rel=1e-5, abs=1e-9)
        assert pair.tail(k) - exp(k) * pair.null_tail(k) == pytest.approx(pair.hockey_stick(k), abs=1e-14)


@pytest.mark.parametrize(
    ("step", "p", "q"),
    [
        (AtomStep.of_response(log(3), 2), [(log(3), 0.75), (-log(3), 0.25)], [(log(3), 0.25), (-log(3), 0.75)]),
        (
            AtomStep.of_guarantee(log(3), 0.5),
            [(inf, 0.5), (log(3), 0.375), (-log(3), 0.125)],
            [(log(3), 0.125), (-log(3), 0.375)],
        ),
    ],
)
def test_atoms(step, p, q):
    for t in (-2.0, -0.5, 0.5, 2.0):
        assert step.tail(t) == pytest.approx(sum(mass for loss, mass in p if loss > t))
        assert step.null_tail(t) == pytest.approx(sum(mass for loss, mass in q if loss > t))


def test_guarantee_advantage_is_kairouz():
    """(e^eps - 1 + 2 delta)/(e^eps + 1): erratum 11; Jia 2023, Eq. 1."""
    for epsilon, delta in ((0.0, 0.2), (0.1, 0.0), (1.0, 1e-5), (3.0, 0.3)):
        truth = (exp(epsilon) - 1 + 2 * delta) / (exp(epsilon) + 1)
        assert dn.privacy_loss(dn.ApproximateDP(epsilon, delta)).advantage() == pytest.approx(truth, rel=1e-14)
    assert dn.privacy_loss(dn.TotalVariation(0.37)).advantage() == pytest.approx(0.37, rel=1e-14)


def test_an_estimate_moves_to_its_upper_end_and_stays_inside():
    assert upper(0.5, 0.125) == 0.625
    assert upper(0.5, 0.125).error == 0.25
    assert upper(1.0, 0.125, high=1.0) == 1.0
    assert upper(-0.5, 0.125) == 0.0
    assert upper(float("nan"), 0.0, high=1.0) == 1.0
    assert upper(float("nan"), 0.0, high=1.0).error == 1.0
    assert isinstance(np.float64(1) * Upper(1.0), float)


class SearchedAtoms(AtomStep):
    """The naive twin: quantiles by the search that serves every pair."""

    _where = Pair._where


@given(
    epsilon=st.one_of(st.just(0.0), st.floats(1e-3, 30.0)),
    delta=st.one_of(st.just(0.0), st.floats(1e-8, 0.8)),
    failure=st.floats(1e-9, 1.0),
)
def test_quantiles_of_atoms_are_those_of_the_search(epsilon, delta, failure):
    step = AtomStep.of_guarantee(epsilon, delta)
    twin = SearchedAtoms(step.epsilon, step.up, step.still, step.down, step.hidden)
    assert step.exceeded_loss(failure) == pytest.approx(twin.exceeded_loss(failure), rel=1e-11, abs=1e-14)
    assert step.null_exceeded(failure) == pytest.approx(twin.null_exceeded(failure), rel=1e-11, abs=1e-14)
