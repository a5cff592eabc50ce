"""A unit of work: settings that are searched, or chosen ones that are measured; many trainings together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.engines import Campaign, Engine, play_missing
from deniable.engines.blocks import Keeper, arrays_of
from deniable.training.gradients import trainable
from deniable.training.networks.usual_models import model_factory
from deniable.training.together import Together, train_together
from deniable.utility.frontier_plan import FrontierPlan
from deniable.utility.local_records import perturb_records
from deniable.utility.measures import Measures, join_measures, measure, nothing, score
from deniable.utility.parts import Parts

VALUES_AT_ONCE = 2**27
"""Weights and their sums, noise and moments that are held at once, about."""
COPIES = 6
Choice = tuple[int, ...]
"""The chosen setting of every promise, and last of no promise."""


@dataclass(frozen=True)
class UnitResult(Measures):
    """What a unit gave: `scores` of searched settings (promises and none, settings), or measures of chosen ones.

    A measuring unit's rows are the promises, none, and the local levels.
    """

    scores: NDArray[np.float64] = field(default_factory=nothing)


@dataclass(frozen=True)
class _Trial:
    """One training: which noise, which setting."""

    noise: float
    clip: float
    learning_rate: float


class _Memory:
    """Keeps units where there is no store."""

    def __init__(self) -> None:
        self._kept: dict[int, dict[str, NDArray[Any]]] = {}

    def finished_blocks(self) -> list[int]:
        """Their numbers."""
        return sorted(self._kept)

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def load(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of one."""
        return self._kept[number]

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]], at_once: bool) -> None:
        """Keep one more."""
        self._kept[number] = dict(arrays)


def play(
    plan: FrontierPlan, keeper: Keeper | None, engine: Engine, progress: Any = None
) -> tuple[Choice, list[UnitResult]]:
    """The chosen settings and every repeat's measures; units that the keeper has are not played again."""
    kept: Keeper = _Memory() if keeper is None else keeper

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, plan.units)

    search = Campaign(plan.description, plan.search_units, UnitResult, partial(search_unit, plan))
    found = play_missing(search, engine, kept, tell=tell) if plan.search_units else []
    choice = _choose(plan, found)
    both = Campaign(plan.description, plan.units, UnitResult, partial(measure_unit, plan, choice))
    return choice, play_missing(both, engine, kept, tell=tell)[plan.search_units :]


def _choose(plan: FrontierPlan, found: Sequence[UnitResult]) -> Choice:
    """The setting with the best mean score on the validation records, for every promise and none."""
    if not found:
        return ()
    rows = len(plan.promises) + 1
    means = np.full((rows, len(plan.settings)), -inf)
    for place, group in enumerate(plan.groups):
        repeats = found[place * plan.repeats : (place + 1) * plan.repeats]
        means[:, group] = np.mean([one.scores for one in repeats], axis=0)
    return tuple(int(number) for number in means.argmax(1))


def search_unit(plan: FrontierPlan, number: int) -> UnitResult:
    """All settings with equal batches and epochs, at every promise and none, judged on the validation records."""
    group = plan.groups[number // plan.repeats]
    trials = [_trial(plan, row, one) for row in range(len(plan.promises) + 1) for one in group]
    parts = plan.searched
    (measured,) = _train_and_measure(
        plan, parts, trials, records=parts.search_places, setting=group[0], block=number, judged=[parts.validation]
    )
    scores = score(measured, plan.metric).reshape(len(plan.promises) + 1, len(group))
    return UnitResult(scores=scores)


def _trial(plan: FrontierPlan, row: int, number: int) -> _Trial:
    """A promise's training, or in the row behind them one without noise and clipping."""
    setting = plan.settings[number]
    if row == len(plan.promises):
        return _Trial(0.0, inf, setting.learning_rate)
    return _Trial(plan.noises[row][number], setting.clip, setting.learning_rate)


def _train_and_measure(
    plan: FrontierPlan,
    parts: Parts,
    trials: Sequence[_Trial],
    *,
    records: NDArray[np.int64] | None,
    setting: int,
    block: int,
    judged: Sequence[NDArray[np.int64] | None] = (None,),
) -> list[Measures]:
    """Train with one setting's batches and epochs, on some of the training records or all of them.

    `judged` are the places of training records on which the models are judged, each by itself; None is the test part.
    """
    x, y = parts.train, parts.train_labels
    if records is not None:
        x, y = x[torch.from_numpy(records)], y[torch.from_numpy(records)]
    weights = sum(value.numel() for value in trainable(model_factory(plan.model)()).values())
    some = max(1, VALUES_AT_ONCE // (COPIES * weights))
    found: list[list[Measures]] = [[] for _ in judged]
    for part, start in enumerate(range(0, len(trials), some)):
        together = _together(plan, trials[start : start + some], setting)
        trained = train_together(together, x, y, seed=plan.seed, block=block, part=part)
        for kept, places in zip(found, judged, strict=True):
            kept.append(measure(trained, parts, places))
    return [join_measures(kept) for kept in found]


def _together(plan: FrontierPlan, trials: Sequence[_Trial], setting: int) -> Together:
    chosen, records = plan.settings[setting], len(plan.parts.train)

    def each(name: str) -> Tensor:
        return torch.tensor([getattr(trial, name) for trial in trials], dtype=torch.float32)

    rate, steps = chosen.rate(records), chosen.steps(records)
    values = each("noise"), each("clip"), each("learning_rate")
    return Together(plan.model, rate, steps, *values, plan.optimizer, plan.loss)


def measure_unit(plan: FrontierPlan, choice: Choice, number: int) -> UnitResult:
    """One repeat: every promise's chosen setting, judged on the test part."""
    measured = _measure_accounted(plan, number) if plan.tuning == "accounted" else _measure_chosen(plan, choice, number)
    if plan.local_epsilons:
        setting = choice[-1] if choice else 0
        measured = join_measures(
            [measured, *(_measure_local(plan, row, setting, number) for row in range(len(plan.promises)))]
        )
    return UnitResult(**arrays_of(measured))


def _measure_chosen(plan: FrontierPlan, choice: Choice, number: int) -> Measures:
    order, found = [], []
    for place, group in enumerate(plan.groups):
        rows = [row for row, chosen in enumerate(choice) if chosen in group]
        if rows:
            trials = [_trial(plan, row, choice[row]) for row in rows]
            block = number * len(plan.groups) + place + plan.search_units
            found += _train_and_measure(plan, plan.parts, trials, records=None, setting=group[0], block=block)
            order += rows
    return join_measures(found).take(np.argsort(order))


def _measure_accounted(plan: FrontierPlan, number: int) -> Measures:
    """A random number of runs with settings drawn at random, of which the best on the validation records is kept."""
    generator = np.random.default_rng([plan.seed, number, 3])
    rows = len(plan.promises) + 1
    runs = generator.geometric(1 / plan.mean_runs, size=rows)
    drawn = [(row, int(one)) for row in range(rows) for one in generator.integers(len(plan.settings), size=runs[row])]
    trials = [_trial(plan, row, one) for row, one in drawn]
    parts = plan.parts
    seen, tested = _train_and_measure(
        plan, parts, trials, records=parts.search_places, setting=0, block=number, judged=[parts.validation, None]
    )
    scores, owner = score(seen, plan.metric), np.array([row for row, _ in drawn])
    best = [int(np.flatnonzero(owner == row)[scores[owner == row].argmax()]) for row in range(rows)]
    return tested.take(np.array(best))


def _measure_local(plan: FrontierPlan, row: int, setting: int, number: int) -> Measures:
    """An ordinary training on records that were perturbed one by one."""
    noisy = perturb_records(plan.parts, plan.local_epsilons[row], seed=1000 * number + row)
    trial = _Trial(0.0, inf, plan.settings[setting].learning_rate)
    together = _together(plan, [trial], setting)
    x, y = torch.from_numpy(noisy), plan.parts.train_labels
    return measure(train_together(together, x, y, seed=plan.seed, block=number, part=row + 1), plan.parts)
