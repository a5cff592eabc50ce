"""What commands have in common: refusals on one line, a progress bar, text that fits the terminal."""

# ruff: noqa: PLC0415 (drawing is imported when there is something to draw)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import typer

__all__ = ["bar", "numbers", "print_parts", "refusals"]

_OURS = ("torch", "sklearn", "matplotlib", "jinja2", "safetensors")
_WIDEST = 100


@contextmanager
def refusals(command: str) -> Iterator[None]:
    """Bad input, data or models, a refused disk: one line. Data and model are the user's, so all are caught."""
    try:
        yield
    except ModuleNotFoundError as missing:
        ours = f"{command} needs {missing.name}: pip install 'deniable[train]'"
        raise typer.TyperException(ours if missing.name in _OURS else str(missing)) from missing
    except (ValueError, OSError, FloatingPointError) as refused:
        raise typer.TyperException(str(refused)) from refused
    except RuntimeError as died:
        if not isinstance(died.__cause__, BrokenProcessPool):
            raise
        raise typer.TyperException(str(died)) from died


def numbers(option: str, text: str | None) -> list[float] | None:
    """The numbers of a list such as 0.5,2,4; None where the option is not given; none at all where it is empty."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ValueError(f"{option} must be numbers with commas between them, as in 0.5,2,4, got {text!r}") from error


@contextmanager
def bar(before: str, during: str, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left, and with the speed where it has a unit, on standard error; none without a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    words = [TextColumn(f"{{task.{name}}}") for name in ("description", "fields[count]", "fields[speed]")]
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    columns = (words[0], BarColumn(), *words[1:], *times)
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(before, total=None, count="", speed="")

        def tell(done: int, total: int) -> None:
            if shown.tasks[0].total is None:  # what a resumed run brings does not count for the speed
                shown.reset(task, total=total, completed=done, description=during)
            shown.update(task, completed=done, count=f"{done:,} of {total:,}")
            rate = shown.tasks[0].speed
            shown.update(task, speed=f"{rate:.3g} {unit}" if rate and unit else "")

        yield tell


def print_parts(parts: Iterable[Any]) -> None:
    """Print for a person, on standard output, no wider than is good to read."""
    from rich.console import Console, Group

    console = Console(highlight=False)
    with console.capture() as drawn:
        console.print(Group(*parts), width=min(console.width, _WIDEST))
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))
