"""What is said of somebody else's training, and of impact assessments and frontiers: classes that were false once."""

from __future__ import annotations

from types import SimpleNamespace as Some
from typing import Any

import pytest
from msgspec import structs

pytest.importorskip("torch", reason="audits need the extra 'train'")

from deniable.campaigns.provenance import python_call
from deniable.formatting import begin_sentence
from deniable.report.chapters import audit_chapter as chapters
from deniable.report.chapters.chapter import Section
from deniable.report.chapters.frontier_chapter import _cautions, _judging_records
from deniable.report.chapters.run_chapter import _cautions as run_cautions
from deniable.report.impact_assessment import _about, _measures, _risks, _section
from deniable.report.law_table import law_of_audit
from deniable.report.page_notes import REFUTED, tell_quality
from deniable.report.pictures.picture import Picture
from deniable.report.plain_document import Paragraph
from deniable.report.report_tables import diagnostics, score_rows
from deniable.report.stored_runs import ReportedRun
from deniable.report.words import frontier_words, verdict_words
from deniable.report.words.assumptions import audit_assumptions
from deniable.results.audit_result import Diagnostics
from deniable.results.audit_result import Test as Diagnosed
from deniable.results.shared import Ends, EpsilonBound, Watched
from deniable.utility.knee import NO_SPREAD, find_knee, name_bound, tell_measure
from tests.report.test_words_follow_numbers import audited, undrawn_chapters

__all__ = ["undrawn_chapters"]

VERDICTS = ("violated", "consistent", "other recipe", "cannot judge")


def _test(p_value: float = 0.5, checked: bool = True) -> Diagnosed:
    passed = p_value > 0.01
    return Diagnosed(
        name="a", p_value=p_value, passed=passed, checked=checked, observed="1", expected="1", sentence=None
    )


def examined(verdict: str, *unseen: str, count: int = 1000) -> Any:
    """An audit's document as the examination of somebody else's training with this verdict."""
    cause = "there is no noise" if verdict in ("violated", "other recipe") else None
    found = Diagnostics(cause=cause, false_alarm_rate=0.01, noise_ratio=1.0, not_examined=unseen, tests=(_test(),))
    return audited("belief", 0.75, "tight", count).replace(verdict=verdict, diagnostics=found, confidence=0.95)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_analyses_of_a_claim_do_not_bound_a_training_that_is_another(verdict: str) -> None:
    """ "The truth lies between 0 and 1.77" stood on the page of a training without any noise."""
    document = examined(verdict)
    told = next(p.told for p in chapters._epsilon_part(document).pictures if p.name == "region-of-privacy")
    assert "the truth lies between" not in told
    assert ("The claim is refuted" in told) == (verdict == "violated")
    assert ("only if it is as claimed" in told) == (verdict in ("consistent", "cannot judge"))
    own = audited("belief", 0.75, "tight", 1000)
    assert own.verdict == "consistent"
    assert verdict_words.region_caveat(own) == ""
    assert "the claim" in verdict_words.region_caveat(own.replace(verdict="violated"))


@pytest.mark.usefixtures("undrawn_chapters")
@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_noise_of_another_training_is_called_claimed(verdict: str) -> None:
    document = examined(verdict)
    chapter = chapters.audit_chapter(ReportedRun("a", document))
    terms = dict(audit_assumptions(document))
    assert "The claimed noise allows" in str(chapter.scale and chapter.scale.description)
    assert terms["The noise"].startswith("As claimed: ")
    assert "as if the noise were as claimed" in terms["The observer"]
    assert any(text.startswith("What differs") for text in chapter.cautions) == (verdict == "other recipe")
    assert (
        "The strongest there can be" in dict(audit_assumptions(audited("belief", 0.75, "tight", 1000)))["The observer"]
    )


@pytest.mark.usefixtures("undrawn_chapters")
def test_what_was_not_examined_is_not_released() -> None:
    """ "Release", in green, stood below "Not examined: the final weights"."""
    whole, part = (
        chapters.audit_chapter(ReportedRun("a", examined("consistent", *unseen)))
        for unseen in ((), ("the final weights",))
    )
    assert [found.decision and found.decision.answer for found in (whole, part)] == ["Release", "Not enough evidence"]
    assert (whole.tone, part.tone) == ("good", "open")


@pytest.mark.parametrize("whole", [0.95, 0.99, None])
def test_how_often_violated_is_wrong_is_the_risk_of_the_whole_verdict(whole: float | None) -> None:
    """Limits at a first look have 0.007 % of it: the diagnostics' 1 % and the watch's 2 % were left out."""
    said = dict(audit_assumptions(examined("violated").replace(confidence=whole)))["What a verdict is not"]
    assert ("is wrong in at most" in said) == (whole is not None)
    if whole is not None:
        assert f"at most {100 * (1 - whole):.3g} % of cases" in said


def test_the_bound_of_a_watch_is_proven_too() -> None:
    """ "Proven: at least 0" stood beside "epsilon is at least 1.84"."""
    document = audited("belief", 0.75, "guessing", 20)
    named = {"name": "watch", "method": "m", "rule": None, "kind": "confidence", "assumptions": (), "valid": True}
    bound = EpsilonBound(value=1.84, upper=None, delta=0.01, mu=None, noise=None, **named)  # type: ignore[arg-type]
    watched = Watched(
        trials=20, risk=0.02, wealth=57.0, refuted_after=20, trials_in_sight=None, epsilon=bound, text="Refuted."
    )
    *_, epsilon = score_rows(document.replace(watched=watched))
    assert epsilon[-1] == "proven: at least 1.84"


@pytest.mark.parametrize(
    ("p_value", "checked", "told"), [(0.0, True, "< 1e-12"), (0.25, True, "0.25"), (1.0, False, "-")]
)
def test_no_p_value_is_zero_and_an_untested_one_is_none(p_value: float, checked: bool, told: str) -> None:
    found = Diagnostics(cause=None, false_alarm_rate=0.01, noise_ratio=None, tests=(_test(p_value, checked),))
    assert diagnostics(found).rows[0][2] == told


def test_nobody_becomes_more_than_certain() -> None:
    exact = structs.replace(audited("noise", 1.0, "tight", 100).exact, belief=1.0)
    document = audited("noise", 1.0, "tight", 100).replace(exact=exact)
    assert "certain." in verdict_words.promise(document)
    assert "chance of more" not in verdict_words.promise(document)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_an_assessment_does_not_describe_data_by_a_refuted_claim(verdict: str) -> None:
    told: Any = [(ReportedRun("a", examined(verdict)), Some(promise="Noise of 3.", text="Text."))]
    used = [block.text for block in _about([], told) if isinstance(block, Paragraph)][-1]
    protects = next(block.text for block in _measures(told) if isinstance(block, Paragraph))
    assert ("REFUTED" in used) == (verdict == "violated")
    assert ("protects people" in protects) == (verdict == "consistent")
    assert ("does not protect as claimed" in protects) == (verdict == "violated")


def test_cautions_come_before_what_they_warn_of() -> None:
    """ "No violation found" led the risks of a test mode that protects nobody."""
    chapter = Some(name="a", meaning="No violation found.", cautions=("Test mode.",), labels=("", "Seen"), measured="1")
    first, second, *_ = list(_risks([(ReportedRun("a", Some()), chapter)]))[2:]  # type: ignore[arg-type, list-item]
    assert "Test mode." in str(first)
    assert "No violation found." in str(second)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_is_wrong_with_a_run_leads_its_page(verdict: str) -> None:
    """Three things that no run can show stood above a broken claim, and its cause behind a fold."""
    document: Any = Some(verdict=verdict, verdict_text="Less noise.", not_shown=("where from",))
    first = next(run_cautions(document))
    assert (first == "Less noise.") == (verdict in ("violated", "other recipe"))


def test_words_of_pictures_stand_with_pictures_alone() -> None:
    picture = Picture("roc", "What was recognised", "Up and right.", "Curve.", {}, lambda data: Some())  # type: ignore[arg-type, return-value]
    said = " ".join(str(block) for block in _section(Section("Seen", pictures=(picture,))))
    assert "What was recognised" in said
    assert "Up and right" not in said


def test_the_model_of_a_refuted_claim_has_no_accuracy_of_the_claim() -> None:
    assert tell_quality(examined("violated"), []) == REFUTED
    assert tell_quality(examined("consistent"), []) != REFUTED


def test_test_mode_answers_no_regulator_whatever_its_verdict() -> None:
    for verdict in ("violated", "consistent"):
        document = audited("epsilon", 2.0, "tight", 100, sensitivity="local").replace(verdict=verdict)
        assert {row[2] for row in law_of_audit(document).tables[0].rows} == {"none: test mode protects nobody"}


def test_a_call_names_the_function_that_has_these_arguments() -> None:
    assert python_call("examine", "'digits'", {"trainer": "mine:train"}) == "dn.examine('digits', trainer='mine:train')"


def _frontier(*lost: Ends | None) -> Any:
    """Promises that are all cheap by their means; without noise 80 %, and 50 % by the most common class."""
    free, base = Some(mean=0.8, low=0.79, high=0.81), Some(mean=0.5)
    quality = Some(accuracy=free)
    levels = tuple(
        Some(bound=float(place), lost=ends, strength=None, quality=quality) for place, ends in enumerate(lost)
    )
    return Some(
        knee=Some(cheap_from=0.0, useless_up_to=None),
        levels=levels,
        none=Some(quality=quality),
        metric="accuracy",
        without_model=Some(accuracy=base),
        input=Some(metric="accuracy", promise="epsilon"),
        tuned_measure=lambda quality: quality.accuracy,
    )


@pytest.mark.parametrize(
    ("ends", "shown"), [((-0.01, 0.02), True), ((-0.04, 0.074), False), ((0.009, 0.009), False), ((0.0, 0.03), True)]
)
def test_cheap_is_green_where_the_limits_show_it(ends: tuple[float, float], shown: bool) -> None:
    """Two trainings that lose 1.8 points, between -3.9 and 7.4, were "Cheap" in green."""
    low, high = ends
    document = _frontier(Ends(low=low, high=high), Ends(low=-0.01, high=0.01))
    assert (frontier_words.tone(document) == "good") == shown
    assert frontier_words.outcome(document).startswith("cheap" if shown else "perhaps cheap")


@pytest.mark.parametrize("lost", [(-0.295, 0.138), (-0.1, -0.05)])
def test_a_gain_has_limits_too_and_is_bounded_from_below(lost: tuple[float, float]) -> None:
    """ "It gains 7.9 points or less" stood where others gain more, and where 13.8 points may be lost."""
    quality = {mean: Some(accuracy=Some(mean=mean, low=mean - 0.05, high=mean + 0.05)) for mean in (0.8, 0.879)}
    level: Any = Some(bound=0.9, strength=None, lost=Some(low=lost[0], high=lost[1]), quality=quality[0.879])
    none: Any = Some(bound=None, lost=None, quality=quality[0.8])
    said = find_knee("belief", "accuracy", [level], none, without_model=0.5, answer="0").sentences[-1]
    assert f"gains 7.9 points or more ({-100 * lost[1]:.1f} to {-100 * lost[0]:.1f}" in said
    assert (", perhaps nothing)" in said) == (lost[1] > 0)


def test_trainings_that_came_out_alike_have_no_limits() -> None:
    """ "82.2 % (82.2 to 82.2 %)" of two trainings promised what nobody knows."""
    assert tell_measure("accuracy", Some(mean=0.822, low=0.822, high=0.822)) == f"82.2 % ({NO_SPREAD})"  # type: ignore[arg-type]
    assert tell_measure("accuracy", Some(mean=0.8, low=0.7, high=0.9)) == "80.0 % (70.0 to 90.0 %)"  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [1, 3])
@pytest.mark.parametrize("looked", [True, False])
def test_a_frontier_cautions_of_what_its_promises_leave_open(settings: int, looked: bool) -> None:
    """That one setting was given was a warning; statistics of the data, which no noise protects, were none."""
    document: Any = Some(
        input=Some(tuning="uncovered", settings=settings, validation_records=10),
        tuning_text="NOT covered.",
        encoding=(Some(looks_at_data=looked),),
    )
    found = list(_cautions(document))
    assert ("NOT covered." in found) == (settings > 1)
    assert any("no noise protects" in text for text in found) == looked
    assert ("were judged on 10" in _judging_records(document)) == (settings > 1)


@pytest.mark.parametrize("promise", ["tpr", "ppv", "belief"])
def test_a_badge_keeps_its_capitals(promise: str) -> None:
    """ "Perhaps cheap from ppv 12 % on"."""
    said = begin_sentence(f"cheap from {name_bound(promise, 0.12)} on")
    assert said.startswith("Cheap from ")
    assert name_bound(promise, 0.12) in said
