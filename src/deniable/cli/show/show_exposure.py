"""`deniable audit --exposure`: how exposed every record is, in files and in words; with --trials 0, that alone."""

# ruff: noqa: PLC0415 (imports inside the command)

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from deniable.campaigns.progress import bar
from deniable.cli.common import patience, print_parts
from deniable.formatting import count_of
from deniable.report.words.amount_text import allowed_figure

if TYPE_CHECKING:
    from deniable.campaigns.setup import Ground
    from deniable.results.audit_result import ExposureResult, ExposureSummary


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
    print_parts(_parts(document))


def _parts(document: ExposureResult) -> Iterator[RenderableType]:
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
