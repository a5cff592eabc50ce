"""`frontier`: how good a model is at every promise, from settings to a typed result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

from deniable.campaigns.provenance import name_data, now
from deniable.checks import one_of, positive, probability, whole
from deniable.engines import Engine, Local, choose_engine, open_store
from deniable.results.frontier_result import (
    FrontierResult,
)
from deniable.store import CampaignStore
from deniable.training.settings import ModelFactory, Optimizer
from deniable.utility.frontier_plan import FrontierPlan, TuningWay, choose_model, find_noise
from deniable.utility.frontier_rows import tell_frontier
from deniable.utility.local_records import find_local_epsilons
from deniable.utility.measures import METRICS
from deniable.utility.parts import Parts, Task, generated_parts, prepare_parts
from deniable.utility.tried_settings import Setting, choose_settings, list_promises
from deniable.utility.units import play

GENERATED = "generated"


def frontier(
    data: str | Path | Callable[[], Any],
    *,
    label: str | None = None,
    group: str | None = None,
    test: str | Path | None = None,
    task: Task | None = None,
    promise: str = "belief",
    bounds: Iterable[float] | None = None,
    delta: float | None = None,
    prior: float | None = None,
    fpr: float | None = None,
    baseline: float | None = None,
    local: bool = False,
    model: str | ModelFactory | None = None,
    optimizer: Optimizer = "adam",
    clip: Iterable[float] | None = None,
    learning_rate: Iterable[float] | None = None,
    batch: Iterable[int] | None = None,
    epochs: Iterable[int] | None = None,
    metric: str | None = None,
    tuning: TuningWay = "uncovered",
    public_data: str | Path = GENERATED,
    mean_runs: float = 10.0,
    repeats: int = 5,
    seed: int = 0,
    confidence: float = 0.95,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    engine: Engine | str = "local",
    progress: Callable[[int, int], None] | None = None,
) -> FrontierResult:
    """How good a model is at every promise from very strict to none, on one's own data.

    ``frontier("people.csv", label="income", promise="belief")``. Noise is exactly that of `choose`. Workers are
    spawned: a script needs ``if __name__ == "__main__":``, or ``processes=1``. The figures are measured on the data
    without protection: they are for those who may see the data.

    Args:
        data: A table (.csv, .csv.gz, .parquet) with numbers, words, dates, yes and no, and blanks; or what
            `deniable.data.load` takes.
        label: The label's column. Default: the one named label, else the last.
        group: A column whose groups are told one by one.
        test: A table with the test records. Default: the published test part, else a quarter of the records.
        task: classification or regression. Default: by the label.
        promise: belief, advantage, accuracy, tpr, ppv, success or epsilon.
        bounds: What is promised, a level each. Default: eight from very strict to weak.
        delta: Of epsilon, and how often a belief may be exceeded. Default: one over the training records.
        prior: The belief before the release. Default 0.5.
        fpr: The false positive rate of a promise about attacks. Default 0.01.
        baseline: The success without the release. Default 0.01.
        local: Whether noise on the records themselves is told beside.
        model: logistic, mlp:64,32, cnn, module:function or a function. Default: one hidden layer of 64.
        optimizer: adam or sgd.
        clip: Clipping norms to be tried.
        learning_rate: Learning rates to be tried.
        batch: Expected batches to be tried.
        epochs: Epochs to be tried.
        metric: What settings are chosen by: accuracy, balanced_accuracy or auc; error, absolute_error or explained.
        tuning: uncovered (the default: the promise does not cover the choice of settings), public (chosen on
            `public_data`) or accounted (the best of a random number of runs, paid for with more noise).
        public_data: A table for the search, or "generated".
        mean_runs: Of accounted tuning, runs on average.
        repeats: Trainings of every setting in the search, and again of every chosen one.
        seed: Of everything random.
        confidence: Of all limits.
        out: A directory in which every finished unit is kept.
        resume: Whether to go on there.
        processes: Workers. Default: one a core.
        engine: Where units are played (`deniable.engines`).
        progress: Hears (units done, units in all).

    Returns:
        The quality at every promise with its limits; `report(path)` writes the page.

    Examples:
        >>> import deniable as dn
        >>> one = {"clip": [1.0], "learning_rate": [0.01], "batch": [64], "epochs": [1]}
        >>> found = dn.frontier("digits", bounds=[0.9], repeats=2, processes=1, **one)
        >>> [level.bound for level in found.levels]
        [0.9]
    """
    probability("confidence", confidence, open_ends=True)
    chosen_engine = choose_engine(engine, processes)
    with open_store(chosen_engine, out, resume) as store:
        plan = make_plan(
            data,
            label=label,
            group=group,
            test=test,
            task=task,
            promise=promise,
            bounds=bounds,
            delta=delta,
            prior=prior,
            fpr=fpr,
            baseline=baseline,
            local=local,
            model=model,
            optimizer=optimizer,
            clip=clip,
            learning_rate=learning_rate,
            batch=batch,
            epochs=epochs,
            metric=metric,
            tuning=tuning,
            public_data=public_data,
            mean_runs=mean_runs,
            repeats=repeats,
            seed=seed,
        )
        return run(plan, store, engine=chosen_engine, progress=progress, confidence=confidence)


def _tuple(values: Iterable[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)


def make_plan(
    data: str | Path | Callable[[], Any],
    *,
    label: str | None = None,
    group: str | None = None,
    test: str | Path | None = None,
    task: Task | None = None,
    promise: str = "belief",
    bounds: Iterable[float] | None = None,
    delta: float | None = None,
    prior: float | None = None,
    fpr: float | None = None,
    baseline: float | None = None,
    local: bool = False,
    model: str | ModelFactory | None = None,
    optimizer: Optimizer = "adam",
    clip: Iterable[float] | None = None,
    learning_rate: Iterable[float] | None = None,
    batch: Iterable[int] | None = None,
    epochs: Iterable[int] | None = None,
    metric: str | None = None,
    tuning: TuningWay = "uncovered",
    public_data: str | Path = GENERATED,
    mean_runs: float = 10.0,
    repeats: int = 5,
    seed: int = 0,
) -> FrontierPlan:
    """Check everything, read the data and find the noise of every promise and setting; arguments as of `frontier`."""
    whole("repeats", repeats, low=2)
    whole("seed", seed, low=0)
    one_of("tuning", tuning, get_args(TuningWay))
    positive("mean_runs", mean_runs)
    parameters = {"delta": delta, "prior": prior, "fpr": fpr, "baseline": baseline}
    given = {name: value for name, value in parameters.items() if value is not None}
    tried = {"clip": clip, "learning_rate": learning_rate, "batch": batch, "epochs": epochs}
    grid: dict[str, Any] = {name: _tuple(values) for name, values in tried.items()}
    bounds = _tuple(bounds)
    list_promises(promise, bounds, {"delta": 1e-5, **given})  # refused before the data is read
    public = _read_public(tuning, public_data, label, task, seed)
    parts = prepare_parts(data, label=label, group=group, task=task, test=test, seed=seed, public=public)
    chosen_metric = one_of("metric", metric or METRICS[parts.task][0], METRICS[parts.task])
    promises = list_promises(promise, bounds, {"delta": 1 / len(parts.train), **given})
    settings = choose_settings(len(parts.train), optimizer, **grid)
    if tuning == "accounted":
        settings = _of_one_length(settings, given=grid)
    runs = mean_runs if tuning == "accounted" else None
    records = len(parts.train)
    noises = tuple(
        tuple(find_noise(one, setting.rate(records), setting.steps(records), runs) for setting in settings)
        for one in promises
    )
    source = {"data": name_data(data), "label": label, "group": group, "test": test, "task": task, "local": local}
    return FrontierPlan(
        parts,
        _search(parts, public, tuning, seed),
        promises,
        settings,
        noises,
        choose_model(model, parts),
        optimizer,
        chosen_metric,
        tuning,
        mean_runs,
        repeats,
        seed,
        find_local_epsilons(parts, promises) if local else (),
        {**source, "public_data": str(public_data) if tuning == "public" else None, "model": model, **grid},
    )


def _of_one_length(settings: Sequence[Setting], given: Mapping[str, Sequence[float] | None]) -> tuple[Setting, ...]:
    """Accounted runs must all have the same privacy loss: one batch and one number of epochs."""
    for name in ("batch", "epochs"):
        if len(set(given[name] or ())) > 1:
            raise ValueError(f"{name} must be one value where tuning is accounted: every run has the same privacy loss")
    batch, epochs = min(one.batch for one in settings), max(one.epochs for one in settings)
    return tuple(one for one in settings if (one.batch, one.epochs) == (batch, epochs))


def _read_public(
    tuning: TuningWay, public_data: str | Path, label: str | None, task: Task | None, seed: int
) -> Parts | None:
    """The public table that settings are chosen on, where one is named."""
    if tuning != "public" or str(public_data) == GENERATED:
        return None
    return prepare_parts(public_data, label=label, task=task, seed=seed)


def _search(parts: Parts, public: Parts | None, tuning: TuningWay, seed: int) -> Parts:
    """The parts that settings are chosen on."""
    if tuning != "public":
        return parts
    return generated_parts(parts, seed) if public is None else public


def run(
    plan: FrontierPlan,
    store: CampaignStore | None = None,
    *,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
    confidence: float = 0.95,
) -> FrontierResult:
    """Play what of the plan `store` lacks, keep it there, and tell what was measured."""
    started = perf_counter()
    if store is not None:
        store.begin(plan.description)
    choice, repeats = play(plan, store, engine or Local(), progress)
    found = tell_frontier(plan, choice, repeats, confidence)
    return found.replace(seconds=perf_counter() - started, finished=now())
