"""An answer as text for people: paragraphs first, then compact tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.answers import rows, sentences
from deniable.cli.common import print_parts
from deniable.results.explain_result import ChooseResult, ExplainResult


def show(result: ExplainResult) -> None:
    """Print the answer for a person, on standard output."""
    print_parts(_parts(result))


def _parts(result: ExplainResult) -> Iterator[RenderableType]:
    if sentences.caution(result):
        yield Text(sentences.caution(result) + "\n", style="bold")
    if isinstance(result, ChooseResult):
        yield Text(sentences.promise_kept(result) + "\n", style="bold")
    yield Text(sentences.meaning(result) + "\n")
    if sentences.risk_sentences(result):
        yield Text(sentences.risk_sentences(result) + "\n")
    if sentences.warning(result):
        yield Text(sentences.warning(result) + "\n", style="bold red")
    if isinstance(result, ChooseResult):
        yield Text(sentences.engineering(result) + "\n")
        if result.expected is not None:
            yield Text(result.expected.text + "\n", style="bold")
        if len(list(rows.demand_rows(result))) > 1:
            yield _indent(_demands(result))
    yield _indent(_scores(result))
    if not isinstance(result, ChooseResult) and rows.has_analyses(result):
        yield _indent(_analyses(result))
    for note in _footnotes(result):
        yield Text(note, style="dim")


def _scores(result: ExplainResult) -> Table:
    table = _table("What the strongest attack can reach", "at most")
    for label, text in rows.score_rows(result):
        table.add_row(label, text)
    return table


def _demands(result: ChooseResult) -> Table:
    found = list(rows.demand_rows(result))
    table = _table("Noise that each analysis demands for this promise", "noise", f"x {found[0]['label']}")
    for row in found:
        table.add_row(row["label"], row["noise"], row["ratio"], style="bold" if row["name"] == "exact" else None)
    return table


def _analyses(result: ExplainResult) -> Table:
    table = _table("The same release by weaker analyses", "epsilon", "advantage")
    for row in rows.analysis_rows(result):
        table.add_row(row["label"], row["epsilon"], row["advantage"], style="bold" if row["name"] == "exact" else None)
    return table


def _footnotes(result: ExplainResult) -> Iterator[str]:
    yield from (note for note in result.notes if note != sentences.caution(result))
    yield from rows.reasons(result)
    yield f"{sentences.setting(result)} Method: {result.method}; rounded up, numerical error included."


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _indent(table: Table) -> Padding:
    return Padding(table, (0, 0, 1, 2), expand=False)
