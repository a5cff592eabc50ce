"""The hunt's own routes against closed forms, each other, dp-accounting and simulation: false finds cost everybody."""

from __future__ import annotations

import sys
from math import comb, exp, inf, log

import numpy as np
import pytest
from absl import logging as absl_logging
from dp_accounting.pld import privacy_loss_distribution as pld

import deniable as dn
from hunt.composed import Release
from hunt.laws import describe, laws_of
from hunt.sandwich import truth_of
from hunt.truth import Truth

# dp-accounting's logger would close the stream it was made with, pytest's own, when another test sets up logging
absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__


SAMPLED = dn.Gaussian(0.8).subsampled(0.05).composed(20)


def transform(mechanism: dn.Mechanism, adjacency: str = "add-remove", backward: bool = False) -> Release:
    """The FFT route alone."""
    return Release([(laws_of(step, adjacency)[backward], step.runs) for step in describe(mechanism, adjacency)])


@pytest.mark.parametrize("k", [-1.0, 0.0, 0.7, 3.0, 9.0])
def test_transform_and_one_step_agree_about_a_gaussian(k: float) -> None:
    gaussian = dn.Gaussian(1.0)
    exact, bracket = Truth(gaussian, "add-remove").stick(k), transform(gaussian).stick(k)
    assert bracket.low <= exact.low <= exact.high <= bracket.high
    assert bracket.high - bracket.low < 0.2 * exact.high


@pytest.mark.parametrize("k", [0.0, 1.0, 40.0])
def test_many_gaussians_are_one(k: float) -> None:
    many = Truth(dn.compose(dn.Gaussian(2.0).composed(16), dn.GaussianDP(1.5)), "replace").stick(k)
    one = Truth(dn.GaussianDP(2.5), "replace").stick(k)
    assert many.low == pytest.approx(one.low, rel=1e-12)


def test_counted_atoms_are_binomial() -> None:
    truth, p = Truth(dn.RandomizedResponse(1.0).composed(9), "add-remove"), 1 / (1 + exp(-1.0))
    at_least_seven = sum(comb(9, n) * p**n * (1 - p) ** (9 - n) for n in range(7, 10))
    found = truth.tail(4.0)
    assert found.by == "atoms counted"
    assert found.low <= at_least_seven <= found.high
    lattice = transform(dn.RandomizedResponse(1.0).composed(9)).tail(4.0)
    assert lattice.low <= at_least_seven <= lattice.high <= at_least_seven * (1 + 1e-6)


@pytest.mark.parametrize("backward", [False, True])
def test_line_and_transform_agree_with_dp_accounting(backward: bool) -> None:
    direction = "_pmf_add" if backward else "_pmf_remove"
    ends = []
    for pessimistic in (False, True):
        one = pld.from_gaussian_mechanism(
            0.8, sampling_prob=0.05, pessimistic_estimate=pessimistic, value_discretization_interval=2e-3,
            use_connect_dots=False,
        )  # fmt: skip
        ends.append(getattr(one.self_compose(20), direction).get_delta_for_epsilon(0.5))
    truth = Truth(SAMPLED, "add-remove")
    found, fft = truth.stick(0.5, backward), transform(SAMPLED, backward=backward).stick(0.5)
    assert found.by == "line"
    assert ends[0] <= found.low <= found.high <= ends[1]
    assert fft.low <= found.low <= found.high <= fft.high


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (dn.Gaussian(0.5).subsampled(0.3), "add-remove"),
        (dn.Gaussian(0.5).subsampled(0.3), "replace"),
        (dn.GaussianDP(3.0).subsampled(0.1), "replace"),
        (dn.Laplace(0.3).subsampled(0.2), "zero-out"),
        (dn.Laplace(0.3).subsampled(0.2), "replace"),
        (dn.RandomizedResponse(2.0, 4).subsampled(0.4), "replace"),
        (dn.ApproximateDP(1.0, 0.1).subsampled(0.4), "add-remove"),
        (dn.TotalVariation(0.3).subsampled(0.4).subsampled(0.5), "add-remove"),
    ],
)
@pytest.mark.parametrize("backward", [False, True])
def test_panels_and_distribution_functions_agree(mechanism: dn.Mechanism, adjacency: str, backward: bool) -> None:
    """The law's masses are those of the closed form, in both directions; both sides of the pair are distributions."""
    truth = Truth(mechanism, adjacency)
    law = laws_of(describe(mechanism, adjacency)[0], adjacency)[backward]
    assert np.exp(law.log_mass).sum() + law.escape == pytest.approx(1.0, abs=1e-12)
    reach = 1.1 * max(0.5, float(np.abs(law.loss[law.log_mass > log(1e-5)]).max()))
    for t in np.linspace(-reach, reach, 4):
        exact, bracket = truth.tail(float(t), backward), transform(mechanism, adjacency, backward).tail(float(t))
        assert bracket.low <= exact.high * (1 + 1e-9)
        assert bracket.high >= exact.low * (1 - 1e-9)
        assert bracket.high - bracket.low < 0.2


def test_a_bracket_holds_what_a_simulation_shows() -> None:
    """Laplace, sampled response and a sampled Gaussian, simulated under P from their densities; six standard errors."""
    mechanism = dn.compose(
        dn.Laplace(2.0).composed(3), dn.RandomizedResponse(1.0, 3).subsampled(0.4).composed(5), SAMPLED
    )
    draw, size = np.random.default_rng(5), 30_000
    loss = np.zeros(size)
    for _ in range(3):
        x = draw.laplace(1.0, 2.0, size)
        loss += (np.abs(x) - np.abs(x - 1)) / 2.0
    p, q = np.array([exp(1.0), 1.0, 1.0]), np.array([1.0, exp(1.0), 1.0])
    p, q = p / p.sum(), q / q.sum()
    mix = 0.6 * q + 0.4 * p
    loss += np.log(mix / q)[draw.choice(3, p=mix, size=(5, size))].sum(axis=0)
    x = draw.normal(0.0, 0.8, (20, size)) + (draw.random((20, size)) < 0.05)
    loss += np.log(0.95 + 0.05 * np.exp((2 * x - 1) / (2 * 0.64))).sum(axis=0)
    truth = Truth(mechanism, "add-remove")
    for t in (0.0, 2.0):
        gain = np.maximum(-np.expm1(t - loss), 0.0)
        for samples, bracket in (
            (loss > t, truth.tail(t)),
            (gain, truth.stick(t)),
        ):
            slack = 6 * float(np.std(samples)) / size**0.5
            assert bracket.low - slack <= float(np.mean(samples)) <= bracket.high + slack
            assert bracket.high - bracket.low < 0.02


@pytest.mark.parametrize(
    ("mechanism", "k", "least"),
    [
        (dn.Laplace(0.01).composed(8), 750.0, 2.0**-8),
        (dn.RandomizedResponse(10.0).subsampled(0.5).composed(200), 700.0, 0.98),
        (dn.Laplace(1.0).composed(3000), 1200.0, 0.005),
        (dn.GaussianDP(0.3).subsampled(0.5).composed(10**9), 1e6, 0.99),
    ],
)
def test_losses_have_no_cap(mechanism: dn.Mechanism, k: float, least: float) -> None:
    assert Truth(mechanism, "add-remove").stick(k).low >= least


OTHERS = [
    (dn.Gaussian(0.7).subsampled(dn.RandomAllocation(13)).composed(2), "add-remove", 2e-2),
    (dn.Gaussian(2.0).subsampled(dn.Poisson(0.2, records_per_person=3)).composed(2), "add-remove", 2e-2),
    (dn.Gaussian(2.0).subsampled(dn.Poisson(0.2, records_per_person=3)), "replace", 2e-2),
    (dn.Gaussian(2.0).subsampled(dn.FixedSize(7, 50, replacement=True)), "replace", 2e-2),
    (dn.Gaussian(2.0).subsampled(dn.FixedSize(7, 50)), "zero-out", 2e-2),
    (dn.DiscreteGaussian(1.5, 2).composed(5), "add-remove", 1e-6),
    (dn.DiscreteLaplace(1.5, 3).subsampled(0.3).composed(5), "replace", 1e-6),
    (dn.ExponentialMechanism(1.2).subsampled(0.4), "add-remove", 2e-2),
    (dn.PmfPair([0.5, 0.3, 0.2], [0.1, 0.3, 0.6]).composed(3), "add-remove", 1e-6),
    (dn.ConcentratedDP(0.1), "add-remove", 3.0),
    (dn.RenyiDP([2.0, 8.0], [0.2, 0.7]), "add-remove", 3.0),
    (dn.RepeatAndSelect(dn.Gaussian(2.0), 4.0, 0.5), "add-remove", inf),
]


@pytest.mark.parametrize(("mechanism", "adjacency", "apart"), OTHERS, ids=[str(other[0]) for other in OTHERS])
def test_other_releases_lie_in_their_brackets(mechanism: dn.Mechanism, adjacency: str, apart: float) -> None:
    """The brackets of what is known by brackets only are narrow enough to tell, and hold the value."""
    truth, loss = truth_of(mechanism, adjacency).finer(), dn.privacy_loss(mechanism, adjacency)
    for k in (0.0, 0.3):
        found, bracket = loss.delta(k), truth.delta(k)
        assert 0 < bracket.low <= found * (1 + 1e-9)
        assert found.least <= bracket.high * (1 + 1e-9)
        assert bracket.high <= bracket.low * (1 + apart)
