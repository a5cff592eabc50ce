"""`deniable examine`: run a training once, watched, and judge its claim; words, JSON, SARIF, exit codes."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import wraps
from json import dumps
from pathlib import Path
from traceback import print_exception
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.checks import RefusedError, one_of
from deniable.cli import options
from deniable.cli.common import print_parts, refusals
from deniable.cli.options import Text, flag, option

if TYPE_CHECKING:
    from deniable.mechanisms import Training
    from deniable.results.run_result import RunResult

EXAMPLES = (
    "Exit codes: 0 consistent, 1 violated, 2 refused (or the training failed), 3 other recipe, 4 cannot judge.\n\n"
    "Examples:\n\ndeniable examine training.py:train --noise 1 --rate .05 --steps 100\n\n"
    "deniable examine training.py:train --claimed CLAIM --budget '2 min' --sarif privacy.sarif"
)
CODES = {"consistent": 0, "violated": 1, "other recipe": 3, "cannot judge": 4}
CLAIM, RUN = "The claim", "The run"


def examine(
    context: typer.Context,
    training: Annotated[
        str,
        typer.Argument(
            metavar="SCRIPT.py:FUNCTION",
            help="The training, called without arguments. What Opacus makes private in it is watched; a loop of its "
            "own returns dn.watch_run(...). Or module:function.",
            show_default=False,
        ),
    ],
    claimed: Annotated[
        Text, option("claimed", "NAME", "The claim by its name in the script: a dn.Training.", CLAIM)
    ] = None,
    noise: Annotated[Text, option("noise", "Z", "Or claimed noise / sensitivity,", CLAIM)] = None,
    rate: Annotated[Text, option("rate", "Q", "sampling rate,", CLAIM)] = None,
    steps: Annotated[Text, option("steps", "T", "number of steps,", CLAIM)] = None,
    adjacency: Annotated[
        Text, option("adjacency", "A", "and neighbours: add-remove (default), replace or zero-out.", CLAIM)
    ] = None,
    budget: Annotated[
        Text, option("budget", "TIME", "The run ends after this time, as in '30 s' or '5 min'. Default 10 min.", RUN)
    ] = None,
    loss: Annotated[Text, option("loss", "L", "Of each example, by name. Default cross-entropy.", RUN)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of the verdict. Default 0.999.", RUN)] = None,
    sarif: Annotated[Text, option("sarif", "FILE", "Write what was found in SARIF 2.1.0, for code hosts.", RUN)] = None,
    json: Annotated[bool, flag("json", "Print one JSON document.", RUN)] = False,
) -> None:
    """Run a training once, watched: does it do what it claims, and in which line not?"""
    with refusals("examine"), redirect_stdout(sys.stderr):
        result = _run_script(training, context.params)
        if sarif is not None:
            _write_sarif(result, sarif)
    if json:
        typer.echo(result.to_json())
    else:
        print_parts(_parts(result))
    if CODES[result.verdict]:
        raise typer.Exit(CODES[result.verdict])


def _run_script(training: str, texts: Mapping[str, Any]) -> RunResult:
    """What a user's script prints goes to standard error, so that the answer stands alone on standard output."""
    from deniable.examination.recorded import CONFIDENCE_OF_A_RUN
    from deniable.testing.check_training import check_training
    from deniable.testing.own_script import imported_script, named_in

    script, separator, name = training.rpartition(":")
    if not (script and separator and name):
        raise ValueError(f"SCRIPT.py:FUNCTION must name a script and a function in it, got {training!r}")
    sure = options.read({"confidence": texts["confidence"]}).get("confidence", CONFIDENCE_OF_A_RUN)
    claim = None if texts["claimed"] else _claim(texts)
    with imported_script(script) as module:
        return check_training(
            _telling(named_in(module, name), training),
            claimed=named_in(module, texts["claimed"]) if claim is None else claim,
            budget=texts["budget"] or "10 min",
            loss=texts["loss"] or "cross-entropy",
            confidence=sure,
        )


def _telling(train: Callable[[], Any], name: str) -> Callable[[], Any]:
    """The training; where it fails by itself, its own traceback is shown before the refusal."""
    if not callable(train):
        raise ValueError(f"{name} must be a function that trains, got {type(train).__name__}")

    @wraps(train)
    def run() -> Any:
        try:
            return train()
        except Exception as error:
            print_exception(error)
            raise ValueError(f"{name} raised {type(error).__name__}: {str(error)[:200]}") from error

    return run


def _claim(texts: Mapping[str, Any]) -> Training:
    from deniable.mechanisms import Adjacency, Training

    values = options.read({name: texts[name] for name in ("noise", "rate", "steps")})
    for name in ("noise", "rate", "steps"):
        if name not in values:
            raise RefusedError(
                f"{{{name}}} is missing: name the claim, {{noise}}, {{rate}} and {{steps}}, or --claimed", name
            )
    kind = Adjacency(one_of("adjacency", texts["adjacency"] or "add-remove", tuple(Adjacency)))
    return Training(values["noise"], values["rate"], values["steps"], kind)


def _write_sarif(result: RunResult, place: str) -> None:
    from deniable.testing.findings import findings_of, sarif_document, sarif_result

    document = sarif_document(sarif_result(finding) for finding in findings_of(result))
    Path(place).write_text(dumps(document, indent=2) + "\n", encoding="utf-8")


def _parts(result: RunResult) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text as Words

    from deniable.testing.findings import message_of

    if result.verdict == "consistent":
        yield Words(f"{result.summary()}\n", style="bold")
    yield Words(message_of(result) + "\n", style="" if result.verdict == "consistent" else "bold red")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("part", "found", "seen"):
        table.add_column(heading)
    for check in result.checks:
        table.add_row(check.name, check.outcome, check.observed)
    yield Padding(table, (0, 0, 1, 2), expand=False)
    for what in result.not_shown:
        yield Words(f"Not shown by this run: {what}.", style="dim")
