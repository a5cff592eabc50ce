"""An audit's document as text for people: the verdict in a paragraph, one table; estimators if they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.cli.common import print_parts
from deniable.cli.show.show_exposure import exposure_words
from deniable.cli.show.show_verdict import estimators
from deniable.formatting import count_of
from deniable.report.report_tables import estimates, scores
from deniable.report.words import verdict_words
from deniable.report.words.final_model_words import FINAL_NOTE, final_head, final_rows, final_sentences
from deniable.results.audit_result import AuditResult, FinalModel

_STYLES = {"good": "bold", "odd": "bold yellow", "bad": "bold red", "open": "bold"}


def show(document: AuditResult, every_estimator: bool = False) -> None:
    """Print `document` for a person, on standard output."""
    print_parts(_parts(document, every_estimator))


def _parts(document: AuditResult, every_estimator: bool) -> Iterator[RenderableType]:
    weak, test_mode = verdict_words.protection(document), verdict_words.is_test_mode(document)
    badge = verdict_words.badge(document.verdict, weak, test_mode)
    yield Text(f"{badge}. {verdict_words.headline(document)}\n", style=_STYLES[verdict_words.audit_tone(document)])
    for caution in verdict_words.cautions(document):
        yield Text(caution + "\n", style="bold")
    yield Text(_game(document) + "\n")
    yield Padding(_table(document), (0, 0, 1, 2), expand=False)
    if every_estimator:
        yield Padding(estimators(document.game.epsilon.estimators), (0, 0, 1, 2), expand=False)
        yield Padding(_estimates(document), (0, 0, 1, 2), expand=False)
    if document.final_model is not None:
        yield Text(final_sentences(document, document.final_model) + "\n")
        yield Padding(_final_table(document, document.final_model), (0, 0, 0, 2), expand=False)
        yield Text(FINAL_NOTE + "\n", style="dim")
    if document.exposure is not None:
        yield Text(exposure_words(document.exposure) + "\n")
    for note in document.notes:
        if note not in verdict_words.cautions(document):
            yield Text(note, style="dim")
    yield Text(_speed(document), style="dim")


def _speed(document: AuditResult) -> str:
    """How long it took; of a resumed campaign that was whole already, that nothing was left."""
    if not document.trials_per_second:
        return "No trial was left to play."
    return f"{document.seconds or 0:.1f} s, {document.trials_per_second:.0f} trials/s."


def _game(document: AuditResult) -> str:
    given, measured = document.input, document.game
    return (
        "An observer who knows both data sets, the model and the noise, and sees every step, was played against "
        f"{count_of(measured.trials, 'training')} on {given.data} ({given.records:,} records, "
        f"{count_of(given.steps, 'step')}, {given.adjacency} neighbours, noise {given.noise:.4g} x "
        f"{given.sensitivity} sensitivity). Telling D from D', it {verdict_words.guess_text(measured.advantage)}"
    )


def _table(document: AuditResult) -> Table:
    found = scores(document)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for heading in found.head[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, *cells in found.rows:
        table.add_row(name, *("" if cell == "-" else cell for cell in cells))
    return table


def _final_table(document: AuditResult, found: FinalModel) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in final_head(found):
        table.add_column(name, justify="right" if table.columns else "left")
    for row in final_rows(document, found):
        table.add_row(*row)
    return table


def _estimates(document: AuditResult) -> Table:
    found = estimates(document.game.epsilon)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(found.caption)
    table.add_column("epsilon", justify="right")
    for name, value in found.rows:
        table.add_row(name, value)
    return table
