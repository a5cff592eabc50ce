"""A document as text for people: paragraphs first, then compact tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.answers import rows, sentences
from deniable.answers.explain import Document
from deniable.cli.running import print_parts

__all__ = ["show"]


def show(document: Document) -> None:
    """Print `document` for a person, on standard output."""
    print_parts(_parts(document))


def _parts(document: Document) -> Iterator[RenderableType]:
    chosen = "methods" in document
    if chosen:
        yield Text(sentences.promise_kept(document) + "\n", style="bold")
    yield Text(sentences.meaning(document) + "\n")
    if sentences.warning(document):
        yield Text(sentences.warning(document) + "\n", style="bold red")
    if chosen:
        yield Text(sentences.engineering(document) + "\n")
    if chosen:
        yield _indented(_demands(document))
    yield _indented(_scores(document))
    if not chosen and rows.is_mechanism(document):
        yield _indented(_analyses(document))
    for note in _footnotes(document):
        yield Text(note, style="dim")


def _scores(document: Document) -> Table:
    table = _table("What the strongest attack can reach", "at most")
    for label, text in rows.score_rows(document):
        table.add_row(label, text)
    return table


def _demands(document: Document) -> Table:
    table = _table("Noise that each analysis demands for this promise", "noise", "x exact")
    for row in rows.demand_rows(document):
        table.add_row(row["label"], row["noise"], row["ratio"], style="bold" if row["name"] == "exact" else None)
    return table


def _analyses(document: Document) -> Table:
    table = _table("The same release by weaker analyses", "epsilon", "advantage")
    for row in rows.analysis_rows(document):
        table.add_row(row["label"], row["epsilon"], row["advantage"], style="bold" if row["name"] == "exact" else None)
    return table


def _footnotes(document: Document) -> Iterator[str]:
    yield from document["notes"]
    yield from rows.reasons(document)
    yield f"{sentences.setting(document)} Method: {document['method']}; rounded up, numerical error included."


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _indented(table: Table) -> Padding:
    return Padding(table, (0, 0, 1, 2), expand=False)
