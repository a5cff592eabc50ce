"""A campaign: the data, the two neighbours, the noise; then blocks of trials, each kept on disk as it finishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import torch
from msgspec import structs

from deniable.campaigns.provenance import no_source
from deniable.campaigns.setup import CalibratedBy, Ground
from deniable.checks import whole
from deniable.data import Dataset, most_dissimilar
from deniable.data.neighbours import Neighbour, usual_measure
from deniable.data.sampled_neighbours import likely_dissimilar, too_many_pairs
from deniable.engines import Campaign, Engine, Local, play_missing
from deniable.engines.blocks import Certain, arrays_of
from deniable.evidence.played_trials import Trials
from deniable.mechanisms import Adjacency, Mechanism, Training
from deniable.promises import Promise
from deniable.results.shared import Provenance
from deniable.store import CampaignStore
from deniable.training import Neighbours, TrainingSettings, run_block
from deniable.training.engine import usual_block
from deniable.training.networks.usual_models import model_factory

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
    source: Provenance = field(default_factory=no_source)
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
        source = structs.replace(ground.source, usual_block=block == usual)
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
    plan: Plan,
    store: CampaignStore | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    certain: Certain[Trials] | None = None,
) -> Trials:
    """Play the blocks that `store` lacks, keeping each as it finishes, and return all trials in order.

    `engine` is by default a pool of processes, one a core. `certain` hears the trials in order, block by block; once it
    says True, the campaign ends everywhere and the trials so far are returned, the same ones on every engine.
    """
    watch = None if certain is None else _TrialWatch(plan, certain)
    ordered = play_missing(campaign_of(plan), engine or Local(), store, tell=_teller(plan, progress), certain=watch)
    return Trials.join_blocks(map(arrays_of, ordered), plan.trials)


def campaign_of(plan: Plan) -> Campaign[Trials]:
    """The plan's blocks, as every engine plays them."""
    work = partial(play_block, plan.training, plan.neighbours, plan.seed)
    return Campaign(plan.settings, plan.blocks, Trials, work)


def play_block(training: TrainingSettings, neighbours: Neighbours, seed: int, number: int) -> Trials:
    """What is kept of one block."""
    played = run_block(training, neighbours, seed, number)
    return Trials(**{field.name: getattr(played, field.name) for field in fields(Trials)})


class _TrialWatch:
    """Shows `certain` the trials that were asked for: the last block may have more."""

    def __init__(self, plan: Plan, certain: Certain[Trials]) -> None:
        self._left, self._certain = plan.trials, certain

    def __call__(self, block: Trials) -> bool:
        shown = Trials.join_blocks([arrays_of(block)], self._left)
        self._left -= len(shown)
        return self._certain(shown)


def _teller(plan: Plan, progress: Progress | None) -> Callable[[int], None]:
    def tell(blocks: int) -> None:
        if progress is not None:
            progress(min(blocks * plan.training.trials_per_block, plan.trials), plan.trials)

    return tell


def choose_neighbours(
    parts: tuple[Dataset, Dataset],
    seed: int,
    adjacency: Adjacency,
    measure: str | None,
    progress: Progress | None = None,
) -> tuple[Neighbours, dict[str, Any]]:
    """D with its most dissimilar neighbour, and where they come from; too many pairs are searched by sample."""
    inside, outside = parts
    compared = measure or usual_measure(inside, outside)
    origin: dict[str, Any] = {"records": len(inside), "measure": compared}
    if too_many_pairs(inside, outside, adjacency, compared):
        found = likely_dissimilar(inside, outside, adjacency, measure=compared, seed=seed, progress=progress)
        origin["search"] = "sampled"
    else:
        found = most_dissimilar(inside, outside, adjacency, measure=compared, progress=progress)[0]
    chosen = {"record": found.record, "replacement": found.replacement, "dissimilarity": found.dissimilarity}
    return exchange_records(inside, outside, found), {**origin, **chosen}


def exchange_records(inside: Dataset, outside: Dataset, found: Neighbour) -> Neighbours:
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
