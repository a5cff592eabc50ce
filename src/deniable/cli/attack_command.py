"""`deniable attack`: membership inference against a user's own trained model."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli import options
from deniable.cli.common import bar, kept_told, print_parts, refusals, refuse_late, write_report
from deniable.cli.engine_options import engine_options, plan_flag, read_engine
from deniable.cli.options import Text, option

if TYPE_CHECKING:
    from deniable.engines import Campaign
    from deniable.results.attack_result import AttackResult

__all__ = ["EXAMPLES", "attack"]

EXAMPLES = (
    "Examples:\n\ndeniable attack mine:network members.npz others.npz --weights model.safetensors\n\n"
    "deniable attack mine:network records.csv --label group --attack threshold"
)
MODEL, ATTACK = "The model and its records", "The attack"


@options.taking(engine_options(ATTACK, "Worker processes. Default 1."), before="out")
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
        Text, option("out", "DIR", "Keep every finished repeat here; then attack.json and a report.", ATTACK)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", metavar=" ", help="Go on with the attack in --out.", rich_help_panel=ATTACK)
    ] = False,
    plan: Annotated[bool, plan_flag(ATTACK)] = False,
    json: Annotated[
        bool, typer.Option("--json", metavar=" ", help="Print one JSON document.", rich_help_panel=ATTACK)
    ] = False,
    **engine: Text,
) -> None:
    """Attack a trained model of your own: who was in its training data?"""
    with refusals("attack"):
        if plan:
            _plan_only(context.params, out)
            return
        values = _values(context.params, "repeats", "seed", "delta", "confidence")
        values |= {"engine": read_engine(context.params, 1), "out": out, "resume": resume}
        with kept_told(out, unit="repeats"):
            document = _attack_model(model, data, weights, label, values)
        unwritten = write_report(document, out)
    if json:
        typer.echo(document.to_json())
    else:
        print_parts(_parts(document))
    refuse_late(unwritten)


def _values(texts: Mapping[str, Any], *numbers: str) -> dict[str, Any]:
    """What the attack takes, from the options that were given."""
    kind = texts["kind"]
    return options.read({name: texts[name] for name in numbers}) | ({} if kind is None else {"attack": kind})


def _plan_only(texts: Mapping[str, Any], out: str | None) -> None:
    from deniable.cli.planning import keep_plan, place_of_plan
    from deniable.store import Store

    with Store(place_of_plan(out)) as store:
        campaign = plan_attack(texts)
        store.begin(campaign.settings)
        keep_plan("attack", texts, store.directory, campaign)


def plan_attack(texts: Mapping[str, Any]) -> Campaign[Any]:
    """The repeats that the options ask for."""
    from deniable.comparison.own_model import campaign_of, read_model, read_records

    members, non_members = read_records(texts["data"], texts["label"])
    return campaign_of(
        read_model(texts["model"], texts["weights"]), members, non_members, **_values(texts, "repeats", "seed")
    )


def _attack_model(model: str, data: list[str], weights: Text, label: Text, values: dict[str, Any]) -> AttackResult:
    from deniable.campaigns.provenance import attack_command, versions
    from deniable.comparison.own_model import attack, read_model, read_records
    from deniable.results.base import plain
    from deniable.results.shared import Provenance

    with bar("Reading the model and the records", "Attacking") as progress:
        members, non_members = read_records(data, label)
        found = attack(read_model(model, weights), members, non_members, progress=progress, **values)
    command = attack_command(model, data, {"weights": weights, "label": label}, plain(found.input))
    if weights is None:
        from deniable.report.attack_words import FRESH

        found = found.replace(warning=" ".join(filter(None, (FRESH, found.warning))))
    return found.replace(provenance=Provenance(data=", ".join(data), versions=versions(), command=command))


def _parts(document: AttackResult) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text as Words

    from deniable.report.attack_words import attack_sentence, meaning, rows

    if document.warning:
        yield Words(document.warning + "\n", style="bold red")
    yield Words(meaning(document) + "\n", style="bold")
    yield Words(attack_sentence(document) + "\n")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows(document):
        table.add_row(*row)
    yield Padding(table, (0, 0, 1, 2), expand=False)
