"""`deniable attack`: membership inference against a user's own trained model."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.campaigns.progress import bar
from deniable.cli import options
from deniable.cli.common import kept_told, print_result, refusals, write_report
from deniable.cli.engine_options import engine_options, plan_flag, read_engine
from deniable.cli.options import Text, flag, option

if TYPE_CHECKING:
    from deniable.engines import Campaign
    from deniable.results.attack_result import AttackResult

EXAMPLES = (
    "Examples:\n\ndeniable attack mine:network members.npz others.npz --weights model.safetensors\n\n"
    "deniable attack mine:network records.csv --label group --attack threshold\n\n"
    "deniable attack mine:network members.npz others.npz --weights model.safetensors --attack all --epochs 20"
)
SIDE_BY_SIDE = "Attacks side by side, first time (* judged above); each figure over limits that hold by themselves"
MODEL, ATTACK, RECIPE = "The model and its records", "The attack", "How the model was trained, for shadow models"
NUMBERS = ("repeats", "seed", "delta", "confidence", "shadows", "queries")
TRAINING = ("epochs", "batch", "learning_rate", "noise", "clip")


@options.taking(engine_options(ATTACK, "Worker processes. Default 1; with --train one a core."), before="out")
def attack(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="module:function that returns the trained nn.Module, or an estimator with "
            "predict_proba (regression: predict). Or, without DATA, a .csv of confidences: member, target, shadow_1, "
            "inside_1, ...",
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA...",
            help="Members and non-members: two .npz or .csv files, in this order, or one with a column (array) "
            "'member' of 0 and 1.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        Text, option("weights", "FILE", "Its weights: .safetensors, or a checkpoint of tensors alone.", MODEL)
    ] = None,
    label: Annotated[Text, option("label", "NAME", "Label column of the .csv.", MODEL)] = None,
    task: Annotated[
        Text, option("task", "T", "classification (default), or regression: labels are any numbers.", MODEL)
    ] = None,
    epochs: Annotated[Text, option("epochs", "E", "Default: as many as fit shadows as closely.", RECIPE)] = None,
    batch: Annotated[Text, option("batch", "B", "Records a step. Default 64.", RECIPE)] = None,
    learning_rate: Annotated[
        Text, option("learning-rate", "L", "Default 0.001, or 0.01 if that is too slow.", RECIPE)
    ] = None,
    optimizer: Annotated[Text, option("optimizer", "O", "adam (default) or sgd.", RECIPE)] = None,
    noise: Annotated[
        Text, option("noise", "Z", "Noise multiplier of DP-SGD (Poisson batches); needs --epochs.", RECIPE)
    ] = None,
    clip: Annotated[Text, option("clip", "C", "Clipping norm, with --noise. Default 1.", RECIPE)] = None,
    train: Annotated[
        Text,
        option("train", "M:F", "In place of these: module:function(records, seed) that trains a model.", RECIPE),
    ] = None,
    kind: Annotated[
        Text,
        option(
            "attack",
            "A",
            "strongest (default), all, lira, rmia, bayes, these with -offline, quantile, whitebox or threshold.",
            ATTACK,
        ),
    ] = None,
    shadows: Annotated[Text, option("shadows", "N", "Shadow models. Default 32.", ATTACK)] = None,
    queries: Annotated[Text, option("queries", "Q", "Ways to show an image to a model. Default 1.", ATTACK)] = None,
    repeats: Annotated[
        Text, option("repeats", "R", "Divisions into known and tested records. Default 5.", ATTACK)
    ] = None,
    seed: Annotated[Text, option("seed", "S", "Seed of everything random. Default 0.", ATTACK)] = None,
    delta: Annotated[Text, option("delta", "D", "Delta of the bound on epsilon. Default 1/members.", ATTACK)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of all limits. Default 0.95.", ATTACK)] = None,
    out: Annotated[
        Text, option("out", "DIR", "Keep every finished repeat here; then attack.json and a report.", ATTACK)
    ] = None,
    resume: Annotated[bool, flag("resume", "Go on with the attack in --out.", ATTACK)] = False,
    exposure: Annotated[
        bool,
        flag(
            "exposure", "Every member by LiRA and by an observer of every step; needs --noise. Personal data.", ATTACK
        ),
    ] = False,
    plan: Annotated[bool, plan_flag(ATTACK)] = False,
    json: Annotated[bool, flag("json", "Print one JSON document.", ATTACK)] = False,
    **engine: Text,
) -> None:
    """Attack a trained model of your own: who was in its training data?"""
    with refusals("attack"):
        if plan:
            _plan_only(context.params, out)
            return
        if not data:
            document = _judge_table(context.params)
            print_result(document, _parts(document), json, write_report(document, out))
            return
        values = _values(context.params, *NUMBERS)
        values |= {
            "engine": read_engine(context.params, None if train else 1),
            "out": out,
            "resume": resume,
            "exposure": exposure,
        }
        with kept_told(out, unit="repeats"):
            document = _attack_model(context.params, values)
        unwritten = write_report(document, out)
    print_result(document, _parts(document), json, unwritten)


def _judge_table(texts: Mapping[str, Any]) -> AttackResult:
    """Of a file of confidences; options that are about a model are refused."""
    from deniable.campaigns.provenance import attack_command, versions
    from deniable.comparison.confidence_table import read_confidence_table
    from deniable.comparison.own_model import attack_confidences
    from deniable.results.base import plain
    from deniable.results.shared import Provenance

    file = texts["model"]
    if ":" in file or not file.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise ValueError("DATA is missing: name the files of members and non-members, or a .csv of confidences alone")
    needless = [
        name
        for name in ("weights", "label", "task", "train", "exposure", "shadows", "queries", *TRAINING)
        if texts[name]
    ]
    if needless:
        raise ValueError(f"--{needless[0].replace('_', '-')} is about a model: a file of confidences has none")
    values = options.read({name: texts[name] for name in ("repeats", "seed", "delta", "confidence")})
    if texts["kind"] is not None:
        values["attack"] = texts["kind"]
    found = attack_confidences(read_confidence_table(file), **values)
    command = attack_command(file, [], {}, plain(found.input))
    return found.replace(provenance=Provenance(data=file, versions=versions(), command=command))


def _values(texts: Mapping[str, Any], *numbers: str) -> dict[str, Any]:
    """What the attack takes, from the options that were given."""
    found = options.read({name: texts[name] for name in numbers})
    if texts["kind"] is not None:
        found["attack"] = texts["kind"]
    return found | _training(texts)


def _training(texts: Mapping[str, Any]) -> dict[str, Any]:
    """How shadows are trained, where that was said."""
    from deniable.adversaries import ShadowTraining
    from deniable.data import import_function

    asked = options.read({name: texts[name] for name in TRAINING})
    if texts["optimizer"] is not None:
        asked["optimizer"] = texts["optimizer"]
    found: dict[str, Any] = {"training": ShadowTraining(**asked)} if asked else {}
    return found if texts["train"] is None else found | {"train": import_function(texts["train"])}


def _plan_only(texts: Mapping[str, Any], out: str | None) -> None:
    from deniable.cli.planning import keep_plan, place_of_plan
    from deniable.store import Store

    if not texts["data"]:
        raise ValueError("--plan is about shadow models and repeats: without DATA there are none, leave it out")
    with Store(place_of_plan(out)) as store:
        campaign = plan_attack(texts)
        store.begin(campaign.settings)
        keep_plan("attack", texts, store.directory, campaign.blocks, campaign.settings)


def plan_attack(texts: Mapping[str, Any]) -> Campaign[Any]:
    """The repeats that the options ask for."""
    from deniable.comparison.own_model import campaign_of, read_model, read_records

    regression = is_regression(texts["task"])
    members, non_members = read_records(texts["data"], texts["label"], regression=regression)
    return campaign_of(
        read_model(texts["model"], texts["weights"], regression=regression),
        members,
        non_members,
        **_values(texts, "repeats", "seed", "shadows", "queries"),
    )


def is_regression(task: str | None) -> bool:
    """Whether --task says so."""
    from deniable.checks import one_of

    return task is not None and one_of("task", task, ("classification", "regression")) == "regression"


def _attack_model(texts: Mapping[str, Any], values: dict[str, Any]) -> AttackResult:
    from torch import nn

    from deniable.campaigns.provenance import attack_command, versions
    from deniable.comparison.own_model import attack, read_model, read_records
    from deniable.results.base import plain
    from deniable.results.shared import Provenance

    model, data, weights, label = (texts[name] for name in ("model", "data", "weights", "label"))
    with bar("Reading the model and the records", "Attacking") as progress:
        regression = is_regression(texts["task"])
        members, non_members = read_records(data, label, regression=regression)
        attacked = read_model(model, weights, regression=regression)
        found = attack(attacked, members, non_members, progress=progress, **values)
    named = {"weights": weights, "label": label, "task": texts["task"], "train": texts["train"]}
    command = attack_command(model, data, named, plain(found.input)) + " --exposure" * values["exposure"]
    if weights is None and isinstance(attacked, nn.Module):
        from deniable.report.words.attack_words import FRESH

        found = found.replace(warning=" ".join(filter(None, (FRESH, found.warning))))
    return found.replace(provenance=Provenance(data=", ".join(data), versions=versions(), command=command))


def _parts(document: AttackResult) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text as Words

    from deniable.report.words.attack_words import (
        attack_sentence,
        exposure_sentence,
        meaning,
        proven_sentence,
        rows,
        shadow_caution,
        shadow_sentence,
    )

    if document.warning:
        yield Words(document.warning + "\n", style="bold red")
    yield Words(meaning(document) + "\n", style="bold")
    for sentence in filter(None, (attack_sentence(document), shadow_sentence(document), proven_sentence(document))):
        yield Words(sentence + "\n")
    if caution := shadow_caution(document):
        yield Words(caution + "\n", style="yellow")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows(document):
        table.add_row(*row)
    yield Padding(table, (0, 0, 1, 2), expand=False)
    if len(document.attacks) > 1:
        yield Padding(_side_by_side(document), (0, 0, 1, 2), expand=False)
    if document.exposure is not None:
        yield Words(exposure_sentence(document) + "\n")
        yield Padding(_exposed_table(document), (0, 0, 1, 2), expand=False)


def _exposed_table(document: AttackResult) -> Any:
    from rich.table import Table

    from deniable.report.words.attack_words import exposed_rows

    table = Table(box=None, pad_edge=False)
    for name in ("Members that Bayesian LiRA is surest of", "LiRA", "every step: at most"):
        table.add_column(name, justify="right")
    for row in exposed_rows(document):
        table.add_row(*row)
    return table


def _side_by_side(document: AttackResult) -> Any:
    from rich.table import Table

    from deniable.report.words.attack_words import side_by_side

    table = Table(box=None, pad_edge=False, title=SIDE_BY_SIDE, title_justify="left", padding=(0, 0, 0, 1))
    for name in ("", "AUC", "TPR at 0.1 %", "TPR at 1 %", "advantage", "epsilon >="):
        table.add_column(name, justify="left" if not name else "right", overflow="fold", no_wrap=bool(name))
    for row in side_by_side(document):
        table.add_row(row[0].replace("-", " "), *map(_over_limits, row[1:]))
    return table


def _over_limits(cell: str) -> str:
    """A value over its limits, which need as little room as a terminal has: "3.2 % (1.4 % to 6.1 %)"."""
    value, bracket, limits = cell.partition(" (")
    if not bracket:
        return cell
    return f"{value}\n{limits.removesuffix(')').replace(' % to ', ' to ').replace(' to ', '..')}"
