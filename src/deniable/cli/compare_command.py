"""`deniable compare`: local against central privacy, by what an attacker achieves and what accuracy is left."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.campaigns.progress import bar
from deniable.cli import options
from deniable.cli.common import kept_told, numbers, print_result, refusals, write_report
from deniable.cli.engine_options import engine_options, plan_flag, read_engine
from deniable.cli.options import Text, flag, option
from deniable.formatting import at_least, at_most, short, times

if TYPE_CHECKING:
    from deniable.comparison import ComparisonPlan
    from deniable.engines import Engine
    from deniable.results.compare_result import CompareResult, LevelResult
    from deniable.results.shared import Spread

EXAMPLES = (
    "Examples:\n\ndeniable compare purchases --out comparison\n\n"
    "deniable compare location30 --central 2,16 --local 1 --attack threshold --repeats 3"
)
DATA, LEVELS, CAMPAIGN = "The data", "The levels of protection", "The comparison"


@options.taking(engine_options(CAMPAIGN), before="out")
def compare(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="purchases (default), skewed-purchases, location30, adult, lfw, ..., an .npz or .csv file, or "
            "module:function.",
            show_default=False,
        ),
    ] = "purchases",
    classes: Annotated[Text, option("classes", "C", "Keep the C most common classes.", DATA)] = None,
    label: Annotated[Text, option("label", "NAME", "Label column of the .csv.", DATA)] = None,
    records: Annotated[Text, option("records", "N", "Members, and as many non-members. Default 1000.", DATA)] = None,
    central: Annotated[
        Text, option("central", "Z,...", "Noise multipliers on gradients. Default 0.5,2,4,6,16.", LEVELS)
    ] = None,
    local: Annotated[
        Text,
        option(
            "local", "E,...", "Epsilons for each value of a record. Default 0.1,0.5,1,2,3; images 1 to 10000.", LEVELS
        ),
    ] = None,
    epochs: Annotated[
        Text, option("epochs", "E", "Most epochs. Default: by the data, as Bernau et al. 2021.", LEVELS)
    ] = None,
    patience: Annotated[
        Text,
        option("patience", "E", "Stop after E epochs without a smaller held-out loss; 0: never. Default 5.", LEVELS),
    ] = None,
    attack: Annotated[
        Text, option("attack", "A", "strongest (default), lira, rmia, bayes, whitebox, shadow or threshold.", CAMPAIGN)
    ] = None,
    repeats: Annotated[Text, option("repeats", "R", "Trainings of each level. Default 5.", CAMPAIGN)] = None,
    seed: Annotated[Text, option("seed", "S", "Seed of everything random. Default 0.", CAMPAIGN)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of all limits. Default 0.95.", CAMPAIGN)] = None,
    out: Annotated[
        Text,
        option("out", "DIR", "Keep every finished training here; then compare.json, figures, report.html.", CAMPAIGN),
    ] = None,
    resume: Annotated[bool, flag("resume", "Go on with the comparison in --out.", CAMPAIGN)] = False,
    plan: Annotated[bool, plan_flag(CAMPAIGN)] = False,
    json: Annotated[bool, flag("json", "Print one JSON document, in full precision.", CAMPAIGN)] = False,
    **engine: Text,
) -> None:
    """Compare local and central privacy by what an attacker achieves and what accuracy is left."""
    with refusals("compare"):
        if plan:
            _plan_only(context.params, out)
            return
        arguments = _arguments(context.params)
        document = _run_comparison(arguments, read_engine(context.params), out, resume)
        unwritten = write_report(document, out)
    print_result(document, _parts(document), json, unwritten)


def _arguments(texts: Mapping[str, Any]) -> dict[str, Any]:
    """What `Plan.of` and `run` take, from the options that were given."""
    left_out = ("data", "task_memory", "task_gpus")
    values = options.read({name: text for name, text in texts.items() if name not in left_out})
    lists = {name: numbers(f"--{name}", texts[name]) for name in ("central", "local")}
    words = {name: texts[name] for name in ("label", "attack") if texts[name] is not None}
    if values.get("patience") == 0:
        values["patience"] = None
    return {
        **values,
        **{name: found for name, found in lists.items() if found is not None},
        **words,
        "data": texts["data"],
    }


def _plan_only(texts: Mapping[str, Any], out: str | None) -> None:
    from deniable.cli.planning import keep_plan, place_of_plan
    from deniable.comparison.play import campaign_of
    from deniable.store import Store

    with Store(place_of_plan(out)) as store:
        campaign = campaign_of(plan_comparison(texts))
        store.begin(campaign.settings)
        keep_plan("compare", texts, store.directory, campaign.blocks, campaign.settings)


def plan_comparison(texts: Mapping[str, Any]) -> ComparisonPlan:
    """The comparison that the options ask for."""
    from deniable.comparison import ComparisonPlan

    arguments = _arguments(texts)
    return ComparisonPlan.of(
        **{name: value for name, value in arguments.items() if name not in ("confidence", "processes")}
    )


def _run_comparison(arguments: dict[str, Any], engine: Engine, out: str | None, resume: bool) -> CompareResult:
    if resume and out is None:
        raise ValueError("--resume needs --out, the directory of the comparison to go on with")
    from deniable.engines import open_store

    running = {name: arguments.pop(name) for name in ("confidence",) if name in arguments}
    arguments.pop("processes", None)
    told = kept_told(out, unit="trainings")
    with open_store(engine, out, resume) as store, told, bar("Loading the data", "Training and attacking") as progress:
        from deniable.comparison import ComparisonPlan, run
        from deniable.training.kernels import tell_if_slow

        tell_if_slow()
        return run(ComparisonPlan.of(**arguments), store, engine=engine, progress=progress, **running)


def _parts(document: CompareResult) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.text import Text as Words

    for sentence in document.recommendation.sentences:
        yield Words(sentence, style="bold" if sentence != document.warning else "bold red")
    yield Words("\n" + _game(document) + "\n")
    yield Padding(_levels(document), (0, 0, 1, 2), expand=False)
    if document.region:
        yield Words("The region of privacy: epsilon lies between what analysis proves and what the attack shows.\n")
        yield Padding(_region(document), (0, 0, 1, 2), expand=False)
    yield from (Words(note, style="dim") for note in _notes(document))


def _game(document: CompareResult) -> str:
    from deniable.report.words.attack_words import compared_attack

    given = document.input
    return (
        f"Every level was trained {times(given.repeats)} on {given.records:,} records of {given.data} "
        f"({given.classes} classes) and attacked by {compared_attack(document)}, which was tested on as "
        "many members as non-members. An average precision (AP) of 0.5 is guessing; blind is the AP of the records "
        "alone, without the model."
    )


def _levels(document: CompareResult) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for heading in ("epsilon", "accuracy", "attack's AP", "blind", "phi"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in document.levels:
        accuracy, precision = (_with_spread(found) for found in (row.test_accuracy, row.average_precision))
        blind = f"{row.blind_average_precision:.3f}"
        ratio = "-" if row.phi is None or row.value is None else f"{row.phi:.2f}"
        table.add_row(_name(row), _promise_text(row), accuracy, precision, blind, ratio)
    return table


def _name(row: LevelResult) -> str:
    return {
        "original": "original",
        "central": f"central, noise {row.value or 0:g}",
        "local": f"local, {row.value or 0:g} a value",
    }[row.kind]


def _promise_text(row: LevelResult) -> str:
    if row.epsilon is None:
        return "none"
    return at_most(row.epsilon.value if row.epsilon.record is None else row.epsilon.record)


def _with_spread(figure: Spread) -> str:
    spread = "" if figure.deviation is None else f" ± {figure.deviation:.3f}"
    return f"{figure.mean:.3f}{spread}"


def _region(document: CompareResult) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("noise", "attack: at least", "exact: at most", "RDP", "advanced", "naive"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in document.region:
        named = (row.named.rdp, row.named.advanced, row.named.naive)
        bounds = ("-" if value is None else at_most(value) for value in (row.exact, *named))
        shown = "-" if row.lower is None else at_least(row.lower)
        table.add_row(f"{row.noise:g}", shown, *bounds)
    return table


def _notes(document: CompareResult) -> Iterator[str]:
    delta, sure = document.delta, document.confidence
    spread = " ±: standard deviation of one repeat." if document.input.repeats > 1 else ""
    yield (
        f"Central epsilon: exact, at delta {short(delta)}, of the steps really taken (early stopping); local: the sum "
        f"over a record's values.{spread} At least: confidence {100 * sure:.4g} %."
    )
    if document.levels[0].phi_note:
        yield f"phi is {document.levels[0].phi_note}."
    else:
        yield "phi: relative gain in privacy over relative loss in accuracy; above 1 is favourable, 2 is the most."
    yield f"{document.seconds or 0:.0f} s."
