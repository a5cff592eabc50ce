"""The chapter of `reproduce`: the papers' tables and figures, and whether they are as was stated of them."""

from __future__ import annotations

from deniable.experiments import find
from deniable.formatting import begin_sentence
from deniable.report.chapters.chapter import Chapter, Section
from deniable.report.pictures.picture import Picture
from deniable.report.stored_runs import ReportedRun, outcome, title
from deniable.results.reproduce_result import ItemResult, ReproduceResult


def reproduce_chapter(run: ReportedRun) -> Chapter:
    """Every item with its picture and its statements."""
    result = run.result
    assert isinstance(result, ReproduceResult)
    stated = sum(len(item.comparisons) for item in result.items)
    met = sum(one.passed for item in result.items for one in item.comparisons)
    return Chapter(
        name=run.name,
        title=title(run),
        verdict=begin_sentence(outcome(run)),
        tone="good" if met == stated and not result.absent else "bad" if met < stated else "open",
        sure=f"scale {result.scale}",
        promise=f"{stated} statements about {len(result.items)} tables and figures, fixed before they were computed.",
        measured=f"{met} of {stated} hold.",
        meaning=f"Missed: {', '.join(result.missed)}." if result.missed else f"{met} of {stated} statements hold.",
        text=" ".join(f"{name} was not run: {why}." for name, why in result.absent.items()),
        cautions=(),
        scale=None,
        parts=tuple(_section(item) for item in result.items),
        labels=("Stated", "Found"),
    )


def _section(item: ItemResult) -> Section:
    ((_, known),) = find(item.paper.name, item.item)
    picture = Picture(
        f"{item.paper.name}-{item.item}", item.title, item.caption, item.caption, item.values, known.draw_values
    )
    said = tuple(f"{'Holds' if one.passed else 'Misses'}: {one.what} ({one.words})." for one in item.comparisons)
    return Section(f"{item.name}: {item.title}", said, pictures=(picture,))
