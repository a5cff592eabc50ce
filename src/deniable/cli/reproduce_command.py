"""`deniable reproduce`: the tables and figures of the five documents, made anew."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli import options
from deniable.cli.common import print_parts, refusals
from deniable.cli.engine_options import engine_options, plan_flag, read_engine
from deniable.cli.options import Text, flag, option

if TYPE_CHECKING:
    from deniable.engines import Engine
    from deniable.experiments import Scale
    from deniable.experiments.run import Selected
    from deniable.results.reproduce_result import ItemListing, ReproduceResult

EXAMPLES = (
    "Examples:\n\ndeniable reproduce\n\ndeniable reproduce tvd figure-10\n\n"
    "deniable reproduce all --scale full --out results"
)
PANEL = "The run"
LISTED = ("smoke", "hours", "full")
LONG = 120
"""Seconds from which on a run tells how it is taken up again."""


def _argument(name: str, text: str) -> Any:
    return typer.Argument(metavar=name, help=text, show_default=False)


@options.taking(engine_options(PANEL), before="out")
def reproduce(
    context: typer.Context,
    paper: Annotated[
        Text, _argument("PAPER", "d53, vldb, tvd, dbsec or erlingsson; all for all. None: list them.")
    ] = None,
    item: Annotated[Text, _argument("ITEM", "One table or figure, as in table-2 or figure-6a.")] = None,
    scale: Annotated[
        Text,
        option("scale", "S", "smoke (default): minutes. hours: as in docs/results. full: the papers' sizes.", PANEL),
    ] = None,
    out: Annotated[
        Text, option("out", "DIR", "Where results go; finished items are kept. Default reproduced-SCALE.", PANEL)
    ] = None,
    plan: Annotated[bool, plan_flag(PANEL)] = False,
    json: Annotated[bool, flag("json", "Print one JSON document.", PANEL)] = False,
    **engine: Text,
) -> None:
    """Make the tables and figures of the five documents anew, the paper's value beside ours."""
    with refusals("reproduce"):
        from deniable.experiments import find

        chosen, size = find(paper or "all", item), _scale(scale)
        asked = read_engine(context.params) if any(engine.values()) else None
        place = Path(out or f"reproduced-{size}")
        if plan:
            _plan_only(context.params, place)
            return
        listing = _list_items(chosen) if paper is None else None
        result = _run(chosen, size, place, asked) if paper is not None else None
    if json:
        from msgspec.json import format as lay_out

        from deniable.results.base import encode

        typer.echo(lay_out(encode(result or listing), indent=2).decode())
    elif listing is not None:
        print_parts(_list(listing))
    if result is None:
        return
    if not json:
        print_parts(_outcome(result))
    if result.missed or result.absent:
        raise typer.Exit(1)


def _plan_only(texts: Mapping[str, Any], place: Path) -> None:
    from deniable.cli.planning import keep_plan
    from deniable.experiments.run import check_writable

    check_writable(place)
    keep_plan("reproduce", {"paper": "all", **_given(texts)}, place, None, {})


def _given(texts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: text for name, text in texts.items() if text is not None}


def _scale(text: str | None) -> Scale:
    from deniable.experiments import Scale

    if text is not None and text not in list(Scale):
        raise ValueError(f"--scale must be smoke, hours or full, got {text!r}")
    return Scale(text or Scale.SMOKE)


def _list_items(chosen: list[Selected]) -> ItemListing:
    from deniable.experiments import Scale, expected_seconds
    from deniable.results.reproduce_result import ItemListing, ListedItem, PaperName

    return ItemListing(
        items=tuple(
            ListedItem(
                paper=PaperName(key=paper.key, name=paper.name, title=paper.title),
                item=item.name,
                title=item.title,
                seconds={scale: item.expected_seconds(Scale(scale)) for scale in LISTED},
            )
            for paper, item in chosen
        ),
        seconds={scale: sum(expected_seconds((item for _, item in chosen), Scale(scale))) for scale in LISTED},
    )


def _run(chosen: list[Selected], scale: Scale, out: Path, engine: Engine | None) -> ReproduceResult:
    from deniable.experiments import PAPERS, expected_seconds, kept_record, run_items
    from deniable.experiments.run import check_writable

    check_writable(out)
    left = [(paper, item) for paper, item in chosen if kept_record((paper, item), scale, out) is None]
    seconds = expected_seconds((item for _, item in left), scale)
    finished = f", {len(chosen) - len(left)} of them finished" if len(left) < len(chosen) else ""
    print(
        f"{_count(len(chosen))} at scale {scale} into {out}{finished}: about {_time(sum(seconds))} on two cores.",
        file=sys.stderr,
    )
    if sum(seconds) > LONG:
        print(f"Ctrl-C stops it; the same command goes on with what {out} holds.", file=sys.stderr)
    with _bar({(paper.name, item.name): time for (paper, item), time in zip(left, seconds, strict=True)}) as progress:
        return run_items(chosen, scale, out, every=PAPERS, engine=engine, progress=progress)


@contextmanager
def _bar(expected: dict[tuple[str, str], float]) -> Iterator[Callable[[Selected, float], None]]:
    """A bar over the expected time of all items, on standard error; none without a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task("", total=max(sum(expected.values()), 1e-9))
        before: dict[tuple[str, str], float] = {}

        def tell(selected: Selected, done: float) -> None:
            name = (selected[0].name, selected[1].name)
            before[name] = done * expected.get(name, 0.0)
            shown.update(task, description=" ".join(name), completed=sum(before.values()))

        yield tell


def _list(listing: ItemListing) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text as Words

    yield Words(f"{_count(len(listing.items))} of five documents. deniable reproduce PAPER [ITEM] runs them.\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("paper", no_wrap=True)
    table.add_column("item", no_wrap=True)
    table.add_column("what")
    for heading in LISTED:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in listing.items:
        times = (_time(row.seconds[scale]) for scale in LISTED)
        table.add_row(row.paper.name, row.item, row.title, *times)
    yield Padding(table, (0, 0, 1, 2), expand=False)
    totals = (f"{_time(listing.seconds[scale])} at scale {scale}" for scale in LISTED)
    yield Words(
        f"On two cores, each alone. All together: about {', '.join(totals)}, since they share work.", style="dim"
    )


def _outcome(result: ReproduceResult) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text as Words

    from deniable.experiments.results_page import outcome

    rows, missed = result.items, result.missed
    held = f"The {len(rows)} that could be run hold" if result.absent else "All hold"
    said = held if not missed else f"{len(missed)} of {len(rows)} miss what was stated: {', '.join(missed)}"
    yield Words(f"{said}. See {result.out}/RESULTS.md.\n", style="bold red" if missed else "bold")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("item", no_wrap=True)
    table.add_column("outcome")
    for row in rows:
        table.add_row(row.name, outcome(row), style="" if row.passed else "red")
    yield Padding(table, (0, 0, 0, 2), expand=False)
    for name, why in result.absent.items():
        yield Words(f"\n{name} was not run: {why}", style="bold red")


def _count(items: int) -> str:
    return f"{items} table or figure" if items == 1 else f"{items} tables and figures"


def _time(seconds: float) -> str:
    if seconds < 1:
        return "1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
