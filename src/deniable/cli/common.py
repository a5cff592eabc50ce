"""What commands have in common: refusals and ends in one line, a spinner, a progress bar, text that fits."""

# ruff: noqa: PLC0415 (drawing is imported when there is something to draw)

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from deniable.cli.options import refusal_text

if TYPE_CHECKING:
    from deniable.report.stored_runs import Reported
    from deniable.results import Result

_OURS = ("torch", "sklearn", "matplotlib", "jinja2", "safetensors")
_WIDEST = 100
_SPINNER_SECONDS = 1.0


@contextmanager
def refusals(command: str) -> Iterator[None]:
    """Bad input, data or models, a refused disk: one line. Data and model are the user's, so all are caught."""
    try:
        yield
    except ModuleNotFoundError as missing:
        ours = f"{command} needs {missing.name}: pip install 'deniable[train]'"
        raise typer.TyperException(ours if missing.name in _OURS else str(missing)) from missing
    except (ValueError, OSError, FloatingPointError) as refused:
        raise typer.TyperException(refusal_text(refused)) from refused
    except RuntimeError as died:
        if "allocate memory" in str(died):  # as torch says it
            raise MemoryError from died
        from deniable.engines import EngineError

        if not isinstance(died, EngineError):
            raise
        raise typer.TyperException(str(died)) from died


@contextmanager
def kept_told(out: str | None, finished: Callable[[], int] | None = None, unit: str = "blocks") -> Iterator[None]:
    """Whoever stops the work hears what is kept of it: `finished()` counts it, in `unit`s."""
    try:
        yield
    except Stopped as stopped:
        if out is None:
            stopped.kept = f": no {unit} kept; with --out they would be"
        else:
            count = "all finished" if finished is None else f"{finished()}"
            stopped.kept = f": {count} {unit} kept; go on with --resume"
        raise


def write_report(result: Reported, out: str | None) -> str | None:
    """Write the run's page and say where it is; what the disk refuses is returned, to be said after the answer."""
    if out is None:
        return None
    from deniable.report.page import write

    try:
        print(f"report: {write(result, out)}", file=sys.stderr)
    except OSError as refused:
        where = f"{refused.filename} " if refused.filename else ""
        return f"the report is not written: {where}{refused.strerror or refused}"
    return None


def refuse_late(sentence: str | None) -> None:
    """Refuse with what `write_report` returned, now that the answer is printed."""
    if sentence is not None:
        raise typer.TyperException(sentence)


def numbers(option: str, text: str | None) -> list[float] | None:
    """The numbers of a list such as 0.5,2,4; None where the option is not given; none at all where it is empty."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ValueError(f"{option} must be numbers with commas between them, as in 0.5,2,4, got {text!r}") from error


def print_result(result: Result, parts: Iterable[Any], as_json: bool, unwritten: str | None) -> None:
    """One JSON document or, for a person, its parts; then refuse where the report could not be written."""
    if as_json:
        typer.echo(result.to_json())
    else:
        print_parts(parts)
    refuse_late(unwritten)


def print_parts(parts: Iterable[Any]) -> None:
    """Print for a person, on standard output, no wider than is good to read."""
    from rich.console import Console, Group

    console = Console(highlight=False)
    with console.capture() as drawn:
        console.print(Group(*parts), width=min(console.width, _WIDEST))
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


@contextmanager
def patience(what: str = "Computing the privacy loss ...") -> Iterator[None]:
    """Show a spinner on standard error after a second; only where a person is watching."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(what)
    timer = Timer(_SPINNER_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class Stopped(BaseException):
    """A person or the system ends the command; not a KeyboardInterrupt, which typer turns into a silent exit."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number
        self.kept = ""
        """What is kept, for the sentence."""

    def __str__(self) -> str:
        return f"stopped{self.kept}"


@contextmanager
def signals_raised() -> Iterator[None]:
    """Both signals are raised as `Stopped` meanwhile; one that is ignored, as Ctrl-C in the background, stays so."""
    heard = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    if current_thread() is not main_thread():
        heard = []
    before = {number: signal.signal(number, _stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)
