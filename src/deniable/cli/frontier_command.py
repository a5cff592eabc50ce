"""`deniable frontier`: what accuracy every promise leaves, on one's own data."""

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
from deniable.formatting import count_of

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.engines import Engine, Shared
    from deniable.results.frontier_result import FrontierResult
    from deniable.utility.frontier_plan import FrontierPlan

EXAMPLES = (
    "Examples:\n\ndeniable frontier people.csv --label income --out frontier\n\n"
    "deniable frontier adult --promise epsilon --bounds 1,3,8 --delta 1e-5 --repeats 3"
)
DATA, PROMISES, TRAINING, RUN = "The data", "The promises", "The training", "The run"
_LISTS = ("bounds", "clip", "learning_rate", "batch", "epochs")
_WHOLE = ("batch", "epochs")
_WORDS = ("label", "group", "test", "task", "promise", "model", "optimizer", "metric", "tuning", "public_data")
_NUMBERS = ("delta", "prior", "fpr", "baseline", "mean_runs", "repeats", "seed", "confidence")


@options.taking(engine_options(RUN), before="out")
def frontier(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A .csv, .csv.gz or .parquet table (words, dates, yes and no and blanks are encoded), an .npz file, "
            "adult, digits, location30, ..., or module:function.",
            show_default=False,
        ),
    ],
    label: Annotated[Text, option("label", "NAME", "Label column. Default: label, else the last.", DATA)] = None,
    group: Annotated[Text, option("group", "NAME", "Tell the groups of this column one by one.", DATA)] = None,
    test: Annotated[Text, option("test", "FILE", "Table of test records. Default: a quarter of DATA.", DATA)] = None,
    task: Annotated[Text, option("task", "T", "classification or regression. Default: by the label.", DATA)] = None,
    promise: Annotated[
        Text, option("promise", "P", "belief (default), advantage, accuracy, tpr, ppv, success or epsilon.", PROMISES)
    ] = None,
    bounds: Annotated[
        Text, option("bounds", "B,...", "What is promised. Default: eight from strict to weak.", PROMISES)
    ] = None,
    delta: Annotated[Text, option("delta", "D", "Default: one over the training records.", PROMISES)] = None,
    prior: Annotated[Text, option("prior", "P", "Belief before the release. Default 0.5.", PROMISES)] = None,
    fpr: Annotated[Text, option("fpr", "F", "False positive rate of tpr and ppv. Default 0.01.", PROMISES)] = None,
    baseline: Annotated[Text, option("baseline", "P", "Success without the release. Default 0.01.", PROMISES)] = None,
    local: Annotated[bool, flag("local", "Tell noise on the records themselves beside.", PROMISES)] = False,
    model: Annotated[
        Text,
        option("model", "M", "logistic, mlp:64,32, cnn or module:function. Default: one layer of 64.", TRAINING),
    ] = None,
    optimizer: Annotated[Text, option("optimizer", "O", "adam (default) or sgd.", TRAINING)] = None,
    clip: Annotated[Text, option("clip", "C,...", "Clipping norms to be tried.", TRAINING)] = None,
    learning_rate: Annotated[Text, option("learning-rate", "L,...", "Learning rates to be tried.", TRAINING)] = None,
    batch: Annotated[Text, option("batch", "B,...", "Expected batches to be tried.", TRAINING)] = None,
    epochs: Annotated[Text, option("epochs", "E,...", "Epochs to be tried.", TRAINING)] = None,
    metric: Annotated[
        Text,
        option(
            "metric", "M", "Tuned for: accuracy, balanced_accuracy, auc; error, absolute_error, explained.", TRAINING
        ),
    ] = None,
    tuning: Annotated[
        Text,
        option(
            "tuning",
            "T",
            "uncovered (default: the choice of settings is NOT covered by the promise), public (chosen on "
            "--public-data) or accounted (best of a random number of runs, paid for with noise).",
            TRAINING,
        ),
    ] = None,
    public_data: Annotated[
        Text, option("public-data", "FILE", "Table for the search. Default: generated data.", TRAINING)
    ] = None,
    mean_runs: Annotated[
        Text, option("mean-runs", "K", "Runs on average, of accounted tuning. Default 10.", TRAINING)
    ] = None,
    repeats: Annotated[Text, option("repeats", "R", "Trainings of every setting. Default 5.", RUN)] = None,
    seed: Annotated[Text, option("seed", "S", "Seed of everything random. Default 0.", RUN)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of all limits. Default 0.95.", RUN)] = None,
    out: Annotated[
        Text, option("out", "DIR", "Keep every finished unit here; then frontier.json, a picture, report.html.", RUN)
    ] = None,
    resume: Annotated[bool, flag("resume", "Go on with the frontier in --out.", RUN)] = False,
    plan: Annotated[bool, plan_flag(RUN)] = False,
    json: Annotated[bool, flag("json", "Print one JSON document, in full precision.", RUN)] = False,
    **engine: Text,
) -> None:
    """What accuracy every promise leaves, from very strict to none, on your own data."""
    with refusals("frontier"):
        if plan:
            _plan_only(context.params, out)
            return
        arguments = _arguments(context.params)
        document = _run(arguments, read_engine(context.params), out, resume)
        unwritten = write_report(document, out)
    print_result(document, _parts(document), json, unwritten)


def _arguments(texts: Mapping[str, Any]) -> dict[str, Any]:
    """What `frontier` takes, from the options that were given."""
    one_by_one = {
        name: [texts[name]] if name in ("fpr", "baseline") and texts[name] else texts[name] for name in _NUMBERS
    }
    found: dict[str, Any] = {
        name: value[0] if isinstance(value, tuple) else value for name, value in options.read(one_by_one).items()
    }
    for name in _LISTS:
        given = numbers(options.option_name(name), texts[name])
        if given is not None:
            found[name] = [_whole(name, value) for value in given] if name in _WHOLE else given
    found |= {name: texts[name] for name in _WORDS if texts[name] is not None}
    return {**found, "data": texts["data"], "local": bool(texts["local"])}


def _whole(name: str, value: float) -> int:
    if value != value // 1:
        raise ValueError(f"--{name} must be whole numbers, got {value:g}")
    return int(value)


def _run(arguments: dict[str, Any], engine: Engine, out: str | None, resume: bool) -> FrontierResult:
    if resume and out is None:
        raise ValueError("--resume needs --out, the directory of the frontier to go on with")
    with kept_told(out, unit="units"), bar("Reading the data", "Training", "units/s") as progress:
        from deniable.training.kernels import tell_if_slow
        from deniable.utility.find_frontier import frontier as find

        tell_if_slow()
        return find(**arguments, out=out, resume=resume, engine=engine, progress=progress)


def _plan_only(texts: Mapping[str, Any], out: str | None) -> None:
    from deniable.cli.planning import keep_plan, place_of_plan
    from deniable.store import Store

    with Store(place_of_plan(out)) as store:
        plan = _plan(texts)
        store.begin(plan.description)
        keep_plan("frontier", texts, store.directory, plan.units, plan.description)


def find_planned(texts: Mapping[str, Any], place: Path, engine: Shared) -> None:
    """Find the frontier that was planned in `place`, beside other workers; refused where it is another one here."""
    from deniable.engines import open_store
    from deniable.utility.find_frontier import run

    with open_store(engine, place) as store:
        run(_plan(texts), store, engine=engine)


def _plan(texts: Mapping[str, Any]) -> FrontierPlan:
    from deniable.utility.find_frontier import make_plan

    return make_plan(**{name: value for name, value in _arguments(texts).items() if name != "confidence"})


def _parts(document: FrontierResult) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.text import Text as Words

    from deniable.report.words import frontier_words as words

    for sentence in document.knee.sentences:
        yield Words(sentence, style="bold")
    yield Words("\n" + _told(document) + "\n")
    yield Padding(_levels(document), (0, 0, 1, 2), expand=False)
    for field in ("classes", "groups"):
        if getattr(document.none.quality, field):
            yield Padding(_of_parts(document, field), (0, 0, 1, 2), expand=False)
    yield Words(document.tuning_text, style="yellow" if document.input.tuning == "uncovered" else "")
    for caution in document.cautions:
        yield Words(caution, style="yellow")
    yield Words(words.sampling_note(document), style="dim")
    yield Words(f"{document.seconds or 0:.0f} s.", style="dim")


def _told(document: FrontierResult) -> str:
    given = document.input
    what = f"{len(given.classes)} classes" if given.classes else "numbers"
    return (
        f"{given.records:,} training records of {given.data} ({count_of(given.features, 'feature')}, {what}), "
        f"{given.test_records:,} test records; {count_of(given.settings, 'setting')}, "
        f"{count_of(given.repeats, 'training')} each. "
        f"In brackets: {100 * document.confidence:.4g} % limits of the mean."
    )


def _levels(document: FrontierResult) -> Any:
    from rich.table import Table

    from deniable.report.words.frontier_words import headings, rows

    heads = headings(document)
    kept = [0, 1, 2, 4, len(heads) - 2]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place in kept:
        table.add_column(heads[place], justify="left" if place == 0 else "right", no_wrap=place > 3)
    for row in rows(document):
        table.add_row(*(row[place] for place in kept))
    return table


def _of_parts(document: FrontierResult, field: str) -> Any:
    from rich.table import Table

    from deniable.report.words.frontier_words import part_rows
    from deniable.utility.knee import name_bound

    table = Table(box=None, pad_edge=False, header_style="bold")
    name = "class" if field == "classes" else document.input.group or "group"
    shown = [document.levels[0], document.levels[len(document.levels) // 2], document.levels[-1], document.none]
    levels = [*document.levels, document.none]
    places = sorted({levels.index(level) for level in shown})
    for heading in (name, "records", *(name_bound(document.input.promise, levels[place].bound) for place in places)):
        table.add_column(heading, justify="left" if heading == name else "right")
    for row in part_rows(document, field):
        table.add_row(*row[:2], *(row[2 + place] for place in places))
    return table
