"""A campaign: the data, the two neighbours, the noise; then blocks of trials, each kept on disk as it finishes.

What it stands on, an exposure stands on, too: the data, D drawn from it, and a training with the promise's noise.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from msgspec import structs

from deniable.bounds import epsilon_to_belief
from deniable.bounds.textbook import noise_for_belief
from deniable.calibration import calibrate
from deniable.campaigns.provenance import data_source, no_source
from deniable.checks import RefusedError, one_of, refuse, whole
from deniable.data import Dataset, load, most_dissimilar, split
from deniable.data.neighbours import Neighbour, likely_dissimilar, too_many_pairs, usual_measure
from deniable.data.own_data import call_user_code
from deniable.engines import Campaign, Engine, Local, play_missing
from deniable.engines.blocks import Certain, arrays_of
from deniable.evidence.measured import Trials
from deniable.mechanisms import Adjacency, Mechanism, Training
from deniable.promises import Advantage, Belief, Noise, Promise, audited_promise
from deniable.results.shared import Provenance
from deniable.store import CampaignStore
from deniable.training import MODELS, Neighbours, TrainingSettings, run_block
from deniable.training.engine import usual_block
from deniable.training.gradients import trainable
from deniable.training.networks.usual_models import check_fit, model_factory, sized_model
from deniable.training.settings import Optimizer, Sensitivity

CalibratedBy = Literal["exact", "rdp"]

USUAL_RECORDS = 100
USUAL_MODEL = {"purchases": "purchase100", "skewed-purchases": "purchase100"} | {name: name for name in MODELS}


@dataclass(frozen=True)
class Ground:
    """All but the choice of one neighbour."""

    promise: Promise
    delta: float
    """At which epsilon is told, and how often a belief may be exceeded."""
    calibration: CalibratedBy
    training: TrainingSettings
    dataset: Dataset
    records: int
    """Of D."""
    seed: int
    block: int | None
    """Trials in a block, where asked for."""
    source: Provenance
    """What the data and the model are, and how they were named: for people alone."""

    @classmethod
    def of(
        cls,
        data: str | Path | Callable[[], Any],
        claim: Mapping[str, float],
        *,
        adjacency: Adjacency | str,
        delta: float | None = None,
        calibration: CalibratedBy = "exact",
        records: int | None = None,
        seed: int = 0,
        model: str | Callable[[], torch.nn.Module] | None = None,
        label: str | None = None,
        steps: int = 30,
        clip: float = 3.0,
        learning_rate: float = 0.005,
        optimizer: Optimizer = "sgd",
        rate: float = 1.0,
        sensitivity: Sensitivity = "global",
        loss: str | Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = "cross-entropy",
        trials_per_block: int | None = None,
    ) -> Ground:
        """Load the data, see that the model fits, and find the noise.

        `claim` is the one promise, by its name; `records` are 100, or half of the data if that is less; `delta` is
        1/records unless given. The others are those of `TrainingSettings`.
        """
        whole("seed", seed, low=0)
        audited_promise(claim, 0.5 if delta is None else delta)  # what is wrong with it is said before the data load
        dataset = load(data, label=label, encode=True)
        records = usual_records(dataset) if records is None else records
        delta = 1 / whole("records", records, low=2) if delta is None else delta
        promise, kind = audited_promise(claim, delta), neighbourly(adjacency)
        unsettled = TrainingSettings(
            usual_model(model, dataset),
            noise=1.0,
            steps=steps,
            clip=clip,
            learning_rate=learning_rate,
            optimizer=optimizer,
            rate=rate,
            sensitivity=sensitivity,
            adjacency=kind,
            loss=loss,
            **({} if trials_per_block is None else {"trials_per_block": trials_per_block}),
        )
        settled = replace(unsettled, noise=least_noise(promise, delta, Training.of(unsettled), calibration))
        check_records(dataset, records, kind)
        network = call_user_code("the model's function", model_factory(unsettled.model))
        check_fit(network, torch.from_numpy(dataset.inputs[:2]), dataset.classes)
        source = with_model(data_source(data, dataset, label), network)
        if model is None and dataset.name not in USUAL_MODEL:
            source = structs.replace(source, usual_model=unsettled.model)
        return cls(promise, delta, calibration, settled, dataset, records, seed, trials_per_block, source)

    @cached_property
    def parts(self) -> tuple[Dataset, Dataset]:
        """D, drawn at random, and the rest of the data."""
        return split(self.dataset, self.records, self.seed)


def least_noise(promise: Promise, delta: float, training: Training, calibration: CalibratedBy = "exact") -> float:
    """The least noise multiplier that keeps the promise, exact or by Renyi DP (as Bernau et al. 2021, Section 5)."""
    one_of("calibration", calibration, get_args(CalibratedBy))
    if calibration == "exact" or isinstance(promise, Noise):
        found = calibrate(lambda noise: replace(training, noise=noise).mechanism, promise, training.adjacency)
        return found.value
    if training.rate < 1 or isinstance(promise, Advantage):
        only = "{calibration} 'rdp' is for a belief or epsilon and full batches (rate 1)"
        raise RefusedError(only, "calibration", calibration, "exact", "use 'exact'")
    belief = promise.bound if isinstance(promise, Belief) else epsilon_to_belief(promise.bound)
    return noise_for_belief(belief, delta, training.steps)


def check_records(dataset: Dataset, records: int, adjacency: Adjacency) -> None:
    """D needs two records, and with replace neighbours one more must be left."""
    replaced = adjacency is Adjacency.REPLACE
    if whole("records", records, low=2) >= len(dataset) + (not replaced):
        most = len(dataset) - replaced
        raise ValueError(f"records must be at most {most} for {adjacency} neighbours in {dataset.name}, got {records}")


def neighbourly(adjacency: Adjacency | str) -> Adjacency:
    """A kind of neighbours that a training can be played on."""
    if adjacency not in (Adjacency.REPLACE, Adjacency.ADD_REMOVE):
        raise refuse("adjacency", str(adjacency), "replace or add-remove")
    return Adjacency(adjacency)


def usual_model(model: str | Callable[[], torch.nn.Module] | None, dataset: Dataset) -> Any:
    """The model that was named, or the data's own; a usual network is named with its sizes."""
    if model is None and dataset.name in USUAL_MODEL:
        return USUAL_MODEL[dataset.name]
    if model is None or isinstance(model, str):
        return sized_model(model, dataset.inputs.shape[1:], dataset.classes)
    return model


def usual_records(dataset: Dataset) -> int:
    """The size of D where none is asked for: 100, or half of the data if that is less."""
    return min(USUAL_RECORDS, max(2, len(dataset) // 2))


def with_model(source: Provenance, network: torch.nn.Module) -> Provenance:
    """What is known of the data, and what the network is made of, for people."""
    layers = tuple(str(layer) for layer in network.modules() if not any(layer.children()))
    return structs.replace(source, weights=sum(value.numel() for value in trainable(network).values()), layers=layers)


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
