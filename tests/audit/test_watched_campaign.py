"""Campaigns that end when the answer is certain: at the same trial everywhere, and with the risk shared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plans import planned

import deniable as dn
from deniable.campaigns import audit as campaign_audit
from deniable.campaigns.audit import judge, run, watch_over
from deniable.campaigns.campaign import Plan
from deniable.engines import Local
from deniable.evidence.anytime.watch import WATCH_SHARE, Watch, limits_confidence, looks
from deniable.evidence.measured import Trials
from deniable.mechanisms import Training
from deniable.report.chapters.audit_chapter import audit_chapter
from deniable.report.report_tables import scores
from deniable.report.stored_runs import ReportedRun
from deniable.results import read_result
from deniable.scores import privacy_loss
from deniable.store import open_local_store

SMALL: dict[str, Any] = {"steps": 3, "records": 20, "trials_per_block": 5}


@pytest.fixture
def too_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch tests a claim of twelve times the noise that the training has."""

    def watch(plan: Plan, confidence: float) -> Watch:
        training = replace(Training.of(plan.training), noise=12 * plan.training.noise)
        return Watch.beside_limits(privacy_loss(training.mechanism, training.adjacency), plan.trials, confidence)

    monkeypatch.setattr(campaign_audit, "watch_over", watch)


@pytest.mark.usefixtures("too_strict")
def test_a_campaign_ends_once_the_answer_is_certain(tmp_path):
    """And so it does where a store has blocks beyond that one."""
    plan = planned("digits", noise=1.0, trials=100, sensitivity="local", **SMALL)
    ended, trials = run(plan, engine=Local(1), stop="certain")
    assert ended.watched is not None
    assert ended.verdict == "violated"
    assert len(trials) == ended.watched.refuted_after == ended.measured.trials < 100
    assert len(trials) % 5 == 0
    with open_local_store(tmp_path, False) as store:
        full, _ = run(plan, store, engine=Local(1), stop="never")
    with open_local_store(tmp_path, True) as store:
        again, same = run(plan, store, engine=Local(1), stop="certain")
    assert full.watched is None
    assert full.measured.trials == 100
    assert (same.log_likelihood_ratio == trials.log_likelihood_ratio).all()
    unlike = {"seconds": None, "trials_per_second": None, "finished": None}
    assert again.replace(**unlike) == ended.replace(**unlike)
    assert f"ended after {len(trials)} of 100" in " ".join(ended.notes)
    assert "was refuted" in ended.verdict_text
    assert "refuted" in ended.summary()
    limits = ended.game.epsilon.lower_bound.confidence
    assert limits > 0.999
    assert f"{100 * limits:.3g} %" == "100 %"
    assert "99.9" in str(scores(ended))  # rounded down, never to 100 %
    assert "100 % limits" not in str(scores(ended))
    assert read_result(json.loads(ended.to_json())).watched == ended.watched


def test_a_claim_that_is_kept_is_watched_to_the_end():
    result = dn.audit("digits", noise=5, processes=1, trials=40, stop="certain", **SMALL)
    watched = result.watched
    assert watched is not None
    assert result.measured.trials == watched.trials == 40
    assert watched.risk == pytest.approx(0.025)
    assert watched.refuted_after is None
    assert watched.text in result.notes
    assert result.provenance is not None
    assert "stop=" in (result.provenance.command or "")
    assert watched.trials_at_half_noise is not None
    assert f"{watched.trials_at_half_noise:,} trials" in watched.text


def test_stop_is_certain_or_never():
    with pytest.raises(ValueError, match="stop must be"):
        dn.audit("digits", noise=5, processes=1, trials=5, stop="sometimes", **SMALL)


@pytest.mark.parametrize(("trials", "per_block"), [(1000, 64), (200, 1), (10, 50)])
def test_watch_and_limits_share_the_risk(trials, per_block):
    """Whenever the campaign ends, all statements together are wrong with at most 1 - confidence."""
    ends = looks(trials, per_block)
    spent = sum(1 - limits_confidence(0.95, played, ends) for played in ends)
    assert spent + WATCH_SHARE * 0.05 == pytest.approx(0.05)


def test_limits_and_watch_may_both_find_it():
    """Fabricated trials of far too little noise: the words have both findings."""
    plan = planned("digits", noise=50.0, trials=100, **SMALL)
    generator = np.random.default_rng(0)
    on_d = generator.random(100) < 0.5
    odds = np.where(on_d, 9.0, -9.0)[:, None] + np.zeros((1, 3))
    trials, watch = Trials(on_d, odds, np.ones((100, 3)), np.ones((100, 3))), watch_over(plan, 0.95)
    assert watch.add(trials)
    result = judge(plan, trials, 0.95, watch.evidence())
    assert result.verdict == "violated"
    assert "The training's advantage is above" in result.verdict_text
    assert "was refuted" in result.verdict_text
    assert (
        audit_chapter(ReportedRun("one", result)).sure == "97.5 % confidence"
    )  # the watch's; limits of early ends have more
