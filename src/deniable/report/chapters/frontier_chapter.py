"""A frontier's chapter: what accuracy each promise leaves, and what the figures rest on."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import as_given, at_most, begin_sentence, count_of, times
from deniable.report.chapters.chapter import Chapter, Section, Table
from deniable.report.page_notes import rerun
from deniable.report.pictures.frontier_picture import frontier_pictures
from deniable.report.stored_runs import ReportedRun, outcome, title
from deniable.report.words import frontier_words as words
from deniable.report.words.assumptions import ADJACENCIES
from deniable.results.frontier_result import FrontierLevel, FrontierResult
from deniable.utility.knee import name_bound, tell_measure, tell_value


def frontier_chapter(run: ReportedRun) -> Chapter:
    """Everything that is said and shown of a frontier."""
    document = run.result
    assert isinstance(document, FrontierResult)
    given, metric = document.input, document.input.metric
    base, free = document.tuned_measure(document.without_model).mean, document.tuned_measure(document.none.quality)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=begin_sentence(outcome(run)),
        tone=words.tone(document),
        sure=f"{100 * document.confidence:.4g} % limits over {given.repeats} trainings",
        promise=_promises(document),
        measured=f"Without noise: {tell_measure(metric, free)}. Always answering "
        f"{document.usual_answer[:40]!r}: {tell_value(metric, base)}.",
        meaning=words.meaning(document),
        text=words.sampling_note(document),
        cautions=tuple(_cautions(document)),
        scale=None,
        parts=tuple(_parts(document)),
        finished=document.finished,
        labels=("Promises", words.MEASURES[metric]),
    )


def _cautions(document: FrontierResult) -> Iterator[str]:
    """What the promises do not cover: the choice of settings, and statistics of the data."""
    if document.input.tuning == "uncovered" and document.input.settings > 1:
        yield document.tuning_text
    looked = sum(one.looks_at_data for one in document.encoding)
    if looked:
        yield (
            f"{count_of(looked, 'column')} became numbers by statistics of the training records, which no noise "
            "protects: no promise here covers them."
        )


def _promises(document: FrontierResult) -> str:
    first, last = (name_bound(document.input.promise, document.levels[place].bound) for place in (0, -1))
    if len(document.levels) == 1:
        return begin_sentence(f"{first}, and none.")
    return f"{count_of(len(document.levels), 'promise')}, from {first} to {last}, and none."


def _parts(document: FrontierResult) -> Iterator[Section]:
    main = Table("Every promise", words.headings(document), tuple(words.rows(document)))
    yield Section("What privacy costs", pictures=tuple(frontier_pictures(document)), tables=(main,))
    for field, name in (("classes", "Class"), ("groups", "Group")):
        if getattr(document.none.quality, field):
            yield Section(f"{name} by {name.lower()}", tables=(_of_parts(document, field, name),))
    yield Section("How it was trained", tables=(_settings(document),))
    if document.encoding:
        yield Section("How the data became numbers", tables=(_encoding(document),))
    told = (document.tuning_text, *document.cautions)
    yield Section("What this rests on", told, terms=tuple(_assumptions(document)))
    yield rerun(document)


def _of_parts(document: FrontierResult, field: str, name: str) -> Table:
    levels = (*document.levels, document.none)
    head = (name, "test records", *(name_bound(document.input.promise, level.bound) for level in levels))
    measured = "Share that is right" if document.input.task == "classification" else "Error (RMSE)"
    return Table(f"{measured} on new records, by {name.lower()}", head, tuple(words.part_rows(document, field)))


def _settings(document: FrontierResult) -> Table:
    head = ("Promise", "noise", "clipping norm", "learning rate", "expected batch", "epochs", "steps")
    rows = (_setting(document, level) for level in (*document.levels, document.none))
    note = f"{count_of(document.input.settings, 'setting')}, each trained {times(document.input.repeats)}."
    return Table("The settings of every promise", head, tuple(rows), note)


def _setting(document: FrontierResult, level: FrontierLevel) -> tuple[str, ...]:
    name, chosen = name_bound(document.input.promise, level.bound), level.setting
    noise = "-" if level.noise is None else at_most(level.noise, 4)
    if chosen is None:
        return name, noise, *["drawn for every run"] * 2, "-", "-", "-"
    norm = "none" if chosen.clip is None else as_given(chosen.clip)
    steps = f"{chosen.batch:,.0f}", str(chosen.epochs), f"{chosen.steps:,}"
    return name, noise, norm, as_given(chosen.learning_rate), *steps


def _encoding(document: FrontierResult) -> Table:
    head = ("Column", "holds", "features", "looks at the data", "became")
    rows = tuple(
        (one.name[:40], one.kind, str(one.features), "yes: not private" if one.looks_at_data else "no", one.by)
        for one in document.encoding
    )
    return Table("Columns and features", head, rows, wordy=True)


def _assumptions(document: FrontierResult) -> Iterator[tuple[str, str]]:
    given = document.input
    yield "Neighbours", ADJACENCIES["add-remove"]
    yield (
        "Noise",
        "For every promise the least that keeps it, by the exact privacy loss, as `deniable choose` finds it. Batches "
        "are Poisson samples; gradients are clipped one by one.",
    )
    yield (
        "What was held back",
        f"{_judging_records(document)}the figures were measured on {given.test_records:,} test records by fresh "
        "trainings, which had no part in any choice.",
    )
    yield (
        "Limits",
        "Student's, over trainings with fresh weights, batches and noise. The thin bars say where one more training "
        "lies. In a repeat all promises have the same batches, so that what is lost is compared repeat by repeat.",
    )


def _judging_records(document: FrontierResult) -> str:
    given = document.input
    if given.settings == 1 and given.tuning == "uncovered":
        return "No settings were judged; "
    return f"Settings were judged on {given.validation_records:,} validation records; "
