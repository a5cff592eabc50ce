"""RESULTS.md: a line for every item, with what differs from the paper and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

__all__ = ["outcome", "results"]

Document = dict[str, Any]


def results(documents: list[Document]) -> str:
    """The page, from the items' own records."""
    return "\n".join(_lines(documents)) + "\n"


def outcome(document: Document) -> str:
    """In one phrase: as the paper has it, as stated but for known reasons, or missed."""
    missed = [one for one in document["comparisons"] if not one["passed"]]
    if missed:
        return "misses: " + "; ".join(f"{one['what']}: {one['words']}" for one in missed)
    return "holds, differs for a known reason" if _reasons(document) else "holds"


def _lines(documents: list[Document]) -> Iterator[str]:
    good = sum(document["passed"] for document in documents)
    yield "# The papers' tables and figures, made anew"
    yield ""
    yield (
        f"{good} of {len(documents)} items meet what is stated of them. A statement that was settled with data in "
        "sight says so in its line. Made by `deniable reproduce`; every line links to the figure and to the "
        "record with all values, the paper's values, versions and seed."
    )
    for _, group in groupby(documents, key=lambda document: document["paper"]["number"]):
        items = list(group)
        paper = items[0]["paper"]
        yield from ("", f"## {paper['number']} ({paper['name']}): {paper['title']}", "")
        yield from ("| item | what | outcome | compared | where ours differs, and why |", "|---|---|---|---|---|")
        yield from (_line(document) for document in items)


def _line(document: Document) -> str:
    folder, name = document["paper"]["name"], document["item"]
    links = f"[{name}]({folder}/{name}.png) ([svg]({folder}/{name}.svg), [json]({folder}/{name}.json))"
    compared = "<br>".join(f"{one['what']} ({one['stated']}): {one['words']}" for one in document["comparisons"])
    left = [*_reasons(document), *document["not_judged"], *document["notes"]]
    cells = (links, document["caption"], f"{outcome(document)}; {document['scale']}", compared, "<br>".join(left))
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _reasons(document: Document) -> list[str]:
    return [reason for one in document["comparisons"] for reason in one["reasons"]]
