"""An audit's own verdict: how often tight noise is called violated, and a belief that is exceeded too often."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from scipy.special import ndtri

from deniable.answers.explain import exact_scores
from deniable.campaigns.campaign import least_noise
from deniable.evidence.attack_scores import Errors, Scores
from deniable.evidence.examined_claim import Asked
from deniable.evidence.limits import interval
from deniable.evidence.measured import Measured, Trials, advantage_interval, measure, provable_epsilon
from deniable.evidence.score_audit import judge_scores
from deniable.evidence.thresholds import Limits, shift
from deniable.evidence.verdict import verdict
from deniable.formatting import at_least
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Belief, Epsilon, Question, claimed_scores
from deniable.report import report_tables

STEPS, DELTA = 20, 0.01
NOISE = least_noise(Belief(0.9, DELTA), DELTA, Training(1.0, 1.0, STEPS, Adjacency.REPLACE))
TRAINING = Training(NOISE, 1.0, STEPS, Adjacency.REPLACE)
CLAIMED = claimed_scores(Belief(0.9, DELTA), DELTA)
EXACT = exact_scores(TRAINING.mechanism, Question(Adjacency.REPLACE, DELTA))
MU = 2 * float(ndtri((1 + EXACT.advantage) / 2))


def shown(trials: int, seed: int, mu: float = MU) -> Measured:
    """Of the strongest observer's ideal scores."""
    generator = np.random.default_rng(seed)
    on_d = generator.random(trials) < 0.5
    ratio = np.where(on_d, 1, -1) * mu**2 / 2 + mu * generator.standard_normal(trials)
    played = Trials(on_d, ratio[:, None], np.full((trials, 1), mu), np.ones((trials, 1)))
    return measure(played, TRAINING, delta=DELTA, belief_bound=0.9)


@pytest.mark.parametrize("trials", [100, 1000, 10_000])
def test_exactly_tight_noise_is_rarely_called_violated(trials: int) -> None:
    """In at most 5 % of 2000 campaigns; the limits that `verdict` compares, without what it does not need."""
    generator, rate, alarms = np.random.default_rng(trials), (1 - EXACT.advantage) / 2, 0
    for positives in generator.binomial(trials, 0.5, 2000).tolist():
        negatives = trials - positives
        errors = Errors(generator.binomial(negatives, rate), negatives, generator.binomial(positives, rate), positives)
        tight = advantage_interval(errors, 0.95).low > EXACT.advantage
        alarms += tight or Limits.of(errors, 0.95).lower(shift) > MU
    assert alarms <= 0.05 * 2000


def test_the_limits_above_decide_the_verdict() -> None:
    violated = 0
    for seed in range(12):
        found = shown(300, seed, mu=1.25 * MU)
        curve = found.bound("mechanism")
        assert curve is not None
        refuted = found.advantage.low > EXACT.advantage or curve.value > EXACT.epsilon
        assert (verdict(found, CLAIMED, EXACT).name == "violated") == refuted
        violated += refuted
    assert 0 < violated < 12


def test_a_belief_that_is_exceeded_too_often_is_not_called_consistent() -> None:
    found = shown(1000, 1)
    assert verdict(found, CLAIMED, EXACT).name == "consistent"
    told = verdict(replace(found, violations=interval(30, 1000, 0.95)), CLAIMED, EXACT)
    assert told.name == "cannot judge"
    assert "at least 2.03 %" in told.text
    assert "No violation" not in told.text


def document(region: float, mechanism: float, noise: float = NOISE, trials: int = 300) -> Any:
    """What of an audit's result these words read."""
    bound = Some(name="mechanism", valid=True, value=mechanism, upper=None)
    epsilon = Some(lower_bound=Some(value=region, confidence=0.95), estimators=[bound])
    given = Some(noise=noise, rate=1.0, steps=5, adjacency=Adjacency.REPLACE)
    game = Some(epsilon=epsilon, trials=trials, advantage=Some(value=0.1, low=0.0, high=0.2))
    exact = Some(delta=1e-5, epsilon=20.0)
    return Some(
        measured=game, game=game, input=given, exact=exact, verdict="consistent", diagnostics=None, watched=None
    )


def test_the_proven_epsilon_is_the_one_that_the_verdict_rests_on_rounded_down() -> None:
    assert report_tables.proven(document(3.31, 20.8359)) == "20.8"
    assert report_tables.proven(document(0.5578, 0.2)) == "0.557"
    assert report_tables.proven(document(0.0, 0.0)) == "0"
    assert report_tables.lower_bound(Some(lower_bound=Some(value=0.0))) == "0"  # type: ignore[arg-type]


def test_equal_scores_are_called_so() -> None:
    found = judge_scores(Scores(np.zeros(50), np.zeros(40)), Asked(Epsilon(1.0, 1e-5), rows_from="trainings"))
    assert (found.verdict, found.verdict_text) == (
        "cannot judge",
        "All 90 scores are equal: they say nothing about membership.",
    )


def test_what_few_trainings_can_prove_is_read_as_the_verdict_reads_it() -> None:
    """300 trainings showed 20.8 by the exact curve where "3.69 at most" was said."""
    training = Training(0.6486, 1.0, 5, Adjacency.REPLACE)
    assert provable_epsilon(300, training, 1e-5, 0.95) > 20.8
    assert provable_epsilon(300, None, 1e-5, 0.95) < 5
    assert provable_epsilon(20, training, 1e-5, 0.95) < 20


@pytest.mark.parametrize("mu", [0.0, 20.0])
def test_where_no_violation_could_be_found_none_is_told_not_to_be(mu: float) -> None:
    """10 trainings at epsilon 20 were called consistent, whatever they showed."""
    exact = exact_scores(Training(0.25, 1.0, 1, Adjacency.REPLACE).mechanism, Question(Adjacency.REPLACE, DELTA))
    assert exact.epsilon is not None
    promised = claimed_scores(Epsilon(exact.epsilon, DELTA), DELTA)
    few, many = (replace(shown(trials, 1, mu=mu), violations=interval(0, trials, 0.95)) for trials in (10, 1000))
    told = verdict(few, promised, exact)
    assert told.name == "cannot judge"
    assert "no violation could have been found by them" in told.text
    assert "no violation could have been found" not in verdict(many, promised, exact).text


def test_the_epsilon_that_assumes_nothing_leads() -> None:
    """A violation was told with the larger epsilon of the claimed training's curve, without what that rests on."""
    found = shown(1000, 1, mu=4 * MU)
    region, nothing = found.epsilon_lower_bound, claimed_scores(None, DELTA)
    broken = verdict(found, nothing, structs.replace(EXACT, advantage=1.0, epsilon=1.0))
    assert f"The training's epsilon is above {at_least(region)}, more than the 1 that" in broken.text
    by_curve = verdict(found, nothing, structs.replace(EXACT, advantage=1.0, epsilon=region + 0.1))
    assert by_curve.text.startswith("If sampling and steps are as claimed and the noise alone is not, the training's")


@pytest.mark.parametrize(("claimed", "told"), [(1.0, "violated"), (4.0, "consistent"), (6.0, "cannot judge")])
def test_a_claim_beyond_all_proof_is_not_called_consistent(claimed: float, told: str) -> None:
    """1,000 scores of a perfect attack prove 4.8: no claim above that can be refuted with so few."""
    generator = np.random.default_rng(1)
    scores = Scores(generator.normal(2, 1, 500), generator.normal(0, 1, 500))
    found = judge_scores(scores, Asked(Epsilon(claimed, 1e-5), rows_from="trainings"))
    assert found.verdict == told
    assert ("no violation of 6 could be found" in found.verdict_text) == (told == "cannot judge")
