"""Sentences of attacks, watched runs, samplers and reports against their figures: classes that were false once."""

from __future__ import annotations

import re
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="audits need the extra 'train'")

from deniable.answers import sentences
from deniable.answers.choose import choose_input
from deniable.answers.explain import explain_input
from deniable.answers.parse import parse_choice, parse_release
from deniable.answers.strength import weakness
from deniable.cli import _with_expectation
from deniable.evidence.attack_scores import Scores
from deniable.evidence.examined_claim import Asked
from deniable.evidence.score_audit import judge_scores
from deniable.examination.recorded.checks.noise_checks import NoiseSizes
from deniable.examination.recorded.checks.noise_power import tell_power
from deniable.promises import Epsilon
from deniable.report.chapters.audit_chapter import audit_chapter
from deniable.report.chapters.run_chapter import _meaning
from deniable.report.decision import decide
from deniable.report.impact_assessment import _measures
from deniable.report.page_notes import tell_quality
from deniable.report.report_tables import belief_above, score_rows
from deniable.report.stored_runs import ReportedRun
from deniable.report.words import attack_words, verdict_words
from deniable.report.words.amount_text import allowed_figure, allowed_share
from deniable.utility.knee import find_knee
from tests.report.test_words_follow_numbers import audited, undrawn_chapters

__all__ = ["undrawn_chapters"]

SAMPLINGS: dict[str, dict[str, Any]] = {
    "poisson": {"rate": 0.01, "steps": 100},
    "replace": {"rate": 0.01, "steps": 100, "adjacency": "replace"},
    "fixed": {"sampling": "fixed", "records": 1000, "batch": 10, "steps": 100},
    "shuffled": {"sampling": "shuffled", "steps_per_epoch": 10, "epochs": 2},
    "cyclic": {"sampling": "cyclic", "rate": 0.01, "bands": 4, "steps": 100},
}
FIGURES = [*np.random.default_rng(5).uniform(0, 1, 200).tolist(), 0.3331, 0.33349, 0.9994, 0.999997, 0.9999999, 1.0]


@pytest.mark.parametrize("name", SAMPLINGS)
def test_noise_to_add_is_relative_to_the_sensitivity(name: str) -> None:
    """Banded noise was told as C, where it is C x the largest column norm of the matrix: too little noise."""
    given = dict(SAMPLINGS[name])
    adjacency = given.pop("adjacency", None)
    found = choose_input(*parse_choice({"advantage": 0.2, "delta": 1e-5, **given}, adjacency, "gaussian"))
    sensitivity = sentences.setting(found).partition("the sensitivity is ")[2].partition(". ")[0].rstrip(".")
    for text in (sentences.engineering(found), sentences.mechanism_sentence(found)):
        assert f"{sentences.chosen_noise(found)} x {sensitivity}" in text
        assert ("matrix's inverse" in text) == (name == "cyclic")


@pytest.mark.parametrize("value", FIGURES)
def test_what_is_allowed_is_never_rounded_down(value: float) -> None:
    told = {"just under 1": 1.0, "just under 100 %": 100.0}
    one, percent = allowed_figure(value), allowed_share(value)
    assert told.get(one) or float(one) >= value * (1 - 1e-11)
    assert (told.get(percent) or float(percent.removesuffix(" %"))) >= 100 * value * (1 - 1e-11)
    assert (one == "1") == (value == 1)


def _row(name: str = "lira") -> Any:
    limits = Some(value=0.05, low=-0.1, high=0.2)
    tpr = Some(fpr=0.01, value=0.02, low=0.0, high=0.1)
    return Some(name=name, auc=limits, advantage=limits, tpr=(tpr,), epsilon_lower_bound=Some(value=0.1))


@pytest.mark.parametrize("value", FIGURES[:60])
def test_proven_limits_of_an_attack_are_rounded_up(value: float) -> None:
    proven = Some(epsilon=None, advantage=value, tpr=(Some(fpr=0.01, tpr=value),), delta=1e-3)
    document: Any = Some(proven=proven, attacks=(_row(),), judged=("lira",), input=Some(attack="lira", repeats=5))
    said = attack_words.proven_sentence(document)
    advantage, found = re.findall(r"above ([\d.e-]+), or finds more than ([\d.e-]+) %", said)[0]
    assert float(advantage) >= value * (1 - 1e-11)
    assert float(found) >= 100 * value * (1 - 1e-11)
    *_, last = attack_words.side_by_side(document)
    assert last[-2:] == (advantage, "no limit")


@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("ends", [(0.55, 0.6), (0.4, 0.6), (0.3, 0.45)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_limits_of_one_division_are_not_those_of_the_mean(
    repeats: int, ends: tuple[float, float], epsilon: float
) -> None:
    """A mean of 0.7 stood beside limits of 0.55 to 0.6 as if they were its own."""
    document: Any = Some(
        blind=None,
        average_precision=Some(mean=0.7),
        average_precision_interval=Some(low=ends[0], high=ends[1]),
        epsilon_lower_bound=Some(value=epsilon),
        input=Some(repeats=repeats),
        attacks=(),
    )
    said = attack_words.meaning(document)
    assert (f"0.700, the mean of {repeats} times; limits of the first {ends[0]:.3f} to" in said) == (repeats > 1)
    assert ("worse than guessing" in said) == (ends[1] < 0.5 and epsilon == 0)
    assert ("cannot tell this attack from guessing" in said) == (ends == (0.4, 0.6) and epsilon == 0)


@pytest.mark.parametrize(("value", "high", "asked"), [(0.405, 0.45, True), (0.47, 0.49, False), (0.52, 0.56, False)])
def test_exchanged_files_are_asked_about(value: float, high: float, asked: bool) -> None:
    """LiRA's AUC of .405 stood beside "cannot tell this attack from guessing": the two files were exchanged."""
    document: Any = Some(
        blind=None,
        average_precision=Some(mean=0.5),
        average_precision_interval=Some(low=0.4, high=0.6),
        epsilon_lower_bound=Some(value=0),
        input=Some(repeats=1),
        attacks=(
            Some(name="threshold", auc=Some(value=0.5, high=0.6)),
            Some(name="lira", auc=Some(value=value, high=high)),
        ),
    )
    said = attack_words.meaning(document)
    assert ("Were members and others exchanged?" in said) == asked
    assert ("AUC 0.405, at most 0.450" in said) == asked


@pytest.mark.parametrize("gap", [0.3, -0.2])
@pytest.mark.parametrize("named", [{}, {"noise": 1.0, "epochs": 2}, {"train": "mine:train"}])
def test_shadows_differ_in_points_and_a_named_recipe_is_not_asked_for(gap: float, named: dict[str, Any]) -> None:
    given = {"train": None, "noise": None, "epochs": None, "task": "classification", "members": 100} | named
    shadows = Some(
        records=100, target_loss=None, epochs_loss=None, epochs=1, accuracy_inside=0.5 + gap, accuracy_outside=0.5
    )
    document: Any = Some(input=Some(**given), shadows=shadows, accuracy=Some(members=0.5, non_members=0.5))
    said = attack_words.shadow_caution(document)
    assert said is not None
    assert f"{100 * abs(gap):.3g} percentage points {'more' if gap > 0 else 'less'} of the time" in said
    assert ("Name the recipe" in said) == (not named)


def test_rates_that_need_more_records_are_told_as_no_false_alarm() -> None:
    given = Some(tested=200, repeats=5, delta=0.01, task="classification", attack="lira")
    document: Any = Some(
        input=given,
        judged=(),
        blind=None,
        accuracy=None,
        average_precision=Some(mean=0.6),
        advantage=Some(mean=0.1),
        average_precision_interval=Some(low=0.5, high=0.7),
        epsilon_lower_bound=Some(value=None),
        tpr_at_fpr={"0.001": 0.02, "0.01": 0.05},
    )
    told = dict(attack_words.rows(document))
    assert [label for label in told if "no false alarm in 100" in label] == [
        "Members found (TPR) at 0.1 % FPR (no false alarm in 100), mean of 5 times"
    ]
    assert told["Epsilon at delta 0.01, at least, first time"] == "cannot be told"


@pytest.mark.usefixtures("undrawn_chapters")
@pytest.mark.parametrize("belief", [0.6, 0.7777, 0.9, 0.99951])
@pytest.mark.parametrize("kind", ["tight", "guessing", "broken"])
@pytest.mark.parametrize("count", [20, 1000])
def test_one_bound_has_one_figure(belief: float, kind: str, count: int) -> None:
    """On the scale, in the sentences and in the table, in per cent and never below what the noise allows."""
    document = audited("belief", belief, kind, count)
    chapter, told = audit_chapter(ReportedRun("a", document)), {row[0]: row[1:] for row in score_rows(document)}
    bound, allowed = document.game.belief.bound, allowed_share(document.exact.belief)
    assert f"This noise allows: at most {allowed}" in str(chapter.scale and chapter.scale.description)
    assert belief_above(bound) == f"Belief above {allowed_share(bound)}"
    assert allowed_share(bound) in verdict_words.exceedance_text(document)
    shares = told[f"{belief_above(bound)}: share of trainings"]
    assert all(cell == "-" or "%" in cell for cell in shares)
    assert told[verdict_words_limit(document)][1] == allowed


def verdict_words_limit(document: Any) -> str:
    return f"Belief (limits: but for {verdict_words.rarely(document)}; measured: the largest)"


def test_what_cannot_be_told_from_guessing_is_no_support() -> None:
    """ "Neither contradicted nor supported" stood beside a bar that lay wholly below the promise."""
    found = [
        audited("belief", belief, kind, count)
        for belief in (0.51, 0.55, 0.6)
        for kind in ("tight", "loose", "guessing")
        for count in (20, 100, 1000)
    ]
    undecided = [document for document in found if document.verdict == "cannot judge"]
    assert undecided
    assert all("supports the promise little" in verdict_words.meaning(document) for document in undecided)


@pytest.mark.parametrize("weak", ["weak", "hardly any"])
def test_a_weak_promise_is_why_not_to_release(weak: str) -> None:
    found = decide("consistent", "odd", weak, ("No violation found.",))
    assert found.answer == "Do not release"
    assert f"gives {weak} protection" in found.reasons[1]


def test_measures_name_the_noise_and_whom_it_protects() -> None:
    for sensitivity, whom in (("global", "protects people"), ("local", "protects nobody")):
        document = audited("epsilon", 2.0, "tight", 100, sensitivity=sensitivity)
        told = [(ReportedRun("a", document), Some(text="Consistent."))]
        assert any(whom in str(block) and "times the" in str(block) for block in _measures(told))  # type: ignore[arg-type]


@pytest.mark.parametrize("belief", [0.75, 0.99999, 1.0])
def test_what_a_run_means_follows_its_verdict(belief: float) -> None:
    said = {
        verdict: _meaning(Some(verdict=verdict, claimed_belief=belief, claimed_belief_delta=0.01))  # type: ignore[arg-type]
        for verdict in ("violated", "consistent", "other recipe", "cannot judge")
    }
    assert len(set(said.values())) == 4
    assert {name for name, text in said.items() if "does not hold" in text} == {"violated"}
    assert {name for name, text in said.items() if "cannot tell" in text} == {"cannot judge"}
    assert all(("certain" in text) == (belief == 1) for text in said.values())
    assert all(("but for a chance of 1 in 100" in text) == (belief < 1) for text in said.values())
    assert not any("at most just under" in text for text in said.values())


@pytest.mark.parametrize("scale", [1.0, 0.5, 1.5])
def test_the_noise_that_is_told_is_that_of_all_steps(scale: float) -> None:
    """The least of twenty steps, 0.969, was told as the noise."""
    degrees = np.full(20, 1500.0)
    squares = scale**2 * np.random.default_rng(1).chisquare(1500.0, 20)
    sizes = NoiseSizes(squares, degrees, np.ones(20))
    told = sizes.check(Some(steps=[]), 1e-4)  # type: ignore[arg-type]
    assert told.observed == f"the noise has {sizes.ratio:.3g} x the claimed standard deviation"
    assert abs(sizes.ratio / scale - 1) < 0.02


def test_scores_that_point_the_wrong_way_are_not_called_weak_or_unlucky() -> None:
    """More trials, or luck, do not help where members score lower."""
    generator = np.random.default_rng(0)
    scores = Scores(generator.normal(-2, 1, 300), generator.normal(0, 1, 300))
    found = judge_scores(scores, Asked(Epsilon(1.0, 1e-5), rows_from="trainings"))
    assert found.verdict == "cannot judge"
    assert "Members score lower" in found.verdict_text
    assert "bad luck" not in found.verdict_text


@pytest.mark.parametrize("single", [None, 0.4])
def test_a_step_that_was_not_recomputed_is_spoken_of_only_where_there_is_one(single: float | None) -> None:
    assert "not recomputed" not in tell_power(0.97, single, all_recomputed=True)
    assert "not recomputed" in tell_power(0.97, single, all_recomputed=False)


def test_what_no_number_can_hold_is_told_as_infinite() -> None:
    assert Epsilon.format_score(1.7976931348623157e308) == "infinite"
    assert Epsilon.format_score(2.54e8) == "254,000,000"


def test_no_axis_shows_the_commands_of_a_typesetter(joint: str) -> None:
    assert "mathdefault" not in joint


REASON = re.compile(r"may (?:be right|become) (just under 100|[\d.]+) %.*?: ([a-z ]+) \((?:strong up to ([\d.]+) %)?")


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.35, 0.4093, 0.5, 0.7, 1.0, 2.0, 20.0])
def test_no_reason_calls_strong_what_is_not(noise: float) -> None:
    """A guess that rises from 1 % to 99.97 % was "moderate"; an attack that is right 74 % of the time "strong"."""
    found = explain_input(*parse_release({"noise": noise, "rate": 0.005, "steps": 6000, "delta": 1e-5}, None)).strength
    assert found is not None
    belief, success, right = (REASON.search(reason).groups() for reason in found.reasons)  # type: ignore[union-attr]
    assert right[1] in {"not weak", "weak", "hardly any"}
    names = ("strong", "moderate", "weak", "hardly any")
    worst = max(names.index(name) for name in (belief[1], success[1], right[1].replace("not weak", "strong")))
    assert names[worst] == found.name
    for share, name, _ in (success,):
        rises = 100.0 if share.startswith("just") else float(share)
        assert (name == "hardly any") == (rises > 91.05) or 90.9 < rises < 91.1
        assert (name == "strong") == (rises <= 2)


@pytest.mark.parametrize(("advantage", "name"), [(0.9, "hardly any"), (0.5, "weak"), (0.499, None), (0.899, "weak")])
def test_a_limit_that_is_told_is_the_limit(advantage: float, name: str | None) -> None:
    """Noise chosen for an advantage of 0.9 keeps 0.8999999, and 95 % was told as weak beside "hardly any from 95 %"."""
    assert weakness(advantage - 1e-8, 0.5) == name


@pytest.mark.parametrize("given", [{"sampling": "shuffled"}, {"mechanism": "laplace"}])
def test_a_frontier_says_nothing_of_other_releases(given: dict[str, Any]) -> None:
    """Its trainings drew Poisson batches: with shuffled ones the same promise takes far more noise."""
    values: dict[str, Any] = {"advantage": 0.2, "delta": 1e-5}
    values |= SAMPLINGS["shuffled"] if "sampling" in given else {}
    found = choose_input(*parse_choice(values, None, given.get("mechanism", "gaussian")))
    with pytest.raises(ValueError, match="says nothing of this release"):
        _with_expectation(found, "anywhere")
    assert "%" not in tell_quality(found, [])


def test_a_loss_that_may_be_nothing_is_not_called_one() -> None:
    """ "No promise is cheap: it loses 5.1 points (-2.7 to 12.9)"."""

    def level(mean: float, lost: tuple[float, float] | None) -> Any:
        kept = None if lost is None else Some(low=lost[0], high=lost[1])
        return Some(bound=0.9, lost=kept, quality=Some(accuracy=Some(mean=mean, low=mean - 0.05, high=mean + 0.05)))

    cases = ((-0.027, "shown to be cheap", True), (0.04, "is cheap", False), (0.01, "shown to be", False))
    for low, shown, may in cases:
        knee = find_knee(
            "belief", "accuracy", [level(0.75, (low, 0.129))], level(0.8, None), without_model=0.5, answer="0"
        )
        said = " ".join(knee.sentences)
        assert shown in said
        assert ("perhaps nothing" in said) == may


@pytest.mark.parametrize("batch", [7, 100, 300, 1024, 4096])
def test_the_signal_to_noise_of_a_step_is_never_below_the_figure(batch: int) -> None:
    values = {"noise": 1.6811, "records": 60_000, "batch": batch, "epochs": 1}
    answer = explain_input(*parse_release(values, None))
    told = re.search(r"at most ([\d.,]+)\. A batch.* noise of ([\d.]+) C", sentences.signal(answer))
    assert told is not None
    assert float(told[1].replace(",", "")) >= batch / 1.6811
    assert float(told[2]) == 1.6811
