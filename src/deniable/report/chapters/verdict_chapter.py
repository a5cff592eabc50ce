"""A verdict's chapter: somebody else's scores against a claim."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from deniable.evidence.bound import INDEPENDENT
from deniable.formatting import as_given, count_of, percent_as_given, short
from deniable.mechanisms import Training
from deniable.report.chapters.chapter import Chapter, Section
from deniable.report.decision import decide
from deniable.report.page_notes import rerun
from deniable.report.pictures.epsilon_pictures import epsilon_picture
from deniable.report.pictures.observer_pictures import exact_curve, promised_line, watch_picture
from deniable.report.pictures.picture import GREEN, INK, MUTED, RED, Data, Picture, axes, legend_above
from deniable.report.pictures.scale_chart import Row, claim_scale, epsilon_axis
from deniable.report.report_tables import achieved_table, estimators, lower_bound, reach
from deniable.report.stored_runs import ReportedRun, title
from deniable.report.words import verdict_words
from deniable.results.verdict_result import BoundsOnEpsilon, VerdictInput, VerdictResult


def verdict_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of a verdict on scores."""
    document = run.result
    assert isinstance(document, VerdictResult)
    given, name = document.input, document.verdict
    measured, sure = document.measured, f"{100 * given.confidence:.4g} % confidence"
    bound, exact = measured.epsilon.lower_bound, document.exact.epsilon if document.exact else None
    shown = [given.claimed_epsilon, exact, bound.value, bound.upper]
    axis = epsilon_axis(f"Epsilon at delta {short(given.delta)}: 0 gives nothing away", shown)
    row = Row(
        "Shown by this attack",
        "measured",
        bound.value,
        bound.upper,
        interval=True,
        told=reach(bound, given.claimed_epsilon),
    )
    weak = verdict_words.claimed_protection(document)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=verdict_words.badge(name, weak),
        tone=verdict_words.tone(name, weak),
        sure=sure if name == "violated" else "",
        promise=f"The release has epsilon {as_given(given.claimed_epsilon)} at delta {short(given.delta)}.",
        measured=f"Scores of {count_of(measured.members, 'member')} and {count_of(measured.others, 'other')}, from "
        f"an attack. They prove {_proven(measured.epsilon, given.claimed_epsilon)}.",
        meaning=verdict_words.scored_meaning(document),
        text=document.verdict_text,
        cautions=tuple(verdict_words.scored_cautions(document)),
        scale=claim_scale(axis, given.claimed_epsilon, exact, row, f"Measured by {given.method}, with {sure}."),
        parts=tuple(_parts(document)),
        labels=("Claimed", "Measured"),
        decision=decide(
            name,
            verdict_words.tone(name, weak),
            weak,
            (verdict_words.scored_meaning(document), *([] if name == "cannot judge" else [document.verdict_text])),
            enough=False,  # a stronger attack than this one may refute the claim
            missing=document.verdict_text if name == "cannot judge" else "",
        ),
    )


def _parts(document: VerdictResult) -> Iterator[Section]:
    given, exact = document.input, document.exact.epsilon if document.exact else None
    shown = epsilon_picture(document.measured.epsilon, given.claimed_epsilon, exact, given.delta), _rates(document)
    pictures = (*shown, *watch_picture(document.watched))
    tables = (estimators(document.measured.epsilon.estimators), achieved_table(document))
    yield Section("Claimed and measured", pictures=pictures, tables=tables)
    yield Section("What this rests on", tuple(document.notes), terms=tuple(_assumptions(document)))
    yield rerun(document)


def _proven(epsilon: BoundsOnEpsilon, claimed: float) -> str:
    bound = epsilon.lower_bound
    if not bound.valid or bound.value == 0:
        return "no epsilon above 0"
    trusted = [one.text for one in bound.assumptions if one.holds is None and one.text != INDEPENDENT.text]
    return f"an epsilon of at least {lower_bound(epsilon, claimed)}" + "".join(f", if {text}" for text in trusted)


def _assumptions(document: VerdictResult) -> Iterator[tuple[str, str]]:
    yield "The scores", "Larger where membership is likelier."
    trusted = document.measured.epsilon.lower_bound.assumptions
    for text in (one.text for one in trusted if one.holds is None):
        yield "Taken on trust", f"{text[0].upper()}{text[1:]}."
    yield "The attack", "Whoever made the scores. Consistent is no proof: a stronger attack may show more."
    yield (
        "Settled before",
        "Estimator and threshold rule were named before the scores were seen; others decide nothing.",
    )


def _exact_curve(given: VerdictInput) -> Data | None:
    """Of the claimed training; None where the noise is not named."""
    if given.noise is None or given.adjacency is None:
        return None
    return exact_curve(Training(given.noise, given.rate or 1.0, given.steps or 1, given.adjacency))


def _rates(document: VerdictResult) -> Picture:
    given, rates = document.input, document.measured.tpr
    claimed = promised_line(given.claimed_epsilon, given.delta)
    data = {"tpr": rates, "claimed": claimed, "exact": _exact_curve(given)}
    found = "; ".join(f"{row.value:.3g} at {as_given(row.fpr)}" for row in rates)
    told = (
        "How many members the attack finds (up) when so many others are wrongly accused (right, on a logarithmic "
        "scale), with limits, beside the most that the claim allows."
    )
    return Picture("rates", "Members found at few wrong alarms", told, f"{told} {found}.", data, _draw_rates)


def _draw_rates(data: Data) -> Figure:
    drawing, found = axes("wrong alarms (false positive rate)", "members found (true positive rate)")
    for name, label, colour, style in (("claimed", "claimed at most", RED, "-."), ("exact", "exact", INK, "--")):
        if data[name] is not None:
            found.plot(data[name]["fpr"], data[name]["tpr"], color=colour, linestyle=style, label=label)
    fpr, tpr = [row.fpr for row in data["tpr"]], [row.value for row in data["tpr"]]
    reach = [[max(0.0, row.value - row.low) for row in data["tpr"]]]
    reach += [[max(0.0, row.high - row.value) for row in data["tpr"]]]
    found.errorbar(fpr, tpr, yerr=reach, fmt="o", color=GREEN, capsize=3, label="measured")
    rates = [10 ** (place / 25) for place in range(-100, 1)]  # as many wrong as right: no straight line on this axis
    found.plot(rates, rates, ":", color=MUTED, linewidth=1, label="guessing")
    found.set(xscale="log", xlim=(3e-4, 1), ylim=(0, 1.03))
    ticks = [1e-3, 1e-2, 1e-1, 1]
    found.set_xticks(ticks, [percent_as_given(tick) for tick in ticks])
    found.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    legend_above(found, columns=2)
    return drawing
