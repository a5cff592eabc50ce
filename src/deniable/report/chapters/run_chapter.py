"""The chapter of one watched run: the claim, part by part, as the run showed it."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from deniable.answers.strength import weakness
from deniable.formatting import ALMOST_ALL, as_given, chance, count_of, percent_at_most
from deniable.report.chapters.chapter import Chapter, Section, Table
from deniable.report.decision import decide
from deniable.report.pictures.picture import BLUE, INK, Data, Picture, axes, legend_above
from deniable.report.stored_runs import ReportedRun, title
from deniable.report.words import verdict_words
from deniable.results.run_result import RunCheck, RunResult


def run_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of one run."""
    document = run.result
    assert isinstance(document, RunResult)
    given, weak = document.input, weakness(document.claimed_advantage, document.claimed_belief)
    noise = f"noise {as_given(given.noise)}, rate {as_given(given.rate)}, {count_of(given.steps, 'step')}"
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=verdict_words.badge(document.verdict, weak),
        tone=_tone(document, weak),
        sure=f"{100 * given.confidence:.4g} % confidence" if document.verdict == "violated" else "",
        promise=f"DP-SGD with {noise} ({given.adjacency} neighbours).",
        measured=f"One run of {count_of(document.steps, 'step')}; {document.examined_steps:,} of them were recomputed. "
        f"{document.power_text}",
        meaning=_meaning(document),
        text=document.verdict_text,
        cautions=tuple(_cautions(document)),
        scale=None,
        parts=tuple(_parts(document)),
        labels=("Claimed", "Watched"),
        decision=decide(
            document.verdict,
            _tone(document, weak),
            weak,
            (document.verdict_text,),
            enough=not document.not_shown,
            cause_named=True,  # a run is refuted by a part of its claim, which the verdict names
        ),
    )


def _cautions(document: RunResult) -> Iterator[str]:
    """What is wrong first, where something is; then what one run cannot show."""
    if document.verdict in ("violated", "other recipe"):
        yield document.verdict_text
    yield from (f"Not shown by this run: {what}." for what in document.not_shown)


def _tone(document: RunResult, weak: str | None) -> str:
    """No green beside what the run did not show."""
    found = verdict_words.tone(document.verdict, weak)
    return "open" if found == "good" and document.not_shown else found


def _meaning(document: RunResult) -> str:
    """What the verdict is worth: the claim's limit where it stands, and that it does not where it is broken."""
    belief = document.claimed_belief
    told = percent_at_most(belief)
    sure = "certain" if belief >= 1 else f"{told} sure" if told == ALMOST_ALL else f"at most {told} sure"
    limit = f"an observer of all steps, who starts at 50 %, to become {sure} of one record{_rarely(document)}"
    return {
        "violated": "The claim is broken. Do not rely on it until the cause is mended: what it allows does not hold "
        f"({limit}).",
        "consistent": f"Nothing speaks against the claim. It allows {limit}.",
        "other recipe": "The training is not the one that is claimed, though nothing shows that it is less private. "
        f"The claim allows {limit}.",
    }.get(document.verdict, f"This run cannot tell whether the claim holds. It would allow {limit}.")


def _rarely(document: RunResult) -> str:
    """How often the claimed belief may be exceeded; certainty never is."""
    if document.claimed_belief >= 1:
        return ""
    delta = document.claimed_belief_delta
    return ", but for rare cases" if delta is None else f", but for a chance of {chance(delta)}"


def _parts(document: RunResult) -> Iterator[Section]:
    rows = tuple((check.name, check.outcome, f"{check.observed}{_where(check)}") for check in document.checks)
    table = Table("The claim, part by part", ("Part", "Found", "Seen"), rows, wordy=True)
    pictures = (_noise_picture(document),) if document.noise_ratios else ()
    yield Section("What the run shows", pictures=pictures, tables=(table,))


def _where(check: RunCheck) -> str:
    return "" if check.place is None else f" ({check.place.file}:{check.place.line})"


def _noise_picture(document: RunResult) -> Picture:
    told = "The noise of each recomputed step, as a share of the claimed standard deviation."
    least, most = min(document.noise_ratios), max(document.noise_ratios)
    data = {"steps": document.recomputed, "ratios": document.noise_ratios}
    described = f"{told} It goes from {least:.3g} to {most:.3g}; 1 is claimed."
    return Picture("noise", "Noise, claimed and applied", told, described, data, _draw_noise)


def _draw_noise(data: Data) -> Figure:
    drawing, found = axes("step", "applied / claimed standard deviation", height=2.6)
    found.xaxis.set_major_locator(MaxNLocator(integer=True))
    found.plot([step + 1 for step in data["steps"]], data["ratios"], "o", color=BLUE, markersize=4, label="applied")
    found.axhline(1.0, color=INK, linestyle="--", linewidth=1, label="claimed")
    found.set(ylim=(0, max(1.2, 1.1 * max(data["ratios"]))))
    legend_above(found)
    return drawing
