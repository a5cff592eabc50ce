"""One HTML file without any outside part: a first screen for those who decide, then every run's chapter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from deniable.answers.glossary import GLOSSARY
from deniable.report.chapters.answer_chapter import answer_chapter
from deniable.report.chapters.attack_chapter import attack_chapter
from deniable.report.chapters.audit_chapter import audit_chapter, exposure_chapter
from deniable.report.chapters.chapter import Chapter
from deniable.report.chapters.compare_chapter import comparison_chapter
from deniable.report.chapters.frontier_chapter import frontier_chapter
from deniable.report.chapters.run_chapter import run_chapter
from deniable.report.chapters.verdict_chapter import verdict_chapter
from deniable.report.page_notes import tell_personal_data, tell_quality
from deniable.report.pictures.picture import Picture, inline, write_pictures
from deniable.report.stored_runs import PAGE, Reported, ReportedRun
from deniable.results.base import plain
from deniable.results.frontier_result import FrontierResult
from deniable.store import replace_file, write_document

SCHEMA = "deniable/report/1"
UNSAFE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
"""What could end a script element, or a line within one, written so that JSON reads the same."""


def page(runs: Sequence[ReportedRun]) -> str:
    """The page of one or several runs; the same runs give the same bytes."""
    if not runs:
        raise ValueError(
            "name at least one run: a folder that audit, compare, attack or frontier wrote, or a .json file"
        )
    chapters = make_chapters(runs)
    found = sorted(zip(runs, chapters, strict=True), key=lambda one: one[1].last)
    return _render_page([run for run, _ in found], [chapter for _, chapter in found])


def make_chapters(runs: Sequence[ReportedRun]) -> list[Chapter]:
    """A chapter each; a frontier among the runs says how good a model the others may expect."""
    frontiers = [run.result for run in runs if isinstance(run.result, FrontierResult)]
    return [
        replace(
            CHAPTERS[run.kind](run),
            quality=tell_quality(run.result, frontiers),
            personal=tell_personal_data(run.result),
        )
        for run in runs
    ]


def _render_page(runs: Sequence[ReportedRun], chapters: Sequence[Chapter]) -> str:
    template = _environment().get_template("page.html")
    words = {word: text for word, text in GLOSSARY.items() if _is_used(word, chapters)}
    return str(template.render(chapters=chapters, title=_title(chapters), data=_data(runs, chapters), glossary=words))


def _is_used(word: str, chapters: Sequence[Chapter]) -> bool:
    """Whether a word of the glossary stands in a chapter."""
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    return any(pattern.search(text) for chapter in chapters for text in _texts(chapter))


def _texts(chapter: Chapter) -> Iterator[str]:
    yield from (chapter.verdict, chapter.promise, chapter.measured, chapter.meaning, chapter.text, chapter.quality)
    yield from chapter.cautions
    for part in chapter.parts:
        yield from (part.title, *part.words, *(picture.told for picture in part.pictures))
        yield from (cell for table in part.tables for row in (table.head, *table.rows) for cell in row)
        yield from (text for pair in part.terms for text in pair)


def page_of(result: Reported, name: str) -> str:
    """The page of one result; `name` is for people."""
    return page([ReportedRun(name, result)])


def write(result: Reported, directory: Path | str) -> Path:
    """Write a run's result, its pictures (.svg and .png) and report.html into `directory`; the page's path."""
    place = Path(directory)
    run = ReportedRun(place.resolve().name, result)
    (chapter,) = make_chapters([run])
    place.mkdir(parents=True, exist_ok=True)
    write_document(place / f"{result.kind}.json", plain(result))
    write_pictures(chapter.pictures, place)
    replace_file(place / PAGE, _render_page([run], [chapter]).encode())
    return place / PAGE


def reproduce_chapter(run: ReportedRun) -> Chapter:
    """The papers' items are imported when they are reported: they need torch."""
    from deniable.report.chapters.reproduce_chapter import reproduce_chapter as chapter  # noqa: PLC0415

    return chapter(run)


CHAPTERS = {
    "audit": audit_chapter,
    "compare": comparison_chapter,
    "verdict": verdict_chapter,
    "run": run_chapter,
    "attack": attack_chapter,
    "explain": answer_chapter,
    "choose": answer_chapter,
    "exposure": exposure_chapter,
    "reproduce": reproduce_chapter,
    "frontier": frontier_chapter,
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("deniable.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["drawn"] = _inline_picture
    return environment


def _inline_picture(picture: Picture, prefix: str) -> Markup:
    """Safe: text in it was escaped when it was written."""
    return Markup(inline(picture, prefix))


def _title(chapters: Sequence[Chapter]) -> str:
    return chapters[0].title if len(chapters) == 1 else f"Privacy report of {len(chapters)} runs"


def _data(runs: Sequence[ReportedRun], chapters: Sequence[Chapter]) -> Markup:
    """Everything that is drawn or said, for machines."""
    found = [
        {
            "name": run.name,
            "kind": run.kind,
            "document": run.result,
            "figures": {picture.name: picture.data for picture in chapter.pictures},
            "scale": None if chapter.scale is None else chapter.scale.data(),
        }
        for run, chapter in zip(runs, chapters, strict=True)
    ]
    text = json.dumps(plain({"schema": SCHEMA, "runs": found}), allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(UNSAFE))
