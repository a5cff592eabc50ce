"""A campaign: the data, the two neighbours, the noise; then blocks of trials, each kept on disk as it finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import torch
from numpy.typing import NDArray

from deniable.campaigns.setup import CalibratedBy, Ground
from deniable.checks import whole
from deniable.data import Dataset, most_dissimilar
from deniable.data.neighbours import USUAL_MEASURE, Neighbour
from deniable.data.sampled import likely_dissimilar, too_many_pairs
from deniable.evidence.trials import Trials
from deniable.mechanisms import Adjacency, Mechanism, Training
from deniable.promises import Promise
from deniable.store import Store
from deniable.training import BlockResult, Neighbours, TrainingSettings, run_blocks
from deniable.training.blocks import usual_block
from deniable.training.kept import play_missing
from deniable.training.models import model_factory

__all__ = ["Plan", "Progress", "Trials", "choose_neighbours", "exchanged", "named_by", "play"]

Progress = Callable[[int, int], None]
"""Called with (trials done, trials in all), first with those that a resumed campaign had already."""


@dataclass(frozen=True)
class Plan:
    """All that a campaign's results depend on; equal plans give equal trials."""

    promise: Promise
    delta: float
    """At which epsilon is told, and how often a belief may be exceeded."""
    calibration: CalibratedBy
    training: TrainingSettings
    neighbours: Neighbours
    trials: int
    seed: int
    origin: Mapping[str, Any]
    """Where the neighbours come from, for people and for the comparison on resuming."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """What the data and the model are, and how they were named: for people alone."""

    @classmethod
    def on(cls, ground: Ground, trials: int, measure: str | None = None, progress: Progress | None = None) -> Plan:
        """The campaign with the most dissimilar neighbour (Bernau 2021, Section 5.1); `progress` hears of the search
        for it."""
        whole("trials", trials)
        training = ground.training
        neighbours, origin = choose_neighbours(ground.parts, ground.seed, training.adjacency, measure, progress)
        origin = {"data": ground.dataset.name, "data_sha256": ground.dataset.sha256, **origin}
        usual = usual_block(model_factory(training.model)(), neighbours, training.rate)
        block = usual if ground.block is None else ground.block
        source = {**ground.source, "usual_block": block == usual}
        settled = replace(training, trials_per_block=block)
        promise = ground.promise, ground.delta, ground.calibration
        return cls(*promise, settled, neighbours, trials, ground.seed, origin, source)

    @property
    def blocks(self) -> int:
        """How many blocks hold all trials; what the last one has too many is left out."""
        return -(-self.trials // self.training.trials_per_block)

    @property
    def mechanism(self) -> Mechanism:
        """The release that the training claims to be."""
        return Training.of(self.training).mechanism

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the trials' bytes, as JSON values."""
        training = {field.name: named_by(getattr(self.training, field.name)) for field in fields(self.training)}
        training |= {name: float(training[name]) for name in ("noise", "clip", "learning_rate", "rate")}
        promise = {self.promise.field.name: self.promise.bound, "delta": self.delta}
        chosen = {"calibration": self.calibration, "trials": self.trials, "seed": self.seed}
        return {**self.origin, **training, **promise, **chosen, "torch": str(torch.__version__)}


def play(
    plan: Plan, store: Store | None = None, *, processes: int | None = None, progress: Progress | None = None
) -> Trials:
    """Play the blocks that `store` lacks, keeping each as it finishes, and return all trials in order."""

    def run(missing: list[int], workers: int) -> Iterator[tuple[int, Trials]]:
        blocks = run_blocks(plan.training, plan.neighbours, plan.seed, missing, processes=workers)
        return ((number, Trials(**_arrays(result))) for number, result in blocks)

    tell = _teller(plan, progress)
    ordered = play_missing(plan.blocks, Trials, run, store, processes=processes, tell=tell)
    return Trials.joined((_arrays(block) for block in ordered), plan.trials)


def _teller(plan: Plan, progress: Progress | None) -> Callable[[int], None]:
    def tell(blocks: int) -> None:
        if progress is not None:
            progress(min(blocks * plan.training.trials_per_block, plan.trials), plan.trials)

    return tell


def _arrays(result: BlockResult | Trials) -> dict[str, NDArray[Any]]:
    return {field.name: getattr(result, field.name) for field in fields(Trials)}


def choose_neighbours(
    parts: tuple[Dataset, Dataset],
    seed: int,
    adjacency: Adjacency,
    measure: str | None,
    progress: Progress | None = None,
) -> tuple[Neighbours, dict[str, Any]]:
    """D with its most dissimilar neighbour, and where they come from; too many pairs are searched by sample."""
    inside, outside = parts
    compared = measure or USUAL_MEASURE[inside.kind]
    origin: dict[str, Any] = {"records": len(inside), "measure": compared}
    if too_many_pairs(inside, outside, adjacency, compared):
        found = likely_dissimilar(inside, outside, adjacency, measure=compared, seed=seed, progress=progress)
        origin["search"] = "sampled"
    else:
        found = most_dissimilar(inside, outside, adjacency, measure=compared, progress=progress)[0]
    chosen = {"record": found.record, "replacement": found.replacement, "dissimilarity": found.dissimilarity}
    return exchanged(inside, outside, found), {**origin, **chosen}


def exchanged(inside: Dataset, outside: Dataset, found: Neighbour) -> Neighbours:
    """D and the neighbour that was found, as a training takes them."""
    other = None
    if found.replacement is not None:
        other = outside.inputs[found.replacement], outside.labels[found.replacement]
    return Neighbours.of(inside.inputs, inside.labels, found.record, other)


def named_by(value: Any) -> Any:
    """A function by its importable name, anything else as it is."""
    if not callable(value):
        return value
    named = value if hasattr(value, "__qualname__") else getattr(value, "func", type(value))
    return f"{named.__module__}:{named.__qualname__}"
