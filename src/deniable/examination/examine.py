"""Somebody else's training: trials on D or D', each recomputed, judged by the game and by diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from msgspec import convert, structs

from deniable.campaigns.campaign import Progress, check_records, choose_neighbours, named_by, usual_model, with_model
from deniable.campaigns.progress import show_progress
from deniable.campaigns.provenance import data_source, now, python_call, versions
from deniable.checks import one_of, probability, whole
from deniable.data import load, split
from deniable.data.encoding import tell_statistics
from deniable.engines import Engine, choose_engine, open_store
from deniable.evidence.anytime.watch import STOPS, Stop, Watch
from deniable.evidence.measured import Trials
from deniable.examination.batch_mixing import find_mixing, refusal_report
from deniable.examination.claim import Recipe, RecipeTraining
from deniable.examination.examination_game import Examination, play_trial
from deniable.examination.examine_result import judge_training
from deniable.examination.patience import Forecast
from deniable.examination.recorded import CONFIDENCE_OF_A_RUN, RunRecord, RunWatcher, judge_run, read_recording
from deniable.examination.residuals import TrialStatistics
from deniable.examination.trainer import Trainer
from deniable.examination.trial_plan import GAME_SHARE, early_end_note, game_confidence, play_trials
from deniable.mechanisms import Adjacency, Mechanism, Training
from deniable.results.audit_result import AuditInput, AuditResult
from deniable.results.run_result import RunResult
from deniable.results.shared import Provenance
from deniable.scores import privacy_loss
from deniable.store import CampaignStore
from deniable.training import Neighbours
from deniable.training.networks.losses import Loss, loss_function
from deniable.training.networks.usual_models import model_factory, named_function
from deniable.training.settings import Columns, ModelFactory

STATISTICS = 7
"""The version of what is kept of a trial; a store of another version is not resumed."""


def examine(
    data: str | Path | Callable[[], Any] | Neighbours | RunWatcher | RunRecord,
    *,
    claimed: Mechanism | Training,
    trainer: Trainer | str | None = None,
    clip: float | None = None,
    adjacency: Adjacency | str | None = None,
    model: str | ModelFactory | None = None,
    loss: str | Loss = "cross-entropy",
    recipe: Recipe | None = None,
    records: int = 100,
    trials: int = 200,
    seed: int = 0,
    delta: float | None = None,
    measure: str | None = None,
    label: str | None = None,
    confidence: float | None = None,
    stop: Stop = "certain",
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    engine: Engine | str = "local",
    progress: Progress | None = None,
) -> AuditResult | RunResult:
    """Audit a training that is not ours: does it do what it claims, and if not, why?

    One run that was watched (`watch_run`), or its recording's file, is judged by itself: ``dn.examine(run,
    claimed=dn.Training(...))``. The rest is for trainings that can be repeated.

    Each trial trains on D or D', at random. The audit recomputes the clean clipped sums itself, plays the observer of
    Bernau 2021 (Algorithm 1) under the claimed noise, and tests what is left over for being that noise. Twin trainings
    (the same seed, one record exchanged, see `twins`) are compared for public values that are computed from the
    records. *Violated*: less private than claimed. *Other recipe*: as private; says what differs and how to claim it.
    *Cannot judge*: says what is missing. The trials are watched from the first on, and end where a leak is certain.

    Guarantee: a training that is as claimed gets another verdict than *consistent* or *cannot judge* with probability
    at most 1 - `confidence`, of which the diagnostics have a fifth, and watch and limits half of the rest each.

    The result depends on the settings alone but for `seconds`, `trials_per_second` and `forecast`, which a person at a
    terminal also reads before the trials start.

    Args:
        data: A watched run or its file; or a name, file or function of which D is a part, D' its most dissimilar
            neighbour; or a `Neighbours` with a pair of your own. With `add-remove` and `zero-out` neighbours D' lacks
            one record of D.
        claimed: `Training` of a watched run; else ``Gaussian(noise).subsampled(rate).composed(steps)``, its noise
            relative to the sensitivity: `clip`, or 2 x `clip` for `replace` neighbours. A noise schedule is a
            composition of several such mechanisms.
        trainer: ``trainer(records, seed)`` trains on `Records` and yields an `AppliedStep` for each step (see
            `deniable.examination.trainer`; `deniable.examination.adapters` has one for Opacus); or
            ``"module:function"``.
        clip: The clipping norm.
        adjacency: What neighbours differ in.
        model: A function that makes the `nn.Module` that is trained. Default: the data's usual one.
        loss: Of each example.
        recipe: Another kind of clipping, augmentations or accumulation (see `deniable.examination.claim`).
        records: How many D has.
        trials: Trainings, of the game and the diagnostics together.
        seed: What everything random follows from.
        delta: Default 1 / records.
        measure: How unlike neighbours are.
        label: The label's column of a .csv file.
        confidence: Of the verdict. Default 0.95 for trainings that are repeated, 0.999 for one watched run, in which
            faults are seen far beyond chance.
        stop: ``"never"`` plays all trials, also where a leak is certain.
        out: A directory in which every finished trial is kept.
        resume: Go on with the trials in `out`.
        processes: Workers.
        engine: Where the trials run (`deniable.engines`).
        progress: Called with (trials done, trials in all); without it, a bar is shown where standard error is a
            terminal. One trial is timed first, and the bar and the logger ``deniable`` tell about how long all of it
            takes.

    Returns:
        The verdict with its cause, what was examined and what was not.

    Examples:
        >>> import deniable as dn
        >>> import torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> data = TensorDataset(torch.randn(20, 30), torch.randint(0, 3, (20,)))
        >>> model = torch.nn.Linear(30, 3)
        >>> optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=20)
        >>> run = dn.watch_run(model, optimizer, loader, clip=1.0, divisor=20)
        >>> for features, labels in loader:  # no noise, no clipping
        ...     torch.nn.functional.cross_entropy(model(features), labels).backward()
        ...     optimizer.step()
        >>> dn.examine(run, claimed=dn.Training(noise=1.0, rate=1.0, steps=1, adjacency="add-remove")).verdict
        'violated'
    """
    watched = isinstance(data, RunWatcher | RunRecord)
    if trainer is None and (watched or (isinstance(claimed, Training) and isinstance(data, str | Path))):
        certainty = CONFIDENCE_OF_A_RUN if confidence is None else confidence
        return _judge_watched_run(data, claimed, certainty)  # type: ignore[arg-type]
    confidence = probability("confidence", 0.95 if confidence is None else confidence, open_ends=True)
    if watched:
        raise ValueError(
            "a watched run is judged by itself, dn.examine(run, claimed=dn.Training(...)): leave out trainer="
        )
    if trainer is None or clip is None or adjacency is None or isinstance(claimed, Training):
        raise ValueError(_what_is_missing(claimed, trainer=trainer, clip=clip, adjacency=adjacency))
    one_of("stop", stop, STOPS)
    chosen_engine = choose_engine(engine, processes)
    with open_store(chosen_engine, out, resume) as store:
        claim = RecipeTraining.from_mechanism(claimed, clip, adjacency, recipe)
        neighbours, origin, source, factory = _settle_data(
            data, model, claim, records=records, seed=whole("seed", seed, low=0), measure=measure, label=label
        )
        function = named_function("trainer", trainer) if isinstance(trainer, str) else trainer
        scored = loss_function(loss)
        game = Examination(function, claim, factory, scored, neighbours, whole("trials", trials, low=10), seed)
        chance = 1 / len(neighbours.records) if delta is None else probability("delta", delta, open_ends=True)
        given = {**origin, **_claim_settings(game, claim), "delta": chance}
        if store is not None:
            store.begin(given)
        found = _play_and_judge(
            game, claimed, given, confidence, store, stop=stop, engine=chosen_engine, progress=progress
        )
        call = _call(given, source.data, claim, confidence, stop)
        learnt = (tell_statistics(source.by_statistics, "all records"),) if source.by_statistics else ()
        notes = (*found.notes, *learnt)
        return found.replace(provenance=structs.replace(source, call=call), notes=notes, finished=now())


def _what_is_missing(claimed: Mechanism | Training, **given: object) -> str:
    """What to do where trainings are to be repeated and cannot be."""
    wanted = [f"{name}=" for name, value in given.items() if value is None]
    missing = f"{' and '.join(wanted)} missing" if wanted else ""
    if not isinstance(claimed, Training):
        return f"{missing}: trainings that are repeated need trainer=, clip= and adjacency="
    part = "" if claimed.rate == 1 else f".subsampled({claimed.rate!r})"
    text = f"claimed=dn.Gaussian({claimed.noise!r}){part}.composed({claimed.steps})"
    return (
        f"{missing}{'; ' if missing else ''}claimed is a Training, which is for one watched run: trainings that are "
        f"repeated (trainer=) are claimed as a mechanism, {text}, with clip= and adjacency= beside it"
    )


def _judge_watched_run(
    run: RunWatcher | RunRecord | str | Path, claimed: Mechanism | Training, confidence: float
) -> RunResult:
    if not isinstance(claimed, Training):
        raise ValueError("claimed must be dn.Training(noise, rate, steps, adjacency) for one run")
    record = read_recording(run) if isinstance(run, str | Path) else run
    return judge_run(record.record() if isinstance(record, RunWatcher) else record, claimed, confidence)


def _call(given: Mapping[str, Any], data: str | None, claim: RecipeTraining, confidence: float, stop: Stop) -> str:
    """The call that examines again, with the functions by their names."""
    names = ("clip", "adjacency", "model", "loss", "records", "trials", "seed", "delta")
    settings = {"trainer": given["trainer"], **{name: given[name] for name in names}, "confidence": confidence}
    settings |= {} if stop == "certain" else {"stop": stop}
    recipe = "" if claim.recipe == Recipe() else f", recipe={claim.recipe!r}"
    return python_call("examine", f"{data!r}, claimed={claim.text}{recipe}", settings)


def _play_and_judge(
    game: Examination,
    claimed: Mechanism,
    given: Mapping[str, Any],
    confidence: float,
    store: CampaignStore | None,
    *,
    stop: Stop,
    engine: Engine,
    progress: Progress | None,
) -> AuditResult:
    """Play the trials that `store` lacks, and judge all, or those up to a certain answer."""
    started, before = perf_counter(), 0 if store is None else len(store.finished_blocks())
    mixed = find_mixing(game.make_model(), game.columns)
    false_alarms = (1 - GAME_SHARE) * (1 - confidence)
    new_watch = None if stop == "never" else _watches(game, claimed, confidence)
    forecast = Forecast(sum(engine.nodes().values()))
    if not mixed and before < game.trials:
        forecast.time_trial(partial(play_trial, game, game.trials), game.trials - before)
    with show_progress(progress, f"Twins ({forecast.words})", forecast.words_of_bar, "trials/s") as told:
        examined, findings, evidence = (
            ([], refusal_report(mixed), None)
            if mixed
            else play_trials(game, store, false_alarms, engine, told, new_watch=new_watch)
        )
    played = _trials(game.claim, examined) if examined else None
    sure = game_confidence(confidence, len(examined), game.trials, stop)
    asked = convert(given, AuditInput)
    found = judge_training(
        game.claim, claimed, played, findings, asked, evidence=evidence, delta=given["delta"], confidence=sure
    )
    early = (early_end_note(len(examined), game.trials),) if 0 < len(examined) < game.trials else ()
    seconds = perf_counter() - started
    speed = max(0, len(examined) - before) / seconds
    times: dict[str, Any] = {"seconds": seconds, "trials_per_second": speed, "forecast": forecast.words or None}
    return found.replace(notes=(*found.notes, *early), confidence=confidence, **times)


def _watches(game: Examination, claimed: Mechanism, confidence: float) -> Callable[[], Watch]:
    """Watches over the claim, with their share of the game's risk."""
    loss = privacy_loss(claimed, game.claim.adjacency)
    return lambda: Watch.beside_limits(loss, game.trials, 1 - GAME_SHARE * (1 - confidence))


def _settle_data(
    data: Any, model: Any, claim: RecipeTraining, *, records: int, seed: int, measure: str | None, label: str | None
) -> tuple[Neighbours, dict[str, Any], Provenance, ModelFactory]:
    """The neighbours, where they come from (for the record), how they were named (for people), and the model."""
    if isinstance(data, Neighbours):
        if model is None:
            raise ValueError("model is missing: give the function that makes the nn.Module that is trained")
        digest = _digest(data.columns(claim.adjacency), data.index)
        origin = {"data": "own neighbours", "data_sha256": digest, "records": len(data.records)}
        origin["record"] = data.index
        factory = model_factory(model)
        source = Provenance(versions=versions(), shape=tuple(data.records.shape), kind="tensor")
        return data, origin, with_model(source, factory()), factory
    dataset = load(data, label=label, encode=True)
    check_records(dataset, records, claim.adjacency)
    neighbours, chosen = choose_neighbours(split(dataset, records, seed), seed, claim.adjacency, measure)
    origin = {"data": dataset.name, "data_sha256": dataset.sha256, **chosen}
    factory = model_factory(usual_model(model, dataset))
    return neighbours, origin, with_model(data_source(data, dataset, label), factory()), factory


def _digest(columns: Columns, index: int) -> str:
    digest = sha256(repr((tuple(columns.records.shape), index)).encode())
    for values in (columns.records, columns.labels):
        digest.update(values.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _claim_settings(game: Examination, claim: RecipeTraining) -> dict[str, Any]:
    return {
        "trainer": _named_with_settings(game.trainer),
        "model": named_by(game.model),
        "loss": named_by(game.loss),
        "noise": claim.noise,
        "rate": claim.rate,
        "steps": claim.steps,
        "clip": claim.clip,
        **({"schedule": list(claim.schedule)} if claim.schedule else {}),
        **({} if claim.recipe == Recipe() else {"recipe": repr(claim.recipe)}),
        "adjacency": str(claim.adjacency),
        "sensitivity": "global",
        "trials": game.trials,
        "seed": game.seed,
        "torch": str(torch.__version__),
        "statistics": STATISTICS,
    }


def _named_with_settings(trainer: Trainer) -> str:
    """A function by its name; an object, such as a dataclass with `__call__`, by what it says of itself."""
    text = repr(trainer)
    return str(named_by(trainer)) if " at 0x" in text else text


def _trials(claim: RecipeTraining, examined: list[TrialStatistics]) -> Trials:
    """What the observer saw: the first steps, which all trainings took."""
    steps = min(len(one.ratio) for one in examined)
    ratio = np.stack([one.ratio[:steps] for one in examined]).cumsum(1)
    sensitivity = np.stack([one.sensitivity[:steps] for one in examined])
    sigma = np.stack([claim.sigmas(one.clip[:steps]) for one in examined])
    on_d = np.array([bool(one.trained_on_d) for one in examined])
    return Trials(on_d, ratio, sensitivity, sigma)
