"""The chapter of an audit, our own training or somebody else's, and of an exposure without a campaign."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import at_least, short
from deniable.report.chapters.chapter import Chapter, Section, Table
from deniable.report.decision import decide
from deniable.report.law_table import law_of_audit
from deniable.report.page_notes import rerun
from deniable.report.pictures.epsilon_pictures import epsilon_picture, region_data, region_picture
from deniable.report.pictures.exposure_pictures import exposure_picture
from deniable.report.pictures.observer_pictures import course_pictures, watch_picture
from deniable.report.pictures.scale_chart import Aim, Row, ScaleChart, epsilon_axis, promise_scale, share_axis
from deniable.report.report_tables import diagnostics, estimates, estimators, exposed_table, reach, scores
from deniable.report.stored_runs import ReportedRun, title
from deniable.report.words import verdict_words
from deniable.report.words.amount_text import allowed_figure, figure
from deniable.report.words.assumptions import audit_assumptions
from deniable.report.words.final_model_words import FINAL_NOTE, final_head, final_rows, final_sentences
from deniable.results.audit_result import AuditResult, ExposureResult, ExposureSummary, FinalModel
from deniable.results.shared import MeasuredLimits


def audit_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of an audit."""
    document = run.result
    assert isinstance(document, AuditResult)
    verdict, weak, test_mode = (
        document.verdict,
        verdict_words.protection(document),
        verdict_words.is_test_mode(document),
    )
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=verdict_words.badge(verdict, weak, test_mode),
        tone=verdict_words.audit_tone(document),
        sure=(_alarm(document) or _refutation(document) or _sure(document)) if verdict == "violated" else "",
        promise=verdict_words.promise(document),
        measured=verdict_words.measured_text(document),
        meaning=verdict_words.meaning(document),
        text=verdict_words.headline(document) if document.diagnostics is None else document.verdict_text,
        cautions=tuple(verdict_words.cautions(document)),
        scale=_scale(document),
        parts=tuple(_parts(document)),
        finished=document.finished,
        labels=(verdict_words.aim(document), "Measured"),
        decision=decide(
            verdict,
            verdict_words.audit_tone(document),
            weak,
            (verdict_words.meaning(document), verdict_words.measured_text(document)),
            enough=document.diagnostics is None or not document.diagnostics.not_examined,
            test_mode=test_mode,
            cause_named=document.diagnostics is not None and bool(document.diagnostics.cause),
            missing=document.verdict_text if verdict == "cannot judge" else "",
        ),
        last=test_mode,
    )


def _alarm(document: AuditResult) -> str:
    """How sure a diagnostic's finding is; nothing where none was found, or where it is no matter of chance."""
    found = document.diagnostics
    rate = found.false_alarm_rate if found is not None and found.cause else None
    return f"{100 * (1 - rate):.4g} % confidence" if rate else ""


def _refutation(document: AuditResult) -> str:
    """How sure a watch's finding is; nothing where it has none."""
    watched = document.watched
    if watched is None or watched.refuted_after is None:
        return ""
    return f"{at_least(100 * (1 - watched.risk), 4)} % confidence"


def _sure(document: AuditResult) -> str:
    if not document.measured.trials:
        return ""
    return f"{at_least(100 * document.game.epsilon.lower_bound.confidence, 4)} % confidence"


def _scale(document: AuditResult) -> ScaleChart:
    """On the scale of what was promised: how sure, how often right, or epsilon."""
    claimed, exact, allows = document.claimed, document.exact, _allows(document)
    game, sure, aim = document.game if document.measured.trials else None, _sure(document), verdict_words.aim(document)
    if claimed.advantage is not None:
        axis = share_axis("How often the strongest observer guesses right; a coin does 50 % of the time")
        found = _right(game.advantage) if game else None
        right = Aim(aim, (1 + claimed.advantage) / 2)
        return promise_scale(axis, right, (allows, exact.accuracy), found, f"Measured with {sure}.")
    if claimed.epsilon is not None and claimed.belief is None:
        return _epsilon_scale(document, game is not None, sure)
    axis = share_axis("How sure the strongest observer becomes, starting from 50 %")
    limits = game.belief.at_delta if game else None
    row = None if limits is None else _row(limits)
    note = f"The belief that is exceeded with probability {verdict_words.rarely(document)}; measured with {sure}."
    return promise_scale(axis, Aim(aim, claimed.belief), (allows, exact.belief), row, note)


def _allows(document: AuditResult) -> str:
    noise = verdict_words.whose_noise(document)
    return f"{noise[0].upper()}{noise[1:]} allows"


def _row(found: MeasuredLimits) -> Row:
    return Row("Measured", "measured", found.low, found.high, found.value, interval=True)


def _right(advantage: MeasuredLimits) -> Row:
    """The share of right guesses, from the advantage."""
    low, high, value = ((1 + end) / 2 for end in (advantage.low, advantage.high, advantage.value))
    return _row(MeasuredLimits(value=value, low=low, high=high))


def _epsilon_scale(document: AuditResult, played: bool, sure: str) -> ScaleChart:
    claimed, exact = document.claimed.epsilon, document.exact.epsilon
    bound = verdict_words.deciding(document) if played else None
    shown = [claimed, exact, *((bound.value, bound.upper) if bound else ())]
    delta = short(document.exact.delta)
    axis = epsilon_axis(f"Epsilon at delta {delta}: 0 gives nothing away", shown)
    found = bound and Row(
        "Shown by this attack", "measured", bound.value, bound.upper, interval=True, told=reach(bound, claimed)
    )
    aim = Aim(verdict_words.aim(document), claimed)
    note = f"Measured: what this attack shows, with {sure}."
    return promise_scale(axis, aim, (_allows(document), exact), found or None, note)


def _parts(document: AuditResult) -> Iterator[Section]:
    if document.measured.trials > 0:
        if document.course is not None:
            pictures = (*course_pictures(document), *watch_picture(document.watched))
            yield Section("What the observer saw", pictures=pictures)
        yield _epsilon_part(document)
    if document.diagnostics is not None:
        yield Section("Is the training what it claims to be?", tables=(diagnostics(document.diagnostics),))
    if document.final_model is not None:
        yield _final_part(document, document.final_model)
    if document.exposure is not None:
        yield _exposure_part(document.exposure, document.exact.advantage)
    yield law_of_audit(document)
    yield Section("What this rests on", tuple(document.notes), terms=tuple(audit_assumptions(document)))
    yield rerun(document)


def _epsilon_part(document: AuditResult) -> Section:
    measured, exact = document.game.epsilon, document.exact
    picture = epsilon_picture(measured, document.claimed.epsilon, exact.epsilon, exact.delta)
    deciding = verdict_words.deciding(document)
    lower = deciding.value if deciding else measured.lower_bound.value
    pictures = [picture]
    rows = region_data(document, lower)
    if rows:
        pictures.append(region_picture(rows, exact.delta, "audit", verdict_words.region_caveat(document)))
    tables = (scores(document), estimators(measured.estimators), estimates(measured))
    return Section(f"{verdict_words.aim(document)}, exact, measured", pictures=tuple(pictures), tables=tables)


def _final_part(document: AuditResult, found: FinalModel) -> Section:
    rows = tuple(final_rows(document, found))
    table = Table("What an observer of the final model alone reaches", final_head(found), rows, note=FINAL_NOTE)
    return Section("What hiding the steps buys", (final_sentences(document, found),), tables=(table,))


def _exposure_part(found: ExposureSummary, possible: float) -> Section:
    said = (
        f"How far the noise hides each of the {found.records:,} records by itself, {found.method}.",
        found.note,
    )
    spread = found.distribution
    pictures = () if spread is None else (exposure_picture(found, spread, possible),)
    return Section("Who is exposed", said, pictures, (exposed_table(found),))


def exposure_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of an exposure."""
    result = run.result
    assert isinstance(result, ExposureResult)
    given, found, possible = result.input, result.exposure, result.exact.advantage
    worst = found.most_exposed[0].advantage
    spread = found.distribution
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=f"Advantage up to {figure(worst)}",
        tone="open",
        sure="",
        promise=f"Noise {given.noise:.4g} x sensitivity, which allows an advantage of {allowed_figure(possible)} at "
        "worst.",
        measured=f"One training on {given.data} ({given.records:,} records), and what each record changes in it. No "
        "trials were played, so there is no verdict on a claim.",
        meaning=f"The strongest observer has an advantage of {figure(worst)} over the most exposed record, and of "
        f"{figure(found.median_advantage)} over half of them at most.",
        text=found.note,
        cautions=(),
        scale=None,
        parts=(
            Section(
                "Who is exposed",
                pictures=() if spread is None else (exposure_picture(found, spread, possible),),
                tables=(exposed_table(found),),
            ),
        ),
        finished=result.finished,
    )
