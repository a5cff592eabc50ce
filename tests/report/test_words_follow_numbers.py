"""Sentences, badges and colours against the figures beside them, over everything that an audit or a claim can be.

No training is run: trials are drawn from the law that the strongest observer's evidence has, and go through the same
functions as real ones.
"""

from __future__ import annotations

import re
from functools import cache
from io import StringIO
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest
from msgspec import structs

pytest.importorskip("torch", reason="audits need the extra 'train'")

from rich.console import Console

from deniable.answers import sentences as told
from deniable.answers.explain import explain_input
from deniable.answers.parse import parse_release
from deniable.answers.strength import from_even, weakness
from deniable.campaigns.audit import judge
from deniable.campaigns.campaign import Plan, least_noise
from deniable.cli.show import show_audit as text_of_audit
from deniable.evidence.attack_scores import Scores
from deniable.evidence.examined_claim import Asked
from deniable.evidence.measured import Trials
from deniable.evidence.score_audit import judge_scores
from deniable.formatting import percent_at_most, told_apart
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Epsilon, audited_promise
from deniable.report.chapters.audit_chapter import audit_chapter
from deniable.report.chapters.chapter import Chapter
from deniable.report.chapters.verdict_chapter import _rates, verdict_chapter
from deniable.report.pictures.epsilon_pictures import _foot
from deniable.report.report_tables import may_exceed
from deniable.report.stored_runs import ReportedRun
from deniable.report.words import attack_words, verdict_words
from deniable.report.words.amount_text import share
from deniable.results.base import plain
from deniable.results.compare_result import NamedEpsilons, RegionRow
from deniable.results.shared import MeasuredLimits, Provenance
from deniable.training import TrainingSettings

EPSILONS = (0.01, 0.5, 2.0, 8.0, 50.0)
ONE_STEP = Training(1.0, 1.0, 1, Adjacency.REPLACE)
KINDS = {"tight": 1.0, "loose": 0.3, "broken": 4.0, "tied": 1.0, "guessing": 0.0}
NEVER = re.compile(
    r"hardly a difference|clearly below|% less|could be saved|\d%|at most over|\bnan\b|\binf\b|\bNone\b"
    r"|(?<![\d.,])\b00[0-4]\b(?!\.)|ERRATA|Theorem 3|\d levels? of .*\b1 levels"
)


def _trials(noise: float, kind: str, count: int) -> Trials:
    """Evidence of an observer of one Gaussian step: log-likelihood ratios, normal with variance mu^2, mean mu^2 / 2."""
    generator = np.random.default_rng(count)
    shift = KINDS[kind] / noise
    inside = np.arange(count) % 2 == 0
    ratio = generator.normal(np.where(inside, 1, -1) * shift**2 / 2, shift)
    if kind == "tied":
        ratio = np.sign(ratio) * min(shift, 3.0)
    length = np.full((count, 1), 6.0)
    return Trials(inside, ratio[:, None], length, noise * length)


@cache
def audited(name: str, bound: float, kind: str, count: int, *, delta: float = 0.01, sensitivity: str = "global") -> Any:
    """An audit's document."""
    promise = audited_promise({name: bound}, delta)
    noise = least_noise(promise, delta, ONE_STEP)
    training = TrainingSettings("digits", noise, steps=1, sensitivity=sensitivity, adjacency="replace")  # type: ignore[arg-type]
    origin = {"data": "digits", "data_sha256": "0" * 64, "records": 100, "measure": "ssim", "search": "all"}
    source = Provenance(versions={}, data="digits", usual_block=True)
    plan = Plan(promise, delta, "exact", training, None, count, 0, origin, source)  # type: ignore[arg-type]
    return judge(plan, _trials(noise, kind, count)).replace(seconds=1.0, trials_per_second=1.0)


@pytest.fixture
def undrawn_chapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.report.chapters.audit_chapter._parts", lambda document: ())
    monkeypatch.setattr("deniable.report.chapters.verdict_chapter._parts", lambda document: ())


def said(chapter: Chapter) -> str:
    shown = () if chapter.scale is None else (chapter.scale.description, chapter.scale.note)
    told = (chapter.verdict, chapter.promise, chapter.measured, chapter.meaning, chapter.text, *chapter.cautions)
    return " ".join((*told, *shown))


def printed(document: Any) -> str:
    console = Console(file=StringIO(), width=200)
    for part in text_of_audit._parts(document, every_estimator=True):
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def check_audit(document: Any) -> None:
    chapter = audit_chapter(ReportedRun("a", document))
    text, terminal = said(chapter), printed(document)
    for whole in (text, terminal):
        assert not NEVER.search(whole), (NEVER.search(whole), whole)
    limits, exact = verdict_words.verdict_limits(document), document.exact
    below = all(high < allowed for _, high, allowed in limits)
    assert ("stays below" in text) <= (below and document.verdict == "consistent")
    low, high, allowed = limits[0]
    for whole in (text, terminal):
        assert ("agrees with the" in whole) <= (0 < low <= allowed <= high)
        assert ("is below the" in whole) <= (high < allowed)
    assert ("No violation found" in text) == (document.verdict == "consistent")
    assert (chapter.tone == "bad") >= (document.verdict == "violated")
    weak = exact.advantage >= 0.5 or exact.belief >= 0.99
    if chapter.tone == "good":
        assert document.verdict == "consistent"
        assert not weak
        assert low > 0
        assert document.input.sensitivity == "global"
    if weak and document.verdict == "consistent":
        assert "protection" in chapter.verdict
        assert "guess right" in " ".join(chapter.cautions)
    if chapter.scale is not None and chapter.scale.limit is not None and "stays below" in text:
        assert chapter.scale.bars[-1].end <= chapter.scale.limit
    assert (document.measured.belief.violation_interval.low > exact.belief_delta) <= (
        "more often than" in text or document.verdict == "violated"
    )


@pytest.mark.usefixtures("undrawn_chapters")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_audits_of_any_epsilon(epsilon: float, kind: str) -> None:
    for count in (10, 40, 1000):
        check_audit(audited("epsilon", epsilon, kind, count))


@pytest.mark.usefixtures("undrawn_chapters")
@pytest.mark.parametrize("promise", [("belief", 0.9), ("belief", 0.999), ("advantage", 0.1), ("noise", 5.0)])
def test_audits_of_any_promise(promise: tuple[str, float]) -> None:
    for kind in KINDS:
        check_audit(audited(*promise, kind, 400))
    check_audit(audited(*promise, "tight", 100_000))
    check_audit(
        audited(*promise, "tight", 100, delta=1e-300) if promise[0] != "belief" else audited(*promise, "tied", 10)
    )


@pytest.mark.usefixtures("undrawn_chapters")
def test_what_the_sweep_must_find() -> None:
    """The sweep sees what it is for: red and warned at epsilon 20, green where a promise is kept and shown to be."""
    sound, weak = audited("belief", 0.9, "tight", 1000), audited("epsilon", 20.0, "tight", 1000)
    assert audit_chapter(ReportedRun("a", sound)).tone == "good"
    chapter = audit_chapter(ReportedRun("a", weak))
    assert (chapter.tone, chapter.verdict) == ("bad", "Consistent, but hardly any protection")
    assert "just under 100 % sure" in chapter.promise
    assert audit_chapter(ReportedRun("a", audited("belief", 0.9, "broken", 1000))).verdict == "Violated"
    test_mode = audit_chapter(ReportedRun("a", audited("belief", 0.9, "tight", 1000, sensitivity="local")))
    assert (test_mode.tone, test_mode.last) == ("open", True)
    broken = audit_chapter(ReportedRun("a", audited("belief", 0.9, "broken", 1000, sensitivity="local")))
    assert (broken.tone, broken.verdict, broken.last) == ("open", "Test mode: violated", True)
    assert "NOT private" in " ".join(test_mode.cautions)
    loose = audit_chapter(ReportedRun("a", audited("belief", 0.9, "loose", 100_000)))
    assert "Do not reduce the noise" in loose.meaning


@pytest.mark.usefixtures("undrawn_chapters")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_verdicts_on_scores(epsilon: float, kind: str) -> None:
    noise = least_noise(Epsilon(epsilon, 1e-5), 1e-5, ONE_STEP)
    for count in (20, 1000):
        trials = _trials(noise, kind, count)
        ratio = trials.log_likelihood_ratio[:, 0]
        scores = Scores(ratio[trials.trained_on_d], ratio[~trials.trained_on_d])
        document = judge_scores(scores, Asked(Epsilon(epsilon, 1e-5)))
        chapter, bound = verdict_chapter(ReportedRun("v", document)), document.measured.epsilon.lower_bound
        text = said(chapter)
        assert not NEVER.search(text), (NEVER.search(text), text)
        less = bound.upper is not None and bound.upper < epsilon
        assert ("shows less than is claimed" in text) <= less
        assert (chapter.tone == "good") <= (document.verdict == "consistent" and epsilon < 1.1)
        assert (bound.value is None or bound.value > epsilon) <= (document.verdict != "consistent")


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-5, 0.3, 0.7])
def test_explanations_lead_with_what_holds(delta: float, prior: float) -> None:
    for epsilon in (0.0, 0.01, 0.1, 1.0, 3.0, 10.0, 50.0):
        values = {"epsilon": epsilon, "delta": delta, "prior": prior, "fpr": (0.01,)}
        document = explain_input(*parse_release(values, None))
        scores, text = plain(document.scores), told.meaning(document)
        assert not NEVER.search(text + told.assessment(document))
        assert scores["belief"] >= document.bounds["theorem_2"].belief
        shown = percent_at_most(scores["belief"])
        assert shown in text if scores["belief"] < 1 else "certain" in text
        assert text in told.assessment(document)
        weak = weakness(scores["advantage"], from_even(scores["belief"], prior))
        often = scores["belief"] < 1 and scores["belief_delta"] > 0.01
        assert (told.warning(document) != "") == (weak is not None or often)
        assert told.warning(document) in told.assessment(document)


def test_a_tiny_prior_does_not_end_at_nothing() -> None:
    document = explain_input(*parse_release({"gdp": 5.0, "prior": 5e-324}, None))
    assert document.scores.belief > 5e-324
    assert "may become 0 %" not in told.warning(document)


def test_a_bare_guarantee_is_kept_by_every_release() -> None:
    """The release that reveals all with probability delta, else randomizes, exceeds no told belief too often."""
    epsilon, delta = 1.0, 1e-3
    scores = plain(explain_input(*parse_release({"epsilon": epsilon, "delta": delta}, None)).scores)
    # merging the revealing outcome with one of m x delta gives loss ln((1 + m) / (m e^-epsilon)) with (1 + m) delta
    for merged in np.geomspace(0.01, 100, 50):
        belief = 1 / (1 + merged * np.exp(-epsilon) / (1 + merged))
        assert (1 + merged) * delta <= scores["belief_delta"] or belief <= scores["belief"] * (1 + 1e-12)


def attacked(low: float, epsilon: float, differs: bool = False) -> str:
    """The outcome of an attack of which these figures are known."""
    figures = Some(
        blind=Some(differs=differs),
        average_precision_interval=Some(low=low, high=1.0),
        epsilon_lower_bound=Some(value=epsilon),
    )
    return attack_words.outcome(figures)  # type: ignore[arg-type]


def test_an_attack_that_proves_an_epsilon_is_not_called_guessing() -> None:
    assert attacked(0.49, 0.0635) == "gives something away"
    assert attacked(0.49, 0.0) == "nothing shown"
    assert attacked(0.51, 0.0) == "gives members away"
    assert attacked(0.9, 2.0, differs=True) == "cannot be told"


@pytest.mark.parametrize("epsilon", [0.0, 1.67])
def test_an_attack_that_may_be_chance_is_not_said_to_be(epsilon: float) -> None:
    """ "No better than guessing" was said of an average precision of 1 on 8 records."""
    figures = Some(
        blind=Some(differs=False),
        average_precision=Some(mean=0.99),
        average_precision_interval=Some(low=0.115, high=1.0),
        epsilon_lower_bound=Some(value=epsilon),
        input=Some(repeats=1),
        attacks=(),
    )
    said = attack_words.meaning(figures)  # type: ignore[arg-type]
    assert "0.990, limits 0.115 to 1.000; guessing has 0.5" in said
    assert "no better" not in said
    assert ("epsilon of at least 1.67" in said) == (epsilon > 0)


@pytest.mark.usefixtures("undrawn_chapters")
def test_what_no_number_can_be_below_or_above_is_not_said() -> None:
    """A belief of 100 % is never exceeded, one training is not right half of the time, and 0 is a number to draw."""
    assert "100 % belief" not in printed(audited("epsilon", 50.0, "tight", 100))
    alone = MeasuredLimits(value=0.0, low=-1.0, high=1.0)
    assert "50 %" not in verdict_words.guess_text(alone)
    unknown = NamedEpsilons(naive=None, advanced=None, rdp=None)
    assert _foot([RegionRow(noise=1.0, exact=0.0, lower=0.0, named=unknown)]) > 0


def test_a_promise_that_was_not_made_is_not_shown() -> None:
    """Of an advantage no belief is promised; noise of a weaker analysis keeps a belief more often than is allowed."""
    document = audited("advantage", 0.1, "tight", 100)
    failure = document.exact.belief_delta
    assert may_exceed(document) == (None, failure)
    claimed = structs.replace(document.claimed, belief=0.9)
    assert may_exceed(document.replace(claimed=claimed)) == (failure, None)


def test_no_epsilon_at_a_large_delta_is_not_called_guessing() -> None:
    """Scores whose advantage is surely above 0 may prove no epsilon at a delta of 0.3."""
    generator = np.random.default_rng(0)
    scores = Scores(generator.normal(1, 1, 50), generator.normal(0, 1, 950))
    document = judge_scores(scores, Asked(Epsilon(1.0, 0.3)))
    assert document.verdict == "cannot judge"
    assert document.measured.advantage.low > 0
    assert "guessing" not in document.verdict_text


def test_guessing_finds_as_many_members_as_it_accuses_others() -> None:
    """It was drawn as a straight line over a logarithmic axis: 25 % of the members at 0.1 % wrong alarms."""
    generator = np.random.default_rng(0)
    document = judge_scores(Scores(generator.normal(1, 1, 30), generator.normal(0, 1, 30)), Asked(Epsilon(1.0, 1e-5)))
    picture = _rates(document)
    drawn = picture.draw(picture.data)
    line = next(line for line in drawn.axes[0].lines if line.get_label() == "guessing")
    shown = np.interp(np.log(0.001), np.log(line.get_xdata()), line.get_ydata())
    assert shown == pytest.approx(0.001, rel=0.05)


@pytest.mark.parametrize(("low", "limit"), [(2.0004, 2.0), (2.93, 1.5), (0.26318, 0.26317834), (1.0000000001, 1.0)])
def test_a_bound_is_told_apart_from_the_limit_that_it_is_above(low: float, limit: float) -> None:
    """An audit said "epsilon is above 2, more than the 2 that was promised"."""
    found, most = map(float, told_apart(low, limit))
    assert limit - 1e-9 <= most < found <= low


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "50 %"), (0.500044, "50.0044 %"), (0.4999956, "49.99956 %"), (0.0105, "1.05 %"), (0.0097, "0.97 %")],
)
def test_shares_near_a_half_or_a_limit_keep_their_digits(value: float, text: str) -> None:
    """Limits of 49.996 % and 50.004 % were told as 50 % to 50 %; 1.05 % as 1 %, beside 1 % that is allowed."""
    assert share(value) == text


@pytest.mark.usefixtures("undrawn_chapters")
def test_a_test_mode_promises_nothing() -> None:
    document = audited("epsilon", 2.0, "tight", 1000, sensitivity="local")
    chapter = audit_chapter(ReportedRun("a", document))
    assert chapter.scale is not None
    assert chapter.scale.description.startswith("Tested: at most 2;")
    assert "Promised" not in said(chapter)
    assert (chapter.labels[0], chapter.scale.beyond) == ("Tested", "contradict the theory")
    assert "promised" not in printed(document).replace("Tested, not promised", "")
