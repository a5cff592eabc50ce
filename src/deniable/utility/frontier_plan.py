"""All that a frontier's figures depend on: the data, the promises with their noise, the settings, the repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

import torch

from deniable.calibration import calibrate
from deniable.mechanisms import Adjacency, Mechanism, RepeatAndSelect
from deniable.promises import Promise
from deniable.training.networks.usual_models import check_fit, model_factory, sized_model
from deniable.training.settings import ModelFactory, Optimizer
from deniable.utility.parts import Parts
from deniable.utility.tried_settings import Setting, training_mechanism

TuningWay = Literal["uncovered", "public", "accounted"]


@dataclass(frozen=True)
class FrontierPlan:
    """Equal plans give equal figures on one machine.

    `noises` has a row a promise and a column a setting. `searched` are the parts that settings are chosen on, which
    are `parts` themselves unless the search is public.
    """

    parts: Parts
    searched: Parts
    promises: tuple[Promise, ...]
    settings: tuple[Setting, ...]
    noises: tuple[tuple[float, ...], ...]
    model: str | ModelFactory
    optimizer: Optimizer
    metric: str
    tuning: TuningWay
    mean_runs: float
    repeats: int
    seed: int
    local_epsilons: tuple[float, ...] = ()
    """Of each value of a record, a promise each; none where local noise was not asked for."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """How data and model were named: for people alone."""

    @cached_property
    def groups(self) -> list[list[int]]:
        """Numbers of the settings that can be trained together: those with equal batches and epochs."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, setting in enumerate(self.settings):
            found.setdefault((setting.batch, setting.epochs), []).append(number)
        return list(found.values())

    @property
    def loss(self) -> str:
        """What is minimised."""
        return "cross-entropy" if self.parts.task == "classification" else "squared-error"

    @property
    def records(self) -> int:
        """On which the measured models are trained."""
        return len(self.parts.search_places) if self.tuning == "accounted" else len(self.parts.train)

    @property
    def search_units(self) -> int:
        """Units that choose settings; none where the choice is part of every training."""
        return 0 if self.tuning == "accounted" else len(self.groups) * self.repeats

    @property
    def units(self) -> int:
        """All of them: the search's first, then one a repeat."""
        return self.search_units + self.repeats

    @cached_property
    def description(self) -> dict[str, Any]:
        """Everything that decides the figures, as JSON values."""
        return {
            "data": self.parts.name,
            "records": self.records,
            "data_sha256": sorted({self.parts.sha256, self.searched.sha256}),
            "validation": [len(self.parts.validation), int(self.parts.validation.sum())],
            "promise": self.promises[0].field.name,
            "bounds": [promise.bound for promise in self.promises],
            **self.promises[0].parameters,
            "noises": [list(row) for row in self.noises],
            "settings": [[one.clip, one.learning_rate, one.batch, one.epochs] for one in self.settings],
            "model": self.model if isinstance(self.model, str) else getattr(self.model, "__qualname__", "function"),
            "optimizer": self.optimizer,
            "metric": self.metric,
            "tuning": self.tuning,
            "mean_runs": self.mean_runs,
            "local_epsilons": list(self.local_epsilons),
            "repeats": self.repeats,
            "seed": self.seed,
            "torch": str(torch.__version__),
        }


def release(noise: float, rate: float, steps: int, mean_runs: float | None) -> Mechanism:
    """What is released: one training, or the best of a random number of them (Papernot 2022)."""
    once = training_mechanism(noise, rate, steps)
    return once if mean_runs is None else RepeatAndSelect(once, mean_runs)


@lru_cache(1024)
def find_noise(promise: Promise, rate: float, steps: int, mean_runs: float | None) -> float:
    """The least noise that keeps the promise: `choose`'s."""
    found = calibrate(lambda noise: release(noise, rate, steps, mean_runs), promise, Adjacency.ADD_REMOVE)
    return float(found.value)


def choose_model(model: str | ModelFactory | None, parts: Parts) -> str | ModelFactory:
    """The network, fitted to the data: a usual one by name, or one's own; refused if it does not fit."""
    shape = tuple(parts.train.shape[1:])
    chosen: str | ModelFactory = sized_model(model, shape, parts.outputs) if not callable(model) else model
    if isinstance(chosen, str) and chosen.startswith("dense:") and not parts.classes:
        chosen = f"{chosen.rpartition(',')[0]},1"
    check_fit(model_factory(chosen)(), parts.train[:2], parts.outputs)
    return chosen
