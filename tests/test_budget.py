"""Budgets: what is spent is what is composed, no promise is broken, and filters hold when one looks at outputs."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

import deniable as dn
from deniable.answers.budget import SpentError

PROMISE = dn.Epsilon(1.0, 1e-5)


def test_planned_releases_are_composed_exactly():
    budget = dn.Budget(PROMISE)
    parts = dn.Gaussian(8.0), dn.Laplace(20.0), dn.Gaussian(9.0)
    readings = [budget.spend(part) for part in parts]
    assert readings[-1].score == dn.privacy_loss(dn.compose(*parts)).epsilon(1e-5)
    assert [one.releases for one in readings] == [1, 2, 3]
    assert readings[0].score < readings[1].score < readings[2].score < 1.0
    assert readings[-1].left == pytest.approx(1.0 - readings[-1].score)
    assert not readings[-1].adaptive
    assert "planned" in readings[-1].sentence


def test_a_release_too_many_is_refused_and_not_charged():
    budget = dn.Budget(PROMISE)
    budget.spend(dn.Gaussian(5.0))
    before = budget.reading
    with pytest.raises(SpentError, match="no room"):
        budget.spend(dn.Gaussian(1.0))
    assert budget.reading == before
    assert budget.has_room(dn.Gaussian(50.0))


def test_the_gaussian_rule_loses_nothing():
    """As many equal releases as calibration allows, and not one more."""
    most = dn.calibrate(lambda steps: dn.Gaussian(20.0).composed(int(steps)), PROMISE, over="steps").value
    budget = dn.Budget(PROMISE, rule="gaussian")
    for _ in range(int(most)):
        reading = budget.spend(dn.Gaussian(20.0))
    assert reading.adaptive
    assert reading.score <= 1.0
    with pytest.raises(SpentError):
        budget.spend(dn.Gaussian(20.0))
    budget = dn.Budget(PROMISE, rule="gaussian")
    budget.spend(dn.GaussianDP(0.05).composed(9))
    assert budget.reading.score == pytest.approx(dn.privacy_loss(dn.GaussianDP(0.15)).epsilon(1e-5), rel=1e-9)
    with pytest.raises(ValueError, match="rule='renyi'"):
        budget.spend(dn.Laplace(100.0))


def test_the_renyi_rule_counts_everything_and_is_the_stricter_one():
    budget, steps = dn.Budget(PROMISE, "add-remove", rule="renyi"), dn.Gaussian(2.0).subsampled(0.01)
    exact = dn.privacy_loss(steps.composed(200), "add-remove").epsilon(1e-5)
    reading = budget.spend(steps.composed(200))
    assert exact < reading.score < 1.0
    assert reading.adaptive
    budget.spend(dn.ExponentialMechanism(0.02))
    assert budget.reading.share > reading.share
    with pytest.raises(SpentError):
        budget.spend(dn.Gaussian(1.0))


def test_looking_at_outputs_does_not_help_under_the_gaussian_rule():
    """An analyst who spends more after a large output, simulated with and without the person; no attack beats mu."""
    rng, trials, total = np.random.default_rng(3), 40_000, 1.0
    losses = []
    for shift in (1.0, 0.0):
        spent, loss = np.zeros(trials), np.zeros(trials)
        mu = np.full(trials, 0.3)
        for _ in range(12):
            mu = np.where(spent + mu**2 <= total, mu, 0.0)
            noise = rng.standard_normal(trials)
            loss += mu * (noise + shift * mu) - mu**2 / 2
            spent += mu**2
            mu = np.where(loss > 0, 0.6, 0.15)  # the choice looks at all that was seen
        losses.append(loss)
    advantage = max(np.mean(losses[0] > t) - np.mean(losses[1] > t) for t in np.linspace(-1, 1, 21))
    assert advantage <= dn.privacy_loss(dn.GaussianDP(sqrt(total))).advantage() + 4 / sqrt(trials)


@pytest.mark.parametrize(
    "build",
    [
        lambda: dn.Budget(dn.Noise(1.0)),
        lambda: dn.Budget(PROMISE, rule="magic"),
        lambda: dn.Budget(PROMISE, rule="renyi", order=1.0),
    ],
)
def test_bad_budgets_are_refused(build):
    with pytest.raises(ValueError, match="must be"):
        build()


def test_sampled_releases_need_neighbours():
    with pytest.raises(ValueError, match="adjacency"):
        dn.Budget(PROMISE).spend(dn.Gaussian(2.0).subsampled(0.1))
