"""What the trials show: against naive formulas, against the exact loss, and for a mechanism that is broken."""

from __future__ import annotations

from dataclasses import replace
from math import erf, exp, inf, log, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq

from deniable import Adjacency, Gaussian, GaussianDP, Training, compose, privacy_loss
from deniable.campaigns.audit import judge
from deniable.campaigns.campaign import Plan, play
from deniable.engines import Local
from deniable.evidence.measured import (
    Errors,
    Trials,
    belief_in_truth,
    epsilon_from_sensitivity,
    gaussian_epsilon,
    largest_shift,
    measure,
)


def phi(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


def naive_gaussian_epsilon(mu: float, delta: float) -> float:
    """erratum 3's formula, solved."""

    def excess(epsilon: float) -> float:
        return phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu) - delta

    return float(brentq(excess, 0, 50))


@pytest.fixture
def few() -> Trials:
    ratio = np.array([[0.1, 2.0], [0.0, -1.0], [0.5, 0.7], [-1.0, -3.0], [0.2, 0.0]])
    on_d = np.array([True, True, False, False, True])
    sensitivity = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    sigma = np.array([[2.0, 2.0], [0.0, 5.0], [4.0, 4.0], [2.0, 0.0], [4.0, 4.0]])
    return Trials(on_d, ratio, sensitivity, sigma)


def test_against_naive_formulas(few: Trials) -> None:
    shown = measure(few, Training(5.0, 1.0, 2, Adjacency.REPLACE), delta=0.01, belief_bound=0.9)
    # by hand: D is named for ratios above 0; a tie names D'
    assert Errors.of(few) == Errors(1, 2, 2, 3)
    assert shown.advantage.value == pytest.approx(1 - 1 / 2 - 2 / 3)
    truth = [1 / (1 + exp(-loss)) for loss in (2.0, -1.0, -0.7, 3.0, 0.0)]
    assert belief_in_truth(few) == pytest.approx(truth)
    assert shown.largest_belief == pytest.approx(max(truth))
    assert shown.violations.value == 1 / 5
    assert shown.epsilon_from_belief == pytest.approx(log(max(truth) / (1 - max(truth))))
    shift = sqrt((1 / 2) ** 2 + (2 / 2) ** 2)
    assert largest_shift(few) == pytest.approx(shift)
    assert shown.epsilon_from_sensitivity == pytest.approx(naive_gaussian_epsilon(shift, 0.01), rel=1e-9)
    assert shown.epsilon_from_advantage == 0  # an advantage below 0 shows nothing
    assert shown.quantiles["0.5"] == pytest.approx(sorted(truth)[2])


def test_a_step_without_noise_that_tells_the_neighbours_apart_is_infinite(few: Trials) -> None:
    bare = replace(few, sigma=np.zeros_like(few.sigma))
    with np.errstate(divide="ignore"):
        assert largest_shift(bare) == inf


@pytest.mark.parametrize("advantage", [0.05, 0.2562, 0.9])
def test_epsilon_from_the_advantage_goes_round(advantage: float) -> None:
    epsilon = gaussian_epsilon(advantage, 0.01)
    mu = brentq(lambda mu: 2 * phi(mu / 2) - 1 - advantage, 1e-9, 20)
    assert epsilon == pytest.approx(naive_gaussian_epsilon(mu, 0.01), rel=1e-7)
    assert gaussian_epsilon(1.0, 0.01) is None
    assert gaussian_epsilon(-0.2, 0.01) == 0


def steps(shifts: list[list[float]]) -> Trials:
    sensitivity = np.array(shifts)
    nothing = np.zeros(len(shifts), dtype=bool)
    return Trials(nothing, np.zeros_like(sensitivity), 2 * sensitivity, np.full_like(sensitivity, 2.0))


def sampled_epsilon(shifts: list[float], rate: float) -> float:
    release = compose(*(Gaussian(1 / shift).subsampled(rate) for shift in shifts))
    return float(privacy_loss(release, Adjacency.ADD_REMOVE).epsilon(0.01))


def test_epsilon_of_sampled_batches_from_the_sensitivities() -> None:
    """Exact for few unlike steps, above the exact value by rounding up for many; of the trial that says most."""
    few = [[0.5, 0.0, 0.8], [0.9, 0.3, 0.0], [0.6, 0.6, 0.6]]
    found = epsilon_from_sensitivity(steps(few), 0.01, 0.3, Adjacency.ADD_REMOVE)
    assert found == pytest.approx(max(sampled_epsilon([s for s in row if s], 0.3) for row in few), rel=1e-9)
    many = list(np.linspace(0.5, 0.7, 20))
    rounded = epsilon_from_sensitivity(steps([many]), 0.01, 0.3, Adjacency.ADD_REMOVE)
    assert rounded is not None
    assert sampled_epsilon(many, 0.3) < rounded < 1.1 * sampled_epsilon(many, 0.3)


def test_sampled_batches_without_noise_or_without_difference() -> None:
    silent = steps([[0.0, 0.0]])
    assert epsilon_from_sensitivity(silent, 0.01, 0.3, Adjacency.ADD_REMOVE) == 0
    bare = replace(steps([[0.5, 0.5]]), sigma=np.zeros((1, 2)))
    assert epsilon_from_sensitivity(bare, 0.01, 0.3, Adjacency.ADD_REMOVE) is None


def test_the_distance_does_not_decide_the_loss_of_sampled_replace_neighbours(few: Trials) -> None:
    training = Training(5.0, 0.5, 2, Adjacency.REPLACE)
    assert measure(few, training, delta=0.01, belief_bound=0.9).epsilon_from_sensitivity is None
    # the same distance, 1, far from zero and around zero: delta at epsilon 0.5 of one step is not the same
    x = np.linspace(-10, 20, 300_001)

    def delta(first: float, second: float) -> float:
        with_x, without = (0.5 * np.exp(-(x**2) / 2) + 0.5 * np.exp(-((x - g) ** 2) / 2) for g in (first, second))
        return float(np.maximum(with_x - exp(0.5) * without, 0).sum() * (x[1] - x[0]) / sqrt(2 * np.pi))

    assert delta(8.0, 9.0) > 1.3 * delta(-0.5, 0.5)


def test_with_local_sensitivity_the_observer_reaches_the_exact_advantage(
    local_plan: Plan, local_trials: Trials
) -> None:
    document = judge(local_plan, local_trials)
    exact, found = document.exact.advantage, document.measured.advantage.value
    error_rate = (1 - exact) / 2
    deviation = sqrt(4 * error_rate * (1 - error_rate) / len(local_trials))
    assert abs(found - exact) < 3 * deviation
    assert document.measured.advantage.low < exact < document.measured.advantage.high
    assert document.measured.epsilon.sensitivity == pytest.approx(document.exact.epsilon, rel=1e-6)
    assert document.measured.belief.violation_interval.low < 0.01
    assert document.verdict == "consistent"
    assert "NOT private" in document.notes[0]


def test_the_losses_are_those_of_the_gaussian(local_plan: Plan, local_trials: Trials) -> None:
    """Not only the decisions: the final loss of the truth is N(mu^2 / 2, mu^2)."""
    mu = sqrt(local_plan.training.steps) / local_plan.training.noise
    signed = np.where(local_trials.trained_on_d, 1, -1) * local_trials.log_likelihood_ratio[:, -1]
    assert abs(signed.mean() - mu**2 / 2) < 4 * mu / sqrt(len(signed))
    assert signed.std() == pytest.approx(mu, rel=4 / sqrt(2 * len(signed)))
    assert float(privacy_loss(GaussianDP(mu)).belief(0.01)) == pytest.approx(0.9, abs=1e-6)


def test_half_the_noise_is_caught(local_plan: Plan) -> None:
    """The claim stays, the training adds half the noise: the verdict is `violated`."""
    broken = replace(local_plan, training=replace(local_plan.training, noise=local_plan.training.noise / 2))
    document = judge(local_plan, play(broken, engine=Local(1)))
    assert document.verdict == "violated"
    assert "epsilon is above" in document.verdict_text
    assert document.measured.advantage.low > document.exact.advantage
    assert document.measured.belief.violation_interval.low > 0.01


def test_no_noise_to_speak_of_breaks_the_promised_epsilon(local_plan: Plan) -> None:
    few = replace(local_plan, trials=200)
    broken = replace(few, training=replace(few.training, noise=few.training.noise / 20))
    document = judge(few, play(broken, engine=Local(1)))
    assert document.measured.epsilon.lower_bound.value > document.claimed.epsilon
    assert "epsilon" in document.verdict_text
    assert "was promised" in document.verdict_text


def test_few_trials_say_nothing(local_plan: Plan, local_trials: Trials) -> None:
    names = ("trained_on_d", "log_likelihood_ratio", "local_sensitivity", "sigma")
    first = Trials(*(getattr(local_trials, name)[:10] for name in names))
    document = judge(local_plan, first)
    assert document.verdict == "cannot judge"
    assert document.measured.epsilon.lower_bound.value == 0
