"""What a campaign and an exposure stand on: the data, D drawn from it, and a training with the promise's noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from msgspec import structs

from deniable.bounds import epsilon_to_belief
from deniable.bounds.gaussian_bounds import noise_for_belief
from deniable.calibration import calibrate
from deniable.campaigns.provenance import data_source
from deniable.checks import RefusedError, one_of, refuse, whole
from deniable.data import Dataset, load, split
from deniable.data.own_data import call_user_code
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Advantage, Belief, Noise, Promise, audited_promise
from deniable.results.shared import Provenance
from deniable.training import MODELS, TrainingSettings
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
