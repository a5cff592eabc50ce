"""`deniable assess`: a data-protection impact assessment, filled from runs as far as figures go."""

# ruff: noqa: PLC0415 (imports inside the command)

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.common import patience, refusals
from deniable.cli.options import Text, option

EXAMPLES = (
    "Examples:\n\ndeniable assess audit-out/local frontier-out --out assessment.docx\n\n"
    "deniable choose --belief .8 --records 60000 --batch 256 --epochs 10 --json > plan.json; deniable assess plan.json"
)
FILES = "What is written"


def assess(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Folders that audit, frontier, compare or attack wrote with --out, or documents printed with --json, "
            "of explain and choose, too.",
            show_default=False,
        ),
    ],
    out: Annotated[Text, option("out", "FILE", "A .md or .docx file. Default assessment.md.", FILES)] = None,
) -> None:
    """Write a data-protection impact assessment: figures filled in, what only people can write left open."""
    path = Path(out or "assessment.md")
    with refusals("assess"), patience("Writing ..."):
        from deniable.report.impact_assessment import write_assessment
        from deniable.report.stored_runs import KINDS, read

        found = [read(run, (*KINDS, "explain", "choose")) for run in runs]
        try:
            write_assessment(found, path)
        except OSError as refused:
            raise OSError(f"{path} {refused.strerror}: name another file with --out") from refused
    typer.echo(path)
