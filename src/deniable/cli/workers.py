"""`deniable worker`, `submit`, `merge` and `status`: a campaign that many machines play in one directory."""

# ruff: noqa: PLC0415 (imports inside the commands, so that help is quick)

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.common import print_parts, refusals
from deniable.cli.options import Text, flag, option, read
from deniable.formatting import count_of
from deniable.store.records import in_words

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The directory of a campaign, as in --out.")]
Directories = Annotated[list[str], typer.Argument(metavar="DIR...", help="Directories of one campaign.")]
PANEL = "The workers"


def worker(
    directory: Directory,
    lease: Annotated[
        Text, option("lease", "S", "A block is taken over that showed no life for S seconds. Default 60.", PANEL)
    ] = None,
) -> None:
    """Play blocks of the campaign that was planned in DIR, beside any other workers, until all are there."""
    with refusals("worker"):
        from deniable.cli.planning import play_planned
        from deniable.engines.beside import LEASE_SECONDS
        from deniable.engines.planned import Planned

        place = Path(directory).resolve()
        seconds = read({"lease": lease}).get("lease", LEASE_SECONDS)
        planned = Planned.read(place)
        if Path(planned.directory).is_dir():
            os.chdir(planned.directory)
        with in_words(place):
            done = play_planned(planned, place, seconds)
    print(done, file=sys.stderr)


def submit(
    directory: Directory,
    slurm: Annotated[bool, flag("slurm", "For Slurm: an array of workers.", PANEL)] = False,
    workers: Annotated[Text, option("workers", "N", "Workers. Default: one a block, at most 100.", PANEL)] = None,
    memory: Annotated[Text, option("memory", "GB", "Gigabytes for each. Default 4.", PANEL)] = None,
    hours: Annotated[Text, option("hours", "H", "Hours for each. Default 4.", PANEL)] = None,
) -> None:
    """Write the script that starts workers for the campaign that was planned in DIR."""
    with refusals("submit"):
        from deniable.engines.planned import Planned
        from deniable.engines.slurm import write_script

        if not slurm:
            raise ValueError("name the system that starts the workers: --slurm")
        asked = read({"workers": workers, "memory": memory, "hours": hours})
        number = asked.get("workers", min(100, Planned.read(directory).blocks or 100))
        megabytes, minutes = round(1000 * asked.get("memory", 4)), max(1, round(60 * asked.get("hours", 4)))
        with in_words(Path(directory)):
            path = write_script(directory, number, megabytes, minutes)
    typer.echo(f"sbatch {path}")


def merge(directories: Directories) -> None:
    """Join the blocks of several directories of one campaign, and of their workers, in the first of them."""
    with refusals("merge"):
        from deniable.engines.merge import merge_stores
        from deniable.engines.planned import PLAN, Planned

        places = [Path(one) for one in directories]
        merged = merge_stores(places)
        finish = Planned.read(places[0]).finish if (places[0] / PLAN).is_file() else None
    of = f" of {merged.blocks}" if merged.blocks is not None else ""
    twice = f"; {count_of(merged.twice, 'block')} came more than once and count once" if merged.twice else ""
    typer.echo(f"{merged.finished}{of} blocks are in {directories[0]}{twice}")
    if finish is not None:
        typer.echo(finish)


def status(
    directory: Directory,
    json: Annotated[bool, flag("json", "Print one JSON document.", PANEL)] = False,
) -> None:
    """How far the campaign in DIR has come, who plays it, and what it shows so far."""
    with refusals("status"):
        from deniable.campaigns.look import look

        found = look(directory)
    if json:
        typer.echo(found.to_json())
    else:
        from rich.text import Text as Words

        from deniable.report.stored_runs import DOCUMENTS
        from deniable.report.under_way import sentences

        answer = next((str(path) for name in DOCUMENTS if (path := Path(directory) / name).is_file()), None)
        print_parts(Words(sentence) for sentence in sentences(found, answer))
