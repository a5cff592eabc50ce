"""The command line: options in, one document out, as a table for people or as JSON.

Whatever computes or draws is imported by the command that needs it, so that help and refusals are quick.
"""

# ruff: noqa: PLC0415 (imports inside commands; a command has as many arguments as options)

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli import (
    assess_command,
    attack_command,
    audit_command,
    card_command,
    compare_command,
    doctor_command,
    examine_command,
    frontier_command,
    options,
    report_command,
    reproduce_command,
    serve_command,
    verdict_command,
    workers,
)
from deniable.cli.common import Stopped, patience, signals_raised

if TYPE_CHECKING:
    from deniable.results.explain_result import ChooseResult, ExplainResult

__all__ = ["app", "main"]

READER_GONE, REFUSED, FULL = 1, 2, 70
"""Exit codes beside 0; a signal's is 128 and its number."""

_LOADER_LACKS_MEMORY = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
"""What the system's loader says of a library for which memory is lacking."""

_EXPLAIN_EXAMPLES = (
    "Examples:\n\ndeniable explain --epsilon 2.2 --delta 1e-5\n\n"
    "deniable explain --noise 1 --records 60000 --batch 300 --epochs 30"
)
_CHOOSE_EXAMPLES = (
    "Examples:\n\ndeniable choose --belief .75 --records 60000 --batch 300 --epochs 30\n\n"
    "deniable choose --tpr .01 --fpr .001 --rate .005 --steps 6000"
)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def deniable(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", metavar=" ", help="Print the version.")] = False,
) -> None:
    """Choose, explain and audit the privacy of machine learning by what it means for a person."""
    if version:
        typer.echo(_version())
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _version() -> str:
    """The version, and the state of the compiled kernels."""
    from deniable import __version__
    from deniable.cli.doctor_command import kernel_state

    return f"deniable {__version__}\ncompiled kernels: {kernel_state()}"


@app.command(epilog=_EXPLAIN_EXAMPLES)
@options.taking(options.EXPLAIN, before="json")
def explain(json: options.Json = False, **texts: Any) -> None:
    """What a guarantee, or a training with a given noise, means for a person."""
    from deniable.answers.explain import explain_input
    from deniable.answers.parse import parse_release

    with _refusals():
        mechanism, given = parse_release(options.read(texts), texts["adjacency"])
    with patience():
        found = explain_input(mechanism, given)
    _print(found, json)


@app.command(epilog=_CHOOSE_EXAMPLES)
@options.taking(options.CHOOSE, before="frontier")
def choose(frontier: options.Frontier = None, json: options.Json = False, **texts: Any) -> None:
    """How much noise a training needs to keep a promise, beside what weaker analyses demand for it."""
    from deniable.answers.choose import choose_input
    from deniable.answers.parse import parse_choice

    with _refusals():
        asked = parse_choice(options.read(texts), texts["adjacency"], texts["mechanism"])
        with patience():
            found = _with_expectation(choose_input(*asked), frontier)
    _print(found, json)


def _with_expectation(found: ChooseResult, frontier: str | None) -> ChooseResult:
    """With a row of what accuracy to expect, where a frontier is named."""
    if frontier is None:
        return found
    from deniable.promises.read_promise import promise_in
    from deniable.utility.expected_quality import expect_quality, read_frontier

    given = found.input
    if given.sampling is not None or given.is_laplace or given.is_response:
        raise ValueError(
            "--frontier is measured for trainings on Poisson batches and says nothing of this release: leave it out"
        )
    try:
        person = given.records_per_person or 1
        expected = expect_quality(read_frontier(frontier), promise_in(given), given.adjacency, person)
        return found.replace(expected=expected)
    except OSError as missing:
        raise ValueError(str(missing)) from missing


app.command(epilog=audit_command.EXAMPLES, cls=audit_command.AuditCommand)(audit_command.audit)
app.command(epilog=compare_command.EXAMPLES)(compare_command.compare)
app.command(epilog=frontier_command.EXAMPLES)(frontier_command.frontier)
app.command(epilog=attack_command.EXAMPLES)(attack_command.attack)
app.command(epilog=examine_command.EXAMPLES)(examine_command.examine)
app.command(epilog=verdict_command.EXAMPLES, cls=verdict_command.VerdictCommand)(verdict_command.verdict)
app.command(epilog=report_command.EXAMPLES)(report_command.report)
app.command(epilog=card_command.EXAMPLES)(card_command.card)
app.command(epilog=assess_command.EXAMPLES)(assess_command.assess)
app.command(epilog=reproduce_command.EXAMPLES)(reproduce_command.reproduce)
app.command(epilog=serve_command.EXAMPLES)(serve_command.serve)
app.command(epilog=doctor_command.EXAMPLES)(doctor_command.doctor)
for one in (workers.worker, workers.submit, workers.merge, workers.status):
    app.command()(one)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns the library's refusals into the command line's; a ValueError from anywhere else is a fault of ours."""
    try:
        yield
    except ValueError as refused:
        raise typer.TyperException(options.refusal_text(refused)) from refused


def _print(found: ExplainResult, as_json: bool) -> None:
    if as_json:
        typer.echo(found.to_json())
        return
    from deniable.cli.show.show_answer import show

    show(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input is one line on standard error.

    Exit codes: 0 done; 1 an item of `reproduce` missed what was stated, `examine` found a violation, or the reader of
    the output went away; 2 the input, the data or the disk was refused; 3 and 4 `examine` found another recipe, or
    cannot judge; 70 out of memory; 130 ended by Ctrl-C; 143 ended by SIGTERM.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with signals_raised():
            code = app(arguments, prog_name="deniable", standalone_mode=False)
            sys.stdout.flush()
        return code or 0
    except (typer.TyperException, typer.Abort) as refused:  # an Abort is an EOFError that nobody named
        early = "a file or the input ends too early"
        return _say(early if isinstance(refused, typer.Abort) else refused.format_message(), REFUSED)
    except BrokenPipeError:  # the reader went away, as `head` does: not an error, but stop writing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except OSError as refused:  # standard output that cannot be written, for one
        return _say(f"{refused.filename or 'the output'}: {refused.strerror or refused}", REFUSED)
    except (MemoryError, ImportError) as failed:
        if isinstance(failed, ImportError) and not any(words in str(failed) for words in _LOADER_LACKS_MEMORY):
            raise
        message = "out of memory: ask for less (fewer records, trials or processes), or take a larger machine"
        return _say(message, FULL)
    except Stopped as stopped:
        print(stopped, file=sys.stderr)
        return 128 + stopped.signal


def _say(message: str, code: int) -> int:
    print("deniable:", " ".join(message.split()), file=sys.stderr)
    return code
