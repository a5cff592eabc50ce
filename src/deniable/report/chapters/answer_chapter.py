"""The chapter of `explain` and `choose`: what a release means for a person, and the curves behind it."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from deniable.answers import rows, sentences
from deniable.answers.curves import curves
from deniable.answers.describe import mechanism_in
from deniable.answers.strength import ComparedDeployment, compare_deployments
from deniable.formatting import percent_at_most
from deniable.report.chapters.chapter import Chapter, Section, Table
from deniable.report.law_table import law_of_answer
from deniable.report.pictures.picture import BLUE, GREY, MUTED, ORANGE, Picture, axes, legend_above, log_roc
from deniable.report.stored_runs import ReportedRun, title
from deniable.results.explain_result import BeliefShares, ChooseResult, ExplainResult, RocCurve, Strength

_TONES = {"hardly any": "bad", "weak": "odd"}


def answer_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of an answer."""
    result = run.result
    assert isinstance(result, ExplainResult)
    chosen = isinstance(result, ChooseResult)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=answer_verdict(result),
        tone=_TONES.get(sentences.protection(result) or "", "good" if chosen else "open"),
        sure=f"{result.strength.name} protection" if result.strength is not None else "",
        promise=sentences.promise_kept(result) if isinstance(result, ChooseResult) else sentences.setting(result),
        measured=f"{sentences.guess_sentence(result)} {sentences.risk_sentences(result)}".strip(),
        meaning=sentences.belief_sentence(result),
        text=sentences.assessment(result),
        cautions=tuple(filter(None, (sentences.caution(result), sentences.warning(result)))),
        scale=None,
        parts=tuple(_parts(result)),
        labels=("Promised" if chosen else "Described", "Computed"),
    )


def answer_verdict(result: ExplainResult) -> str:
    """The belief that holds, in a few words."""
    belief = result.scores.belief
    return "Possibly certain" if belief >= 1 else f"At most {percent_at_most(belief)} sure"


def _strength_part(strength: Strength) -> Section:
    """The name on the scale with its reasons, beside well-known deployments."""
    rows = tuple(
        (one.name, one.unit, one.promise, f"{one.right}, {one.strength}{_if_gaussian(one)}")
        for one in compare_deployments()
    )
    note = "By what was published alone; in brackets, if the noise is Gaussian. What is protected differs."
    head = ("Deployment", "protects", "promise", "best attack right at most")
    beside = Table("Well-known deployments", head, rows, note=note)
    return Section(f"How strong this is: {strength.name}", (strength.advice, *strength.reasons), tables=(beside,))


def _if_gaussian(one: ComparedDeployment) -> str:
    if one.right_if_gaussian is None:
        return ""
    return f" ({one.right_if_gaussian}, {one.strength_if_gaussian})"


def _parts(result: ExplainResult) -> Iterator[Section]:
    if result.strength is not None:
        yield _strength_part(result.strength)
    scores = Table("What the strongest attack can reach", ("", "at most"), tuple(rows.score_rows(result)))
    yield Section("What an attacker can reach", pictures=tuple(_pictures(result)), tables=(scores,))
    if isinstance(result, ChooseResult):
        cells = tuple((row["label"], row["noise"], row["ratio"]) for row in rows.demand_rows(result))
        head = "", "noise", f"x {cells[0][0]}"
        demands = Table("Noise that each analysis demands for this promise", head, cells)
        yield Section("What weaker analyses demand", (sentences.engineering(result),), tables=(demands,))
    elif rows.has_analyses(result):
        cells = tuple((row["label"], row["epsilon"], row["advantage"]) for row in rows.analysis_rows(result))
        yield Section(
            "What weaker analyses say",
            tables=(Table("The same release by weaker analyses", ("", "epsilon", "advantage"), cells),),
        )
    yield law_of_answer(result)
    notes = [note for note in result.notes if note != sentences.caution(result)]
    method = f"Method: {result.method}; rounded up, numerical error included."
    yield Section("What this rests on", (sentences.setting(result), *notes, *rows.reasons(result), method))


def _pictures(result: ExplainResult) -> Iterator[Picture]:
    """None where the release cannot be built again from what was given."""
    mechanism = mechanism_in(result.input, result.noise if isinstance(result, ChooseResult) else None)
    if mechanism is None:
        return
    found = curves(mechanism, result.input)
    told = "How many members the best attack finds (up) when so many others are wrongly accused (right)."
    yield Picture("roc", "The best attack", told, told, found.roc, _draw_roc)
    told = (
        "The same curve on logarithmic axes: what an attack finds that accuses hardly anybody wrongly, which is where "
        "attacks do harm."
    )
    yield Picture("roc-log", "The best attack at few wrong alarms", told, told, found.roc, _draw_roc_log)
    told = "How sure the observer ends, where the person is in the data and where not."
    yield Picture("beliefs", "What the observer believes afterwards", told, told, found.beliefs, _draw_beliefs)


def _draw_roc(curve: RocCurve) -> Figure:
    drawing, found = axes("wrong alarms (false positive rate)", "members found (true positive rate)")
    found.plot(curve.fpr, curve.tpr, color=BLUE, label="best attack")
    found.plot([0, 1], [0, 1], ":", color=MUTED, linewidth=1, label="guessing")
    found.set(xlim=(0, 1), ylim=(0, 1.03))
    legend_above(found)
    return drawing


def _draw_roc_log(curve: RocCurve) -> Figure:
    drawing, found = axes("wrong alarms (false positive rate)", "members found (true positive rate)")
    log_roc(found, curve.fpr, curve.tpr, color=BLUE, label="best attack")
    legend_above(found)
    return drawing


def _draw_beliefs(shares: BeliefShares) -> Figure:
    drawing, found = axes("belief that the person is in the data", "share of releases")
    for row, label, colour in ((shares.inside, "person inside", ORANGE), (shares.outside, "person outside", GREY)):
        found.stairs(row, shares.edges, fill=True, color=colour, alpha=0.35)
        found.stairs(row, shares.edges, color=colour, linewidth=1.3, label=label)
    found.set_xlim(0, 1)
    legend_above(found)
    return drawing
