from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from naive_observer import Recorder, replay

from deniable.scores import beliefs
from deniable.training import engine
from deniable.training.engine import run_block
from deniable.training.settings import Neighbours, TrainingSettings

RNG = np.random.default_rng(0)
DATA = Neighbours.of(RNG.normal(size=(15, 8, 8)), RNG.integers(0, 10, 15), 4, (RNG.normal(size=(8, 8)), 2))
BASE = TrainingSettings(
    "digits", noise=1.5, steps=5, clip=1.0, learning_rate=0.5, trials_per_block=6, adjacency="replace"
)
VARIANTS = [
    BASE,
    replace(BASE, adjacency="add-remove"),
    replace(BASE, sensitivity="local"),
    replace(BASE, sensitivity="local", adjacency="add-remove", optimizer="adam"),
    replace(BASE, rate=0.3),
    replace(BASE, rate=0.3, adjacency="add-remove"),
    replace(BASE, rate=0.8, sensitivity="local"),
]


def assert_engine_agrees_with_replay(settings: TrainingSettings) -> None:
    differing = DATA.columns(settings.adjacency).differing
    for trial in (0, 5):
        recorder = Recorder(trial, differing)
        result = run_block(settings, DATA, 1, 0, recorder)
        expected = replay(settings, DATA, recorder.steps)
        np.testing.assert_allclose(result.log_likelihood_ratio[trial], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("settings", VARIANTS)
def test_running_ratio_equals_the_naive_observer(settings: TrainingSettings) -> None:
    assert_engine_agrees_with_replay(settings)


@pytest.mark.parametrize("settings", [VARIANTS[0], VARIANTS[4]])
def test_an_observer_that_looks_at_other_noise_is_detected(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = engine.log_likelihood_ratio
    monkeypatch.setattr(engine, "log_likelihood_ratio", lambda g, p, m, s, r: ratio(g, -p, m, s, r))
    with pytest.raises(AssertionError):
        assert_engine_agrees_with_replay(settings)


def test_beliefs_start_from_the_prior_and_stay_in_range() -> None:
    ratios = np.array([-1e4, -1.0, 0.0, 1.0, 1e4])
    assert beliefs(ratios)[2] == 0.5
    assert beliefs(ratios, prior=0.2)[2] == pytest.approx(0.2)
    assert beliefs(ratios)[[0, 4]].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(beliefs(ratios) + beliefs(-ratios), 1)


def test_beliefs_are_bayes_rule_step_by_step() -> None:
    densities = RNG.uniform(0.1, 1, size=(2, 6))
    belief = 0.3
    for step in range(6):
        d, other = belief * densities[0, step], (1 - belief) * densities[1, step]
        belief = d / (d + other)
        ratio = np.log(densities[0, : step + 1] / densities[1, : step + 1]).sum()
        assert float(beliefs(ratio, 0.3)) == pytest.approx(belief)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, float("nan")])
def test_priors_at_the_ends_are_refused(prior: float) -> None:
    with pytest.raises(ValueError, match="prior"):
        beliefs([0.0], prior)
