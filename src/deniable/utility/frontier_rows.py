"""The result of a frontier from what was measured: every row with its limits, the knee, and what is said beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from deniable.answers.strength import BASELINE, RARE, grade
from deniable.campaigns.provenance import frontier_command, versions
from deniable.data.encoding import name_learnt_columns, tell_statistics
from deniable.formatting import count_of
from deniable.mechanisms import Adjacency
from deniable.results.explain_result import StrengthName
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
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.utility.frontier_plan import FrontierPlan, release
from deniable.utility.knee import find_knee
from deniable.utility.measures import METRICS, Measures, limits_of_difference, limits_of_repeats, measure_answer
from deniable.utility.units import Choice


def tell_frontier(plan: FrontierPlan, choice: Choice, repeats: Sequence[Measures], confidence: float) -> FrontierResult:
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
            strength=_strength(loss, _delta(plan)),
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


def _strength(loss: PrivacyLoss, delta: float) -> StrengthName:
    return grade(float(loss.advantage()), float(loss.belief(min(delta, RARE))), float(loss.success(BASELINE)))


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


def _cautions(plan: FrontierPlan) -> Iterator[str]:
    yield (
        "These figures are measured on the data without protection: they are for people who may see the data. To "
        "publish them is a release of its own, which no promise here covers."
    )
    if looked := name_learnt_columns(plan.parts.encoding):
        yield tell_statistics(looked, "the training records")
    if plan.local_epsilons:
        yield (
            "Local noise trains with the settings that are best without noise. It hides a record's values from "
            "everybody, its label from nobody, and keeps the promise for a record that is exchanged (replace); noise "
            "in training keeps it for one that is there or not (add-remove)."
        )
    yield from plan.parts.cautions
