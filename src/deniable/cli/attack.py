"""`deniable attack`: membership inference against a user's own trained model."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

import json as encoder
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from deniable.cli import options
from deniable.cli.options import Text, option
from deniable.cli.running import bar, print_parts, refusals
from deniable.document import Document

__all__ = ["EXAMPLES", "attack"]

EXAMPLES = (
    "Examples:\n\ndeniable attack mine:network members.npz others.npz --weights model.safetensors\n\n"
    "deniable attack mine:network records.csv --label group --attack threshold"
)
MODEL, ATTACK = "The model and its records", "The attack"


def attack(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="module:function that returns the trained nn.Module.")],
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Members and non-members: two .npz or .csv files, in this order, or one with a column (array) "
            "'member' of 0 and 1.",
        ),
    ],
    weights: Annotated[
        Text, option("weights", "FILE", "Its weights: .safetensors, or a checkpoint of tensors alone.", MODEL)
    ] = None,
    label: Annotated[Text, option("label", "NAME", "Label column of the .csv.", MODEL)] = None,
    kind: Annotated[Text, option("attack", "A", "whitebox (default) or threshold.", ATTACK)] = None,
    repeats: Annotated[
        Text, option("repeats", "R", "Divisions into known and tested records. Default 5.", ATTACK)
    ] = None,
    seed: Annotated[Text, option("seed", "S", "Seed of everything random. Default 0.", ATTACK)] = None,
    delta: Annotated[Text, option("delta", "D", "Delta of the bound on epsilon. Default 1/members.", ATTACK)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of all limits. Default 0.95.", ATTACK)] = None,
    out: Annotated[
        Text, option("out", "DIR", "Keep every finished repeat here; then attack.json and a picture.", ATTACK)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", metavar=" ", help="Go on with the attack in --out.", rich_help_panel=ATTACK)
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", metavar=" ", help="Print one JSON document.", rich_help_panel=ATTACK)
    ] = False,
) -> None:
    """Attack a trained model of your own: who was in its training data?"""
    with refusals("attack"):
        given = ("repeats", "seed", "delta", "confidence")
        values = options.read({name: context.params[name] for name in given})
        values |= {"out": out, "resume": resume} | ({} if kind is None else {"attack": kind})
        document = _attacked(model, data, weights, label, values)
        if out is not None:
            from deniable.report.page import write_attack

            write_attack(document, out)
            print(f"picture and attack.json: {out}", file=sys.stderr)
    if json:
        typer.echo(encoder.dumps(document, indent=2, allow_nan=False))
        return
    print_parts(_parts(document))


def _attacked(model: str, data: list[str], weights: Text, label: Text, values: dict[str, Any]) -> Document:
    from deniable.comparison.own import attack_model, read_model, read_records

    with bar("Reading the model and the records", "Attacking") as progress:
        members, non_members = read_records(data, label)
        return attack_model(read_model(model, weights), members, non_members, progress=progress, **values)


def _parts(document: Document) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text as Words

    given, precision, bound = document["input"], document["average_precision"], document["epsilon_lower_bound"]
    if document["warning"]:
        yield Words(document["warning"] + "\n", style="bold red")
    yield Words(_verdict(document) + "\n", style="bold")
    yield Words(
        f"The attacker knew half of {given['members']:,} members and {given['non_members']:,} non-members (as many of "
        f"each) and was tested on {given['tested']:,} others, {given['repeats']} times.\n"
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    limits = document["average_precision_interval"]
    table.add_row("Average precision (0.5: guessing)", f"{precision['mean']:.3f}")
    table.add_row(f"  {given['confidence']:.0%} limits, first repeat", f"{limits['low']:.3f} to {limits['high']:.3f}")
    table.add_row("Blind average precision, without the model", f"{document['blind']['average_precision']:.3f}")
    table.add_row("Advantage (TPR - FPR)", f"{document['advantage']['mean']:.3f}")
    for fpr, tpr in document["tpr_at_fpr"].items():
        table.add_row(f"Members found (TPR) at {100 * float(fpr):g} % FPR", f"{tpr:.2%}")
    shown = "-" if bound["value"] is None else f"{bound['value']:.3g}"
    table.add_row(f"Epsilon at delta {given['delta']:.3g}, at least", shown)
    table.add_row("Accuracy on members", f"{document['accuracy']['members']:.1%}")
    table.add_row("Accuracy on non-members", f"{document['accuracy']['non_members']:.1%}")
    yield Padding(table, (0, 0, 1, 2), expand=False)


def _verdict(document: Document) -> str:
    if document["blind"]["differs"]:
        return "Whether the model gives its training data away cannot be told from these records."
    if document["average_precision_interval"]["low"] > 0.5:
        return "The model gives its training data away: the attack does better than guessing."
    return "This attack cannot tell members from non-members; a stronger one may."
