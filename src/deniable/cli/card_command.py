"""`deniable card`: what a release promises, on one card."""

# ruff: noqa: PLC0415 (imports inside the command)

from __future__ import annotations

from typing import Annotated

import typer

from deniable.checks import one_of
from deniable.cli.common import refusals
from deniable.cli.options import Text, option

EXAMPLES = (
    "Examples:\n\ndeniable explain --noise 1 --rate .01 --steps 1000 --json > run.json; deniable card run.json\n\n"
    "deniable card audit-out/local --format registry"
)
CARD = "The card"


def card(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A folder that audit wrote with --out, or a document of explain, choose or audit (--json).",
            show_default=False,
        ),
    ],
    form: Annotated[
        Text, option("format", "F", "markdown (default), huggingface (a model card's block) or registry (JSON).", CARD)
    ] = None,
) -> None:
    """Write a privacy card: Markdown, a block of a model card, or a record for the registry of deployments."""
    with refusals("card"):
        from deniable.report.privacy_card import FORMATS, write_card
        from deniable.report.stored_runs import read

        name = one_of("format", form or "markdown", tuple(FORMATS))
        typer.echo(write_card(read(run, ("explain", "choose", "audit")).result, name).rstrip("\n"))
