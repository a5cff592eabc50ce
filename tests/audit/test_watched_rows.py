"""Rows of a file as a watch: any share of members, any scale; a file that grows keeps its evidence."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtrc

from deniable.evidence.anytime.watched_rows import (
    claimed_loss,
    log_odds_from_earlier,
    order_assumption,
    take_trials,
    watch_rows,
)
from deniable.evidence.attack_scores import Scores
from deniable.evidence.examined_claim import Asked
from deniable.evidence.score_audit import judge_scores
from deniable.mechanisms import Adjacency, GaussianDP, Training
from deniable.promises import Epsilon
from deniable.scores import privacy_loss

GAUSSIAN = privacy_loss(GaussianDP(1.0))


def draw_scores(mu, members, others, generator, change=lambda x: x):
    return Scores(change(generator.normal(mu, 1, members)), change(generator.normal(0, 1, others)))


def naive_log_odds(score, member):
    """Each of the first hundred, one at a time."""
    found = []
    for i, value in enumerate(score):
        earlier, kind = score[:i], member[:i]
        half = [(np.sum(e < value) + np.sum(e <= value)) / 2 for e in (earlier[kind], earlier[~kind])]
        below, above = half[0], np.sum(~kind) - half[1]
        found.append(log((below + 0.5) / (kind.sum() + 1)) - log((above + 0.5) / ((~kind).sum() + 1)))
    return found


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_log_odds_come_from_earlier_rows_alone(seed, ties):
    generator = np.random.default_rng(seed)
    score, member = generator.normal(size=100), generator.random(100) < 0.5
    score = score.round() if ties else score
    assert log_odds_from_earlier(score, member) == pytest.approx(naive_log_odds(score, member), abs=1e-12)
    longer = log_odds_from_earlier(np.append(score, generator.normal(size=500)), np.append(member, np.ones(500, bool)))
    assert (longer[:100] == log_odds_from_earlier(score, member)).all()


@given(st.integers(1, 300), st.integers(1, 300))
def test_every_row_is_taken_once_and_in_order(members, others):
    score, member = take_trials(Scores(np.arange(members), 1000 + np.arange(others)))
    assert (score[member] == np.arange(member.sum())).all()
    assert (score[~member] == 1000 + np.arange((~member).sum())).all()
    assert member.sum() <= members
    assert (~member).sum() <= others
    assert member.sum() == members or (~member).sum() == others  # until one kind is used up


def test_a_file_that_grows_keeps_its_trials():
    scores = draw_scores(2.0, 300, 300, np.random.default_rng(0))
    whole = watch_rows(scores, GAUSSIAN, 0.05)
    refuted = whole.refuted_after
    assert refuted is not None
    for rows in (50, 120, 200):
        part = watch_rows(Scores(scores.members[:rows], scores.others[:rows]), GAUSSIAN, 0.05)
        shared = [tally.trials for tally in part.looked[:-1]]
        assert shared == [tally.trials for tally in whole.looked[: len(shared)]]
        assert part.log_wealth[:-1] == pytest.approx(whole.log_wealth[: len(shared)])
        assert part.refuted_after is None or part.refuted_after <= refuted


CHANGES = {
    "as they are": lambda x: x,
    "another scale": lambda x: np.exp(3 * x),
    "hard labels": lambda x: (x > 0.5).astype(float),
    "rounded": np.round,
}


@pytest.mark.parametrize(("change", "share"), [*((name, 0.1) for name in CHANGES), ("as they are", 0.5)])
def test_a_kept_claim_is_rarely_ever_refuted(change, share):
    """Of changed scores, few members alone: they are the same scores in either share."""
    generator, refuted, change = np.random.default_rng(1), 0, CHANGES[change]
    for _ in range(30):
        members = int(2000 * share)
        found = watch_rows(draw_scores(1.0, members, 2000 - members, generator, change), GAUSSIAN, 0.05)
        refuted += found.refuted_after is not None
    assert not refuted or bdtrc(refuted - 1, 30, 0.05) > 1e-3


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_broken_claim_is_caught(change):
    generator, needed = np.random.default_rng(2), []
    for _ in range(15):
        found = watch_rows(draw_scores(2.0, 200, 200, generator, change), GAUSSIAN, 0.05)
        needed.append(found.refuted_after or inf)
    assert np.median(needed) <= 150


def test_sorted_rows_are_no_watch():
    scores = draw_scores(2.0, 200, 200, np.random.default_rng(3))
    assert order_assumption(scores).holds is None
    for ordered in (np.sort(scores.members), -np.sort(-scores.members)):
        assert order_assumption(Scores(ordered, scores.others)).holds is False
    asked = Asked(Epsilon(0.5, 1e-5), method="watch", rows_from="trainings")
    result = judge_scores(Scores(np.sort(scores.members), np.sort(scores.others)), asked)
    assert result.verdict == "cannot judge"
    assert judge_scores(scores, asked).verdict == "violated"


def test_orders_are_rarely_called_odd():
    generator = np.random.default_rng(4)
    values = [order_assumption(draw_scores(1.0, 40, 40, generator, np.round)).p_value for _ in range(300)]
    assert np.mean(np.array(values) < 0.05) < 0.1


def test_the_claim_of_a_training_is_that_of_its_epsilon():
    training = Training(1.0, 0.1, 50, Adjacency.ADD_REMOVE)
    for epsilon in (0.5, 2.0):
        assert claimed_loss(Epsilon(epsilon, 1e-5), training).epsilon(1e-5) == pytest.approx(epsilon, rel=1e-6)
    assert claimed_loss(Epsilon(2.0, 1e-5), None).epsilon(1e-5) == pytest.approx(2.0)


@pytest.mark.parametrize("training", [None, Training(1.0, 1.0, 1, Adjacency.ADD_REMOVE)])
@pytest.mark.parametrize("truth", [0.3, 1.0, 3.0])
def test_the_verdict_is_that_of_the_watch(training, truth):
    scores = draw_scores(truth, 400, 400, np.random.default_rng(5))
    asked = Asked(Epsilon(4.4, 1e-5) if training else Epsilon(1.0, 1e-5), training, "watch", rows_from="trainings")
    result = judge_scores(scores, asked)
    watched = result.watched
    assert watched is not None
    assert (result.verdict == "violated") == (watched.refuted_after is not None)
    assert watched.epsilon.value == result.measured.epsilon.lower_bound.value
    assert watched.text in " ".join(result.notes)
    assert "rows" in watched.text
    if result.verdict == "cannot judge":
        assert "would" in result.verdict_text or "enough" in result.verdict_text


def test_without_a_watch_there_is_none():
    asked = Asked(Epsilon(1.0, 1e-5), rows_from="trainings")
    assert judge_scores(draw_scores(2.0, 100, 100, np.random.default_rng(6)), asked).watched is None
    with pytest.raises(ValueError, match="independent trainings"):
        Asked(Epsilon(1.0, 1e-5), method="watch", rows_from="one-run")
