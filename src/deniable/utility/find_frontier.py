"""`frontier`: how good a model is at every promise, from settings to a typed result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

import numpy as np
import torch

from deniable.campaigns.provenance import frontier_command, name_data, now, versions
from deniable.checks import one_of, positive, probability, whole
from deniable.engines import Engine, Local, choose_engine, open_store
from deniable.formatting import count_of
from deniable.mechanisms import Adjacency
from deniable.results.frontier_result import (
    LOWER_IS_BETTER,
    EncodedTold,
    FrontierInput,
    FrontierLevel,
    FrontierResult,
    PartQuality,
    Quality,
    Repeated,
    TunedSetting,
)
from deniable.results.shared import Provenance
from deniable.scores import privacy_loss
from deniable.store import CampaignStore
from deniable.training.settings import ModelFactory, Optimizer
from deniable.utility.frontier_plan import FrontierPlan, TuningWay, choose_model, find_noise, release
from deniable.utility.knee import find_knee
from deniable.utility.local_records import find_local_epsilons
from deniable.utility.measures import METRICS, Measures, measure_answer
from deniable.utility.parts import Parts, Task, generated_parts, prepare_parts
from deniable.utility.repeat_limits import limits_of_difference, limits_of_repeats
from deniable.utility.tried_settings import Setting, choose_settings, list_promises
from deniable.utility.units import Choice, play

__all__ = ["frontier", "make_plan", "run"]

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
    parts = prepare_parts(data, label=label, group=group, task=task, test=test, seed=seed)
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
        _search(parts, tuning, public_data, seed),
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


def _of_one_length(settings: Sequence[Setting], given: dict[str, Any]) -> tuple[Setting, ...]:
    """Accounted runs must all have the same privacy loss: one batch and one number of epochs."""
    for name in ("batch", "epochs"):
        if given[name] is not None and len(set(given[name])) > 1:
            raise ValueError(f"{name} must be one value where tuning is accounted: every run has the same privacy loss")
    batch, epochs = min(one.batch for one in settings), max(one.epochs for one in settings)
    return tuple(one for one in settings if (one.batch, one.epochs) == (batch, epochs))


def _search(parts: Parts, tuning: TuningWay, public_data: str | Path, seed: int) -> Parts:
    if tuning != "public":
        return parts
    if str(public_data) == GENERATED:
        return generated_parts(parts, seed)
    found = prepare_parts(public_data, seed=seed)
    if found.task != parts.task:
        raise ValueError(f"public_data is for a {found.task}, the data for a {parts.task}: name other public data")
    return found


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
    found = judge(plan, choice, repeats, confidence)
    return found.replace(seconds=perf_counter() - started, finished=now())


def judge(plan: FrontierPlan, choice: Choice, repeats: Sequence[Measures], confidence: float) -> FrontierResult:
    """Every row with its limits, the knee, and what must be said beside them."""
    answer, usual = measure_answer(plan.parts)
    rows = _Rows(plan, choice, repeats, answer, confidence)
    none = rows.none()
    levels = tuple(rows.central(place) for place in range(len(plan.promises)))
    base, name = float(getattr(answer, plan.metric)[0]), plan.promises[0].field.name
    return FrontierResult(
        input=_input(plan),
        confidence=confidence,
        without_model=rows.answer_quality(),
        usual_answer=usual,
        none=none,
        levels=levels,
        local=tuple(rows.local(place) for place in range(len(plan.local_epsilons))),
        knee=find_knee(name, plan.metric, levels, none, without_model=base, answer=usual),
        tuning_text=_tuning_text(plan),
        encoding=tuple(
            EncodedTold(name=one.name, kind=one.kind, by=one.by, features=one.features, looks_at_data=one.looks_at_data)
            for one in plan.parts.encoding
        ),
        cautions=tuple(_cautions(plan)),
        provenance=Provenance(
            versions=versions(),
            command=_command(plan, confidence),
            data=plan.source.get("data"),
            label=plan.source.get("label"),
            shape=tuple(plan.parts.train.shape),
            classes=len(plan.parts.classes) or None,
            kind=plan.parts.kind,
        ),
    )


def _command(plan: FrontierPlan, confidence: float) -> str | None:
    """What was asked, as one command; what follows from the data by itself is left out."""
    asked = {name: value for name, value in plan.source.items() if name != "data"}
    told = plan.description
    asked |= {"promise": told["promise"], "bounds": tuple(told["bounds"]), **plan.promises[0].parameters}
    names = "optimizer", "metric", "tuning", "repeats", "seed"
    asked |= {name: told[name] for name in names} | {"mean_runs": _mean_runs(plan)}
    return frontier_command(plan.source.get("data"), asked, confidence)


def _mean_runs(plan: FrontierPlan) -> float | None:
    return plan.mean_runs if plan.tuning == "accounted" else None


class _Rows:
    """Results from arrays: row by row of the plan's promises, none, local."""

    def __init__(
        self, plan: FrontierPlan, choice: Choice, repeats: Sequence[Measures], answer: Measures, confidence: float
    ) -> None:
        self._plan, self._choice, self._repeats = plan, choice, repeats
        self._answer, self._confidence = answer, confidence

    def _values(self, name: str, row: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A measure in every repeat; a training that diverged counts as the answer without a model."""
        found = np.array([getattr(one, name)[row] for one in self._repeats])
        return np.where(np.isnan(found), getattr(self._answer, name)[0], found)

    def _repeat(self, name: str, values: Any) -> Repeated:
        ends = (0.0, np.inf) if name in LOWER_IS_BETTER else ((-np.inf, 1.0) if name == "explained" else (0.0, 1.0))
        return limits_of_repeats(values, self._confidence, *ends)

    def _quality(self, row: int) -> Quality:
        parts, task = self._plan.parts, self._plan.parts.task
        measured: dict[str, Any] = {name: self._repeat(name, self._values(name, row)) for name in METRICS[task]}
        labels = parts.test_labels.numpy()
        groups = parts.test_groups
        return Quality(
            **measured,
            classes=self._part("classes", row, parts.classes, labels),
            groups=self._part("groups", row, parts.groups, groups),
        )

    def _part(self, field: str, row: int, names: Sequence[str], part: Any) -> tuple[PartQuality, ...]:
        values = self._values(field, row) if names else None
        measured = "accuracy" if self._plan.parts.task == "classification" else "error"
        return tuple(
            PartQuality(name=name, records=count, measure=self._repeat(measured, values[:, place]))
            for place, name in enumerate(names)
            if values is not None and (count := int(np.count_nonzero(part == place)))
        )

    def answer_quality(self) -> Quality:
        """Of the answer without a model: figures without limits."""
        task = self._plan.parts.task
        values = {name: float(getattr(self._answer, name)[0]) for name in METRICS[task]}
        measured: dict[str, Any] = {name: _exactly(value) for name, value in values.items()}
        return Quality(**measured)

    def _has_diverged(self, row: int) -> int:
        return int(sum(np.isnan(getattr(one, self._plan.metric)[row]) for one in self._repeats))

    def none(self) -> FrontierLevel:
        """Without noise and clipping."""
        row = len(self._plan.promises)
        setting = None if not self._choice else self._setting(self._choice[-1], clipped=False)
        return FrontierLevel(
            kind="none", bound=None, setting=setting, quality=self._quality(row), diverged=self._has_diverged(row)
        )

    def _lost(self, row: int) -> Any:
        sign = -1 if self._plan.metric in LOWER_IS_BETTER else 1
        none, own = (self._values(self._plan.metric, one) for one in (len(self._plan.promises), row))
        return limits_of_difference(sign * none, sign * own, self._confidence)

    def _setting(self, number: int, clipped: bool = True) -> TunedSetting:
        chosen, records = self._plan.settings[number], len(self._plan.parts.train)
        return TunedSetting(
            clip=chosen.clip if clipped else None,
            learning_rate=chosen.learning_rate,
            batch=chosen.rate(records) * records,
            epochs=chosen.epochs,
            rate=chosen.rate(records),
            steps=chosen.steps(records),
        )

    def central(self, row: int) -> FrontierLevel:
        """One promise."""
        plan, number = self._plan, self._choice[row] if self._choice else 0
        noise, setting = plan.noises[row][number], self._setting(number)
        loss = privacy_loss(release(noise, setting.rate, setting.steps, _mean_runs(plan)), Adjacency.ADD_REMOVE)
        epsilon = float(loss.epsilon(_delta(plan)))
        return FrontierLevel(
            kind="central",
            bound=plan.promises[row].bound,
            noise=noise,
            epsilon=epsilon if np.isfinite(epsilon) else None,
            setting=setting if self._choice else None,
            quality=self._quality(row),
            lost=self._lost(row),
            diverged=self._has_diverged(row),
        )

    def local(self, place: int) -> FrontierLevel:
        """The same promise kept by noise on the records themselves."""
        row = len(self._plan.promises) + 1 + place
        return FrontierLevel(
            kind="local",
            bound=self._plan.promises[place].bound,
            value_epsilon=self._plan.local_epsilons[place],
            setting=self._setting(self._choice[-1], clipped=False) if self._choice else None,
            quality=self._quality(row),
            lost=self._lost(row),
            diverged=self._has_diverged(row),
        )


def _exactly(value: float) -> Repeated:
    return Repeated(mean=value, low=value, high=value, next_low=value, next_high=value, values=(value,))


def _delta(plan: FrontierPlan) -> float:
    return plan.promises[0].parameters.get("delta", 1 / len(plan.parts.train))


def _input(plan: FrontierPlan) -> FrontierInput:
    parts, told = plan.parts, plan.description
    return FrontierInput(
        data=parts.name,
        data_sha256=tuple(told["data_sha256"]),
        label=plan.source.get("label"),
        group=plan.source.get("group"),
        task=parts.task,
        promise=told["promise"],
        bounds=tuple(told["bounds"]),
        delta=_delta(plan),
        prior=told.get("prior"),
        fpr=told.get("fpr"),
        baseline=told.get("baseline"),
        local=bool(plan.local_epsilons),
        model=told["model"],
        optimizer=plan.optimizer,
        metric=plan.metric,
        tuning=plan.tuning,
        public_data=plan.source.get("public_data"),
        mean_runs=_mean_runs(plan),
        settings=len(plan.settings),
        repeats=plan.repeats,
        seed=plan.seed,
        adjacency=Adjacency.ADD_REMOVE.value,
        records=plan.records,
        validation_records=len(parts.validation),
        test_records=len(parts.test),
        features=int(np.prod(parts.train.shape[1:])),
        classes=parts.classes,
        torch=str(torch.__version__),
    )


def _tuning_text(plan: FrontierPlan) -> str:
    tried = count_of(len(plan.settings), "setting")
    if plan.tuning == "public":
        return (
            f"The best of {tried} was chosen for every promise on {plan.searched.name}, not on the private records: "
            "the choice costs no privacy."
        )
    if plan.tuning == "accounted":
        return (
            f"Every model is the best of a random number of runs ({plan.mean_runs:g} on average) with settings drawn "
            f"from {tried}, and the noise pays for it. The {len(plan.parts.validation):,} validation records that "
            "judged the runs are not covered by the promise."
        )
    if len(plan.settings) == 1:
        return "One setting was given and none was searched: there is no choice that the promise would have to cover."
    return (
        f"The best of {tried} was chosen for every promise by looking at the private records. The promise does NOT "
        "cover this choice: take settings from public data (tuning public) or pay for the search (tuning accounted)."
    )


def _cautions(plan: FrontierPlan) -> Any:
    yield (
        "These figures are measured on the data without protection: they are for people who may see the data. To "
        "publish them is a release of its own, which no promise here covers."
    )
    looked = [one.name for one in plan.parts.encoding if one.looks_at_data]
    if looked:
        named = ", ".join(looked[:6]) + (f" and {len(looked) - 6} more" if len(looked) > 6 else "")
        yield (
            f"{count_of(len(looked), 'column')} ({named}) became numbers by statistics of the training records (means, "
            "spreads, medians, lists of words), which no noise protects: fix them from public knowledge before "
            "a release."
        )
    if plan.local_epsilons:
        yield (
            "Local noise trains with the settings that are best without noise. It hides a record's values from "
            "everybody, its label from nobody, and keeps the promise for a record that is exchanged (replace); noise "
            "in training keeps it for one that is there or not (add-remove)."
        )
    yield from plan.parts.cautions
