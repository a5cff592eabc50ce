"""An audit's document as text for people: the verdict in a paragraph, one table; estimators if they are asked for.

With `--exposure` also how exposed every record is, in files and in words; with `--trials 0`, that alone.

"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deniable.campaigns.progress import bar
from deniable.cli.common import patience, print_parts
from deniable.cli.show.show_verdict import estimators
from deniable.formatting import count_of
from deniable.report.report_tables import estimates, scores
from deniable.report.words import verdict_words
from deniable.report.words.amount_text import allowed_figure
from deniable.report.words.final_model_words import FINAL_NOTE, final_head, final_rows, final_sentences
from deniable.results.audit_result import AuditResult, FinalModel

if TYPE_CHECKING:
    from deniable.campaigns.campaign import Ground
    from deniable.results.audit_result import ExposureResult, ExposureSummary


# ruff: noqa: PLC0415 (imports inside the command)


def write_exposure(ground: Ground, place: Path, show_records: bool = False) -> ExposureSummary:
    """The exposure; its records.csv and picture are in `place`, with labels and images only if asked for."""
    from deniable.campaigns.exposure import write_records
    from deniable.campaigns.exposure_result import exposed_by, exposure_document, scores_of
    from deniable.report.pictures.exposure_pictures import exposed_records

    inside = ground.parts[0]
    with bar("Exposure: loading the records", "Exposure: steps of all records") as progress:
        exposed = exposed_by(ground, progress)
    place.mkdir(parents=True, exist_ok=True)
    table, picture = place / "records.csv", place / "exposed-records.png"
    with patience("Comparing exposure with dissimilarity ..."):
        write_records(exposed, inside.labels if show_records else None, table)
        possible = scores_of(ground).advantage
        exposed_records(exposed, inside, possible, show_records).savefig(picture, dpi=150)
        found = exposure_document(exposed, inside, table, show_records)
    print(f"records: {table}, picture: {picture}", file=sys.stderr)
    return found


def alone(ground: Ground, out: str | None, show_records: bool = False) -> ExposureResult:
    """The exposure without a campaign; with `out`, exposure.json is there, too."""
    from deniable.campaigns.exposure_result import exposure_alone

    place = Path(out or ".")
    document = exposure_alone(ground, write_exposure(ground, place, show_records))
    if out is not None:
        from deniable.results.base import plain
        from deniable.store import write_document

        write_document(place / "exposure.json", plain(document))
    return document


def show_alone(document: ExposureResult) -> None:
    """Print the exposure's own document for a person, on standard output."""
    print_parts(_exposure_parts(document))


def _exposure_parts(document: ExposureResult) -> Iterator[RenderableType]:
    given, exposed = document.input, document.exposure
    worst = exposed.most_exposed[0].advantage
    allowed = document.exact.advantage
    yield Text(
        f"The strongest observer has an advantage of {worst:.3g} over the most exposed record and of "
        f"{exposed.median_advantage:.3g} over half of them at most; the noise allows {allowed_figure(allowed)}.\n",
        style="bold",
    )
    yield Text(
        f"One training on {given.data} ({given.records:,} records, {count_of(given.steps, 'step')}, {given.adjacency} "
        f"neighbours, clip {given.clip:g}, noise {given.noise:.4g} x sensitivity), and what each record changes "
        "in it. No trials were played, so there is no verdict on the claim.\n"
    )
    yield Text(exposure_words(exposed))


def exposure_words(exposed: ExposureSummary) -> str:
    """Who is exposed most, how far the others are, and whether unlike records are the exposed ones."""
    named = ", ".join(f"#{one.record} ({one.advantage:.3g})" for one in exposed.most_exposed[:5])
    found = {name: value for name, value in (exposed.rank_correlation or {}).items() if value is not None}
    ranks = ", ".join(f"{name} {value:+.2f}" for name, value in found.items()) or "none, since all are exposed alike"
    spread = f"the others from {exposed.least_advantage:.3g} (median {exposed.median_advantage:.3g})"
    alike = exposed.equally_exposed or 1
    if alike == exposed.records > 1:
        spread = "all are exposed as much, clipping makes their gradients equally long"
    elif alike > len(exposed.most_exposed):
        spread = f"{alike:,} are exposed as much, clipping makes their gradients equally long; {spread}"
    by = " (records exposed alike ranked by their gradients before clipping)" if alike > 1 and found else ""
    return (
        f"Most exposed of the {exposed.records:,} records, by advantage: {named}; {spread}, "
        f"{exposed.method}. Rank correlation of exposure with dissimilarity{by}: {ranks}. {exposed.note}"
    )


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
