"""A comparison's chapter: local against central privacy, by what an attacker achieves and what accuracy is left."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import begin_sentence, count_of, times
from deniable.report.chapters.chapter import Chapter, Section
from deniable.report.page_notes import rerun
from deniable.report.pictures.comparison_pictures import comparison_pictures
from deniable.report.pictures.scale_chart import precision_scale
from deniable.report.report_tables import levels, regions
from deniable.report.stored_runs import ReportedRun, outcome, title
from deniable.report.words.amount_text import share
from deniable.report.words.assumptions import ADJACENCIES
from deniable.report.words.attack_words import compared_attack
from deniable.results.compare_result import CompareResult


def comparison_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of a comparison."""
    document = run.result
    assert isinstance(document, CompareResult)
    sentences, warning = document.recommendation.sentences, document.warning
    said = [sentence for sentence in sentences if sentence != warning]
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=begin_sentence(outcome(run)),
        tone="good" if document.recommendation.better in ("central", "local") else "open",
        sure=f"each level trained {times(document.input.repeats)}",
        promise=_promise(document),
        measured=_measured_text(document),
        meaning=said[0] if said else "Nothing can be recommended.",
        text=" ".join(said[1:]),
        cautions=(warning,) if warning else (),
        scale=precision_scale(document),
        parts=tuple(_parts(document)),
        finished=document.finished,
        labels=("Compared", "Measured"),
    )


def _promise(document: CompareResult) -> str:
    kinds = [row.kind for row in document.levels]
    central, local = (count_of(kinds.count(kind), "level") for kind in ("central", "local"))
    return (
        f"{central} of central privacy (noise on gradients) and {local} of local privacy (noise on "
        "the records themselves). Their epsilons cannot be compared; what an attacker achieves and what accuracy is "
        "left can."
    )


def _measured_text(document: CompareResult) -> str:
    given, original = document.input, document.levels[0]
    return (
        f"Each level was trained {times(given.repeats)} on {given.records:,} records and attacked by "
        f"{compared_attack(document)}. Without protection the model is right on "
        f"{share(original.test_accuracy.mean)} of new records, and the attack's average precision is "
        f"{original.average_precision.mean:.2f} (guessing: 0.5)."
    )


def _parts(document: CompareResult) -> Iterator[Section]:
    yield Section("What privacy costs", pictures=tuple(comparison_pictures(document)), tables=(levels(document),))
    if document.region:
        yield Section("Between analysis and attack", tables=(regions(document.region),))
    yield Section("What this rests on", terms=tuple(_assumptions(document)))
    yield rerun(document)


def _assumptions(document: CompareResult) -> Iterator[tuple[str, str]]:
    yield "Neighbours", ADJACENCIES["add-remove"]
    yield (
        "The attacker",
        "It is given as many members as non-members and has to tell them apart. LiRA, RMIA and Bayesian LiRA compare "
        "the model with shadow models of the same recipe; the white-box attack sees the model and knows half of the "
        "truth. It is weaker than the observer that differential privacy assumes: a "
        "stronger one may achieve more.",
    )
    yield (
        "Local privacy",
        "Noise is added to every value of every record before anybody trains on it (local differential privacy, which "
        "has nothing to do with local sensitivity). Attacks look at the true records, as somebody does who knows a "
        "person.",
    )
    yield (
        "Central privacy",
        "Poisson batches, gradients clipped by themselves, Gaussian noise on their sum. Epsilon is exact for the steps "
        "that were really taken.",
    )
    yield (
        "phi",
        "The share of the attack's success that is taken away, over the share of accuracy that is lost. Above 1 the "
        "trade is favourable, 2 is the most that is shown.",
    )
    yield "Lower bounds on epsilon", "Records of one model share its noise, which the limits do not cover."
