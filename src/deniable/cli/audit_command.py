"""`deniable audit`: options to a campaign, a progress bar while it runs, then words and a table, or JSON."""

# ruff: noqa: PLC0415, PLR0917 (imports inside the command; a command has as many arguments as options)

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer
from msgspec import structs

from deniable.campaigns.progress import bar
from deniable.cli import options
from deniable.cli.common import kept_told, patience, refusals, refuse_late, write_report
from deniable.cli.engine_options import engine_options, plan_flag, read_engine
from deniable.cli.options import RenamedCommand, Text, flag, option
from deniable.promises import AUDITED, audited_promise

if TYPE_CHECKING:
    from deniable.campaigns.campaign import Ground, Plan
    from deniable.engines import Engine
    from deniable.results.audit_result import AuditResult, ExposureResult
    from deniable.results.shared import Provenance
    from deniable.store import CampaignStore

EXAMPLES = (
    "Examples:\n\ndeniable audit digits --belief .9 --delta .01 --out audit-out\n\n"
    "deniable audit --data mine.csv --label y --belief .9\n\n"
    "deniable audit mnist --epsilon 2 --records 60000 --trials 0 --exposure"
)
DATA, PROMISE, TRAINING, CAMPAIGN = "The data", options.PROMISE, "The training", "The campaign"
USUAL_TRIALS = 1000
_OF_THE_VERDICT = ("confidence", "stop", "processes")
"""Options that say how trials are judged and played: the trials do not depend on them."""
EVERY_RECORD = "every"
"""What --records means without a number: every record's exposure."""


class AuditCommand(RenamedCommand):
    """Lets --records stand without a number, which an option of one value cannot."""

    other_names: ClassVar[Mapping[str, str]] = {"--lr": "--learning-rate"}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the missing word behind a bare --records."""
        return super().parse_args(ctx, list(_complete_arguments(args)))


def _complete_arguments(args: list[str]) -> Iterator[str]:
    for place, word in enumerate(args):
        yield word
        following = args[place + 1] if place + 1 < len(args) else "--"
        if word == "--records" and following.startswith("--"):
            yield EVERY_RECORD


@options.taking(engine_options(CAMPAIGN), before="out")
@options.taking(options.promise_options(AUDITED), before="delta")
def audit(
    context: typer.Context,
    data: Annotated[
        Text,
        typer.Argument(
            metavar="DATA",
            help="digits, purchases, mnist, adult, location30, purchase100, ... or module:function.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[Text, option("data", "FILE", "Your own .npz or .csv, in place of DATA.", DATA)] = None,
    label: Annotated[Text, option("label", "NAME", "Label column of the .csv.", DATA)] = None,
    records: Annotated[
        Text,
        typer.Option(
            "--records",
            metavar="[N]",
            help="Records of D, drawn at random. Default 100, at most half. Without a number: as --exposure.",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ] = None,
    measure: Annotated[
        Text, option("measure", "M", "How unlike neighbours are: ssim, euclidean, hamming, manhattan, cosine.", DATA)
    ] = None,
    delta: Annotated[
        Text, option("delta", "D", "Delta, and how often the belief may be exceeded. Default 1/N.", PROMISE)
    ] = None,
    calibration: Annotated[
        Text, option("calibration", "HOW", "exact (default), or rdp as in the papers: more noise.", PROMISE)
    ] = None,
    model: Annotated[
        Text,
        option(
            "model",
            "M",
            "logistic, mlp:64,32, cnn, or module:function that returns an nn.Module. Default: by the data.",
            TRAINING,
        ),
    ] = None,
    steps: Annotated[Text, option("steps", "T", "Steps. Default 30.", TRAINING)] = None,
    clip: Annotated[Text, option("clip", "C", "Norm that gradients are clipped to. Default 3.", TRAINING)] = None,
    learning_rate: Annotated[Text, option("learning-rate", "L", "Learning rate. Default 0.005.", TRAINING)] = None,
    optimizer: Annotated[Text, option("optimizer", "O", "sgd (default) or adam.", TRAINING)] = None,
    rate: Annotated[
        Text, option("rate", "Q", "Each record joins a step with probability Q. Default 1.", TRAINING)
    ] = None,
    sensitivity: Annotated[
        Text,
        option(
            "sensitivity",
            "S",
            "Noise relative to the global sensitivity (default), or to the local one, that of this data set: a test "
            "mode to check the theory, without any privacy.",
            TRAINING,
        ),
    ] = None,
    adjacency: Annotated[Text, option("adjacency", "A", "replace (default; 2C) or add-remove (C).", TRAINING)] = None,
    trials: Annotated[
        Text, option("trials", "N", "Trainings to play. Default 1000. 0: none, with --exposure.", CAMPAIGN)
    ] = None,
    seed: Annotated[Text, option("seed", "S", "Seed of everything random. Default 0.", CAMPAIGN)] = None,
    confidence: Annotated[Text, option("confidence", "P", "Of all limits. Default 0.95.", CAMPAIGN)] = None,
    stop: Annotated[
        Text,
        option(
            "stop",
            "W",
            "never (default): play all trials. certain: watch every block, and end once a violation is certain.",
            CAMPAIGN,
        ),
    ] = None,
    out: Annotated[
        Text, option("out", "DIR", "Keep every finished block here; then audit.json, figures, report.html.", CAMPAIGN)
    ] = None,
    resume: Annotated[bool, flag("resume", "Go on with the campaign in --out.", CAMPAIGN)] = False,
    plan: Annotated[bool, plan_flag(CAMPAIGN)] = False,
    exposure: Annotated[
        bool,
        flag("exposure", "Who is exposed: records.csv and a picture, in --out or here, before the trials.", CAMPAIGN),
    ] = False,
    final_model: Annotated[
        bool, flag("final-model", "What hiding the steps buys: observers of the final model alone, too.", CAMPAIGN)
    ] = False,
    estimators: Annotated[bool, flag("estimators", "Show every estimator of epsilon, too.", CAMPAIGN)] = False,
    show_records: Annotated[
        bool, flag("show-records", "Labels and images of records in those files, too: personal data.", CAMPAIGN)
    ] = False,
    json: Annotated[bool, flag("json", "Print one JSON document, in full precision.", CAMPAIGN)] = False,
    **others: Text,
) -> None:
    """Play the strongest observer against a training, many times, and say how close it comes."""
    from deniable.results.audit_result import ExposureResult

    with refusals("audit"):
        texts = dict(context.params)
        if records == EVERY_RECORD:
            texts["records"], exposure = None, True
        only = exposure and texts["trials"] == "0"
        if only:
            texts["trials"] = None
        for name, asked in (("final-model", final_model), ("plan", plan)):
            if only and asked:
                raise ValueError(f"--{name} is about trials, and --trials 0 has none: leave one of them out")
        if show_records and not exposure:
            raise ValueError("--show-records is about the files of --exposure, which is missing")
        if plan:
            _plan_only({**texts, "exposure": exposure}, out)
            return
        arguments = _arguments(texts)
        shown = ExposureFiles(Path(out or "."), show_records) if exposure else None
        engine = read_engine(texts)
        result = (
            _exposure_alone(arguments, out, resume, show_records)
            if only
            else _campaign(arguments, engine, out, resume, _Beside(shown, final_model))
        )
        unwritten = None if isinstance(result, ExposureResult) else write_report(result, out)
    if json:
        typer.echo(result.to_json())
    else:
        _show(result, estimators)
    refuse_late(unwritten)


def _show(result: AuditResult | ExposureResult, every_estimator: bool) -> None:
    from deniable.cli.show.show_audit import show, show_alone
    from deniable.results.audit_result import AuditResult

    if isinstance(result, AuditResult):
        show(result, every_estimator)
    else:
        show_alone(result)


def _arguments(texts: Mapping[str, Any]) -> dict[str, Any]:
    """What `Plan.of` and `run` take, from the options that were given."""
    values = options.read({name: text for name, text in texts.items() if name not in ("task_memory", "task_gpus")})
    sources = [texts[name] for name in ("data", "file") if texts[name] is not None]
    if len(sources) != 1:
        raise ValueError("name the data: either DATA, as in `deniable audit digits`, or --data FILE")
    audited_promise({name: values[name] for name in AUDITED if name in values}, values.get("delta", 0.5))
    words = ("label", "measure", "calibration", "model", "optimizer", "sensitivity", "adjacency", "stop")
    named = {name: texts[name] for name in words if texts[name] is not None}
    return {"data": sources[0], **values, **named}


def _plan_only(texts: Mapping[str, Any], out: str | None) -> None:
    from deniable.cli.planning import keep_plan, place_of_plan
    from deniable.store import Store

    with Store(place_of_plan(out)) as store:
        from deniable.campaigns.final_model import count_all_blocks, refuse_fitted_noise

        plan = plan_audit(texts)[1]
        if texts["final_model"]:
            refuse_fitted_noise(plan)
        store.begin(plan.settings)
        blocks = count_all_blocks(plan) if texts["final_model"] else plan.blocks
        keep_plan("audit", texts, store.directory, blocks, plan.settings)


def plan_audit(texts: Mapping[str, Any]) -> tuple[Ground, Plan]:
    """What the options ask for: the data and the training, and the campaign."""
    return _plan_campaign(_arguments(texts))


def _plan_campaign(arguments: dict[str, Any]) -> tuple[Ground, Plan]:
    with bar("Choosing neighbours and noise", "Comparing records") as progress:
        from deniable.campaigns.campaign import Plan

        asked = {name: value for name, value in arguments.items() if name not in _OF_THE_VERDICT}
        trials, measure = asked.pop("trials", USUAL_TRIALS), asked.pop("measure", None)
        ground = _ground(asked)
        return ground, Plan.on(ground, trials, measure, progress)


class ExposureFiles(NamedTuple):
    """Where the exposure's files go, and whether they show records and labels."""

    place: Path
    show_records: bool


class _Beside(NamedTuple):
    """What is asked for beside the trials."""

    exposed: ExposureFiles | None
    final_model: bool


def _campaign(arguments: dict[str, Any], engine: Engine, out: str | None, resume: bool, beside: _Beside) -> AuditResult:
    if resume and out is None:
        raise ValueError("--resume needs --out, the directory of the campaign to go on with")
    from deniable.engines import open_store

    with open_store(engine, out, resume) as store, kept_told(out, partial(_trials_in, store), "trials"):
        return _play_campaign(arguments, engine, store, beside)


def _play_campaign(
    arguments: dict[str, Any], engine: Engine, store: CampaignStore | None, beside: _Beside
) -> AuditResult:
    """The campaign's document; where a place is named for it, the records' exposure goes there first: it is quick."""
    from deniable.training.kernels import tell_if_slow

    tell_if_slow()
    ground, plan = _plan_campaign(arguments)
    if beside.final_model:
        from deniable.campaigns.final_model import refuse_fitted_noise

        refuse_fitted_noise(plan)
    if store is not None:
        store.begin(plan.settings)  # refuses other settings before the work begins
    from deniable.campaigns.audit import add_final_model, run
    from deniable.cli.show.show_audit import write_exposure

    exposed = beside.exposed
    found = None if exposed is None else write_exposure(ground, *exposed)
    running = {name: arguments[name] for name in ("confidence", "stop") if name in arguments}
    if running.get("stop") == "certain":
        _tell_forecast(plan, running.get("confidence", 0.95))
    with bar("Playing the first block", "Trials", "trials/s") as progress:
        result = run(plan, store, engine=engine, progress=progress, **running)[0]
    if beside.final_model:
        with bar("Crafting gradients", "Final models: blocks") as progress:
            sure = running.get("confidence", 0.95)
            result = add_final_model(result, plan, engine, sure, progress=progress, store=store)
    return result if exposed is None else result.replace(exposure=found, provenance=_with_exposure(result, exposed))


def _tell_forecast(plan: Plan, confidence: float) -> None:
    """How many trials a violation would take, before the first is played."""
    from deniable.campaigns.audit import watch_over
    from deniable.evidence.anytime.watch import half_noise_text
    from deniable.mechanisms import Training

    trials = watch_over(plan, confidence).evidence().trials_at_half_noise(Training.of(plan.training))
    if trials is not None:
        typer.echo(f"{half_noise_text(trials)} {plan.trials:,} are planned.", err=True)


def _with_exposure(result: AuditResult, exposed: ExposureFiles) -> Provenance | None:
    """The command that plays the same again, with the exposure's options."""
    source = result.provenance
    if source is None or source.command is None:
        return source
    more = " --exposure" + (" --show-records" if exposed.show_records else "")
    return structs.replace(source, command=source.command + more)


def _ground(arguments: dict[str, Any]) -> Ground:
    from deniable.campaigns.campaign import Ground

    claim = {name: value for name, value in arguments.items() if name in AUDITED}
    others = {name: value for name, value in arguments.items() if name not in AUDITED}
    return Ground.of(others.pop("data"), claim, **{"adjacency": "replace", **others})


def _exposure_alone(arguments: dict[str, Any], out: str | None, resume: bool, show_records: bool) -> ExposureResult:
    if resume:
        raise ValueError("--resume goes on with trials, and --trials 0 has none: leave one of them out")
    unused = [name for name in ("trials", "measure", "confidence", "processes", "stop") if arguments.pop(name, None)]
    if unused:
        raise ValueError(f"--{unused[0]} is about trials, and --trials 0 has none: leave one of them out")
    from deniable.cli.show.show_audit import alone

    with patience("Loading the data ..."):
        ground = _ground(arguments)
    return alone(ground, out, show_records)


def _trials_in(store: CampaignStore | None) -> int:
    """Without those of observers of the final model."""
    blocks = [] if store is None else [store.load(number) for number in store.finished_blocks()]
    return sum(len(block["trained_on_d"]) for block in blocks if "log_likelihood_ratio" in block)
