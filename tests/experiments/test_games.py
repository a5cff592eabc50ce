"""The campaigns behind the measured items: their trials are the audit's, kept, resumed and summed up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtri

from deniable.campaigns import campaign
from deniable.engines import Local
from deniable.experiments import games
from deniable.experiments.game_summary import exact_belief
from deniable.experiments.games import (
    CASES,
    MNIST,
    PURCHASE,
    STAND_IN,
    Game,
    game_of_size,
    measure_games,
)
from deniable.experiments.item import ItemRun, Scale
from deniable.experiments.playing import plan_game, play, summary

GAME = Game("digits", 0.9, trials=150, attacked=6, records=12, universe=200)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("games")


@pytest.fixture(scope="module")
def played(place: Path) -> Any:
    return play(GAME, place)


def test_trials_are_those_of_the_audit(played: Any) -> None:
    """The step more that shows the trained weights changes nothing of the game."""
    twin = campaign.play(plan_game(GAME), engine=Local(1))
    for name in ("trained_on_d", "log_likelihood_ratio", "local_sensitivity", "sigma"):
        np.testing.assert_array_equal(getattr(played.trials, name), getattr(twin, name))


def test_a_damaged_campaign_goes_on_to_the_same_result(
    played: Any, place: Path, damage_block: Callable[[Path, int], None]
) -> None:
    damage_block(place / GAME.name, 1)
    again = play(GAME, place)
    np.testing.assert_array_equal(again.trials.log_likelihood_ratio, played.trials.log_likelihood_ratio)
    np.testing.assert_array_equal(again.membership, played.membership)
    assert len(again.trials) == GAME.trials
    assert len(again.membership) == len(again.untrained) == len(again.accuracy) == GAME.attacked


def test_campaigns_draw_their_own_noise() -> None:
    plans = [plan_game(Game("digits", belief, records=12, universe=200)) for belief in (0.75, 0.9)]
    assert plans[0].seed != plans[1].seed
    assert plans[0].origin == plans[1].origin  # but play on the same D and D'


def test_summary_meets_theory(played: Any) -> None:
    found = summary(played)
    assert found.epsilon_from.sensitivity == pytest.approx(found.epsilon, rel=1e-9)
    assert found.epsilon_from.sensitivity_exact < found.epsilon
    assert abs(found.advantage - found.exact_advantage) < 4 * found.binomial_error
    assert abs(found.expected_advantage - found.exact_advantage) < 5 * found.expected_advantage_error
    assert found.expected_advantage_error < 0.5 * found.advantage_error
    assert sum(found.beliefs) == found.trials == GAME.trials
    assert len(found.sensitivity.steps.mean) == 30
    wins = np.mean((played.trials.log_likelihood_ratio[:, -1] > 0) == played.trials.trained_on_d)
    assert found.advantage == pytest.approx(2 * wins - 1)


def test_the_strongest_noise_hides_every_training(place: Path) -> None:
    found = summary(play(Game("digits", 0.51, sensitivity="global", trials=40, records=12, universe=200), place))
    assert found.expected_advantage < found.exact_advantage < 0.01


def test_ranks_go_from_the_most_to_the_least_dissimilar() -> None:
    distances = [
        plan_game(Game("digits", 0.9, rank=rank, records=12, universe=200)).origin["dissimilarity"]
        for rank in (0, 1, 2, -3, -2, -1)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[2] > distances[3]


def test_a_campaign_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ItemRun(Scale.TEST, tmp_path)
    small = Game("digits", 0.9, trials=10, attacked=2, records=12, universe=200)
    first = measure_games(run, [small])
    monkeypatch.setattr("deniable.experiments.playing.play", lambda *_: pytest.fail("played again"))
    assert measure_games(run, [small, small]) == first * 2


def test_two_beliefs_have_two_files(tmp_path: Path) -> None:
    """A name with a dot is no file's suffix."""
    run = ItemRun(Scale.TEST, tmp_path)
    assert run.once("a-0.9", {}, lambda: {"x": 1}, dict) == {"x": 1}
    assert run.once("a-0.99", {}, lambda: {"x": 2}, dict) == {"x": 2}


def test_full_has_the_papers_sizes(tmp_path: Path) -> None:
    game = game_of_size(ItemRun(Scale.FULL, tmp_path), MNIST, 0.9, CASES[0])
    assert (game.records, game.trials, game.delta, game.universe) == (100, 1000, 0.01, None)
    hours = game_of_size(ItemRun(Scale.HOURS, tmp_path), STAND_IN, 0.9, CASES[3])
    assert (hours.records, hours.trials, hours.adjacency, hours.sensitivity) == (300, 1000, "add-remove", "global")


@pytest.mark.parametrize("advantage", [0.01, 0.2562, 0.47])
def test_beliefs_of_the_noise_are_exact_and_so_are_their_errors(advantage: float) -> None:
    """Means and quantiles of simulated campaigns scatter about them as the standard errors say."""
    trials, campaigns = 1000, 400
    exact = exact_belief(advantage, trials)
    mu = 2 * ndtri((1 + advantage) / 2)
    beliefs = expit(mu**2 / 2 + mu * np.random.default_rng(1).standard_normal((campaigns, trials)))
    for name, found in (("mean", beliefs.mean(axis=1)), ("high", np.quantile(beliefs, 0.95, axis=1))):
        scores = (found - getattr(exact, name)) / getattr(exact, f"{name}_error")
        assert abs(scores.mean()) < 4 / np.sqrt(campaigns) + 0.05
        assert 0.85 < scores.std() < 1.15
        assert np.mean(np.abs(scores) > 3) < 0.02


def test_work_that_items_share_counts_once() -> None:
    pieces = games.shared_work(MNIST, (0.52, 0.9))
    assert len(pieces) == 2 * len(CASES)
    assert sum(one[Scale.SMOKE] for one in pieces.values()) == len(CASES) * games.SECONDS[MNIST][0]


def test_the_real_data_takes_over_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for here, expected in ((True, PURCHASE), (False, STAND_IN)):
        monkeypatch.setattr(games, "available", lambda _, here=here: here)
        assert games.three_sets()["Purchase-100"] == expected
    assert games.title_of("Purchase-100", STAND_IN) == "Location-30 (for Purchase-100)"
    assert games.title_of("Adult", "adult") == "Adult"
