"""A progress bar on standard error for a person at a terminal; nothing at all elsewhere."""

# ruff: noqa: PLC0415 (drawing is imported when there is something to draw)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def show_progress(
    progress: Callable[[int, int], None] | None, before: str, during: str | Callable[[], str], unit: str = ""
) -> Iterator[Callable[[int, int], None] | None]:
    """The caller's own `progress`; where there is none and a person is watching, a bar."""
    if progress is not None or not sys.stderr.isatty():
        yield progress
        return
    with bar(before, during, unit) as shown:
        yield shown


@contextmanager
def bar(before: str, during: str | Callable[[], str], unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left, and with the speed where it has a unit, on standard error; none without a terminal.

    `before` and `during` are its words until, and since, the first call; words that change are a function.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    words = [TextColumn(f"{{task.{name}}}") for name in ("description", "fields[count]", "fields[speed]")]
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    columns = (words[0], BarColumn(), *words[1:], *times)
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(before, total=None, count="", speed="")

        def tell(done: int, total: int) -> None:
            if shown.tasks[0].total is None:  # what a resumed run brings does not count for the speed
                shown.reset(task, total=total, completed=done)
            words = during() if callable(during) else during
            shown.update(task, completed=done, count=f"{done:,} of {total:,}", description=words)
            rate = shown.tasks[0].speed
            shown.update(task, speed=f"{rate:.3g} {unit}" if rate and unit else "")

        yield tell
