"""A campaign: the data, the two neighbours, the noise; then blocks of trials, each kept on disk as it finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from deniable.audit.promise import Promise, training_mechanism
from deniable.audit.provenance import data_source
from deniable.audit.trials import Trials
from deniable.checks import whole
from deniable.data import Dataset, load, most_dissimilar, split
from deniable.data.neighbours import USUAL_MEASURE, Neighbour
from deniable.mechanisms import Adjacency, Mechanism
from deniable.store import Store
from deniable.training import MODELS, BlockResult, Neighbours, TrainingSettings, run_blocks
from deniable.training.blocks import usual_block
from deniable.training.gradients import trainable
from deniable.training.kept import play_missing
from deniable.training.models import check_fit, model_factory

__all__ = [
    "Plan",
    "Progress",
    "Trials",
    "choose_neighbours",
    "exchanged",
    "model_source",
    "named_by",
    "neighbourly",
    "play",
    "usual_model",
]

Progress = Callable[[int, int], None]
"""Called with (trials done, trials in all), first with those that a resumed campaign had already."""

USUAL_MODEL = {"purchases": "purchase100", "skewed-purchases": "purchase100"} | {name: name for name in MODELS}


@dataclass(frozen=True)
class Plan:
    """All that a campaign's results depend on; equal plans give equal trials."""

    promise: Promise
    training: TrainingSettings
    neighbours: Neighbours
    trials: int
    seed: int
    origin: Mapping[str, Any]
    """Where the neighbours come from, for people and for the comparison on resuming."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """What the data and the model are, and how they were named: for people alone."""

    @classmethod
    def of(
        cls,
        data: str | Path | Callable[[], Any],
        promise: Promise,
        *,
        records: int,
        trials: int,
        seed: int,
        model: str | Callable[[], torch.nn.Module] | None = None,
        measure: str | None = None,
        label: str | None = None,
        **training: Any,
    ) -> Plan:
        """Load the data, split D from it, find the most dissimilar neighbour (001 Section 5.1) and the noise."""
        whole("trials", trials)
        whole("seed", seed, low=0)
        dataset = load(data, label=label)
        adjacency = neighbourly(training.pop("adjacency", Adjacency.REPLACE))
        unsettled = TrainingSettings(usual_model(model, dataset), noise=1.0, adjacency=adjacency, **training)
        settled = {field.name: getattr(unsettled, field.name) for field in fields(unsettled)}
        settled["noise"] = promise.noise(unsettled.rate, unsettled.steps, adjacency)
        neighbours, origin = choose_neighbours(dataset, records, seed, adjacency, measure)
        network = model_factory(unsettled.model)()
        check_fit(network, neighbours.records[:2], dataset.classes)
        usual = usual_block(network, neighbours, unsettled.rate)
        settled["trials_per_block"] = training.get("trials_per_block", usual)
        source = data_source(data, dataset, label) | model_source(network)
        source["usual_block"] = settled["trials_per_block"] == usual
        return cls(promise, TrainingSettings(**settled), neighbours, trials, seed, origin, source)

    @property
    def blocks(self) -> int:
        """How many blocks hold all trials; what the last one has too many is left out."""
        return -(-self.trials // self.training.trials_per_block)

    @property
    def mechanism(self) -> Mechanism:
        """The release that the training claims to be."""
        return training_mechanism(self.training.noise, self.training.rate, self.training.steps)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the trials' bytes, as JSON values."""
        training = {field.name: named_by(getattr(self.training, field.name)) for field in fields(self.training)}
        training |= {name: float(training[name]) for name in ("noise", "clip", "learning_rate", "rate")}
        promise = {self.promise.name: self.promise.bound, "delta": self.promise.delta}
        chosen = {"calibration": self.promise.calibration, "trials": self.trials, "seed": self.seed}
        return {**self.origin, **training, **promise, **chosen, "torch": torch.__version__}


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


def neighbourly(adjacency: Adjacency | str) -> Adjacency:
    """A kind of neighbours that a training can be played on."""
    if adjacency not in (Adjacency.REPLACE, Adjacency.ADD_REMOVE):
        raise ValueError(f"adjacency must be replace or add-remove, got {str(adjacency)!r}")
    return Adjacency(adjacency)


def usual_model(model: str | Callable[[], torch.nn.Module] | None, dataset: Dataset) -> Any:
    """The model that was named, or the data's own."""
    chosen = model if model is not None else USUAL_MODEL.get(dataset.name)
    if chosen is None:
        raise ValueError(f"model is missing: {dataset.name} has no usual one; name 'module:function' that returns it")
    return chosen


def model_source(network: torch.nn.Module) -> dict[str, Any]:
    """What a network is made of, for people."""
    layers = [str(layer) for layer in network.modules() if not any(layer.children())]
    return {"weights": sum(value.numel() for value in trainable(network).values()), "layers": layers}


def choose_neighbours(
    dataset: Dataset, records: int, seed: int, adjacency: Adjacency, measure: str | None
) -> tuple[Neighbours, dict[str, Any]]:
    """D, drawn at random, with its most dissimilar neighbour; and where they come from."""
    replace = adjacency is Adjacency.REPLACE
    if whole("records", records, low=2) >= len(dataset) + (not replace):
        most = len(dataset) - replace
        raise ValueError(f"records must be at most {most} for {adjacency} neighbours in {dataset.name}, got {records}")
    inside, outside = split(dataset, records, seed)
    compared = measure or USUAL_MEASURE[dataset.kind]
    found = most_dissimilar(inside, outside, adjacency, measure=compared)[0]
    neighbours = exchanged(inside, outside, found)
    origin = {"data": dataset.name, "data_sha256": dataset.sha256, "records": records, "measure": compared}
    chosen = {"record": found.record, "replacement": found.replacement, "dissimilarity": found.dissimilarity}
    return neighbours, {**origin, **chosen}


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
