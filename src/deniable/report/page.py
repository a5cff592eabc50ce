"""One HTML file without any outside part: a first screen for those who decide, then every run's chapter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from deniable.report.attacked import attack_chapter
from deniable.report.audited import audit_chapter
from deniable.report.chapter import Chapter
from deniable.report.compared import comparison_chapter
from deniable.report.picture import Picture, inline, write_pictures
from deniable.report.runs import PAGE, Reported, Run
from deniable.report.scored import verdict_chapter
from deniable.results.base import plain
from deniable.store import replace_file, write_document

__all__ = ["SCHEMA", "page", "page_of", "write"]

SCHEMA = "deniable/report/1"
CHAPTERS = {
    "audit": audit_chapter,
    "compare": comparison_chapter,
    "verdict": verdict_chapter,
    "attack": attack_chapter,
}
UNSAFE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
"""What could end a script element, or a line within one, written so that JSON reads the same."""


def page(runs: Sequence[Run]) -> str:
    """The page of one or several runs; the same runs give the same bytes."""
    if not runs:
        raise ValueError("name at least one run: a folder that audit, compare or attack wrote, or a .json file")
    found = sorted(((run, CHAPTERS[run.kind](run)) for run in runs), key=lambda one: one[1].last)
    return _render_page([run for run, _ in found], [chapter for _, chapter in found])


def _render_page(runs: Sequence[Run], chapters: Sequence[Chapter]) -> str:
    template = _environment().get_template("page.html")
    return str(template.render(chapters=chapters, title=_title(chapters), data=_data(runs, chapters)))


def page_of(result: Reported, name: str) -> str:
    """The page of one result; `name` is for people."""
    return page([Run(name, result)])


def write(result: Reported, directory: Path | str) -> Path:
    """Write a run's result, its pictures (.svg and .png) and report.html into `directory`; the page's path."""
    place = Path(directory)
    run = Run(place.resolve().name, result)
    chapter = CHAPTERS[result.kind](run)
    place.mkdir(parents=True, exist_ok=True)
    write_document(place / f"{result.kind}.json", plain(result))
    write_pictures(chapter.pictures, place)
    replace_file(place / PAGE, _render_page([run], [chapter]).encode())
    return place / PAGE


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


def _data(runs: Sequence[Run], chapters: Sequence[Chapter]) -> Markup:
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
