"""What a campaign and an exposure stand on: the data, D drawn from it, and a training with the promise's noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from deniable.audit.promise import CalibratedBy, Promise, training_mechanism
from deniable.audit.provenance import data_source
from deniable.checks import whole
from deniable.data import Dataset, load, split
from deniable.data.own import run_own
from deniable.mechanisms import Adjacency, Mechanism
from deniable.training import MODELS, TrainingSettings
from deniable.training.gradients import trainable
from deniable.training.models import check_fit, model_factory, sized_model

__all__ = ["Ground", "check_records", "model_source", "neighbourly", "promised", "usual_model"]

USUAL_RECORDS = 100
USUAL_MODEL = {"purchases": "purchase100", "skewed-purchases": "purchase100"} | {name: name for name in MODELS}


@dataclass(frozen=True)
class Ground:
    """All but the choice of one neighbour."""

    promise: Promise
    training: TrainingSettings
    dataset: Dataset
    records: int
    """Of D."""
    seed: int
    block: int | None
    """Trials in a block, where asked for."""
    source: dict[str, Any]
    """What the data and the model are, and how they were named: for people alone."""

    @classmethod
    def of(
        cls,
        data: str | Path | Callable[[], Any],
        promise: Promise | Callable[[int], Promise],
        *,
        records: int | None = None,
        seed: int = 0,
        model: str | Callable[[], torch.nn.Module] | None = None,
        label: str | None = None,
        **training: Any,
    ) -> Ground:
        """Load the data, see that the model fits, and find the noise.

        `records` are 100, or half of the data if that is less; a promise may depend on their number.
        """
        whole("seed", seed, low=0)
        dataset = load(data, label=label)
        records = usual_records(dataset) if records is None else records
        promise = promise if isinstance(promise, Promise) else promise(records)
        adjacency = neighbourly(training.pop("adjacency", Adjacency.REPLACE))
        unsettled = TrainingSettings(usual_model(model, dataset), noise=1.0, adjacency=adjacency, **training)
        settled = replace(unsettled, noise=promise.noise(unsettled.rate, unsettled.steps, adjacency))
        check_records(dataset, records, adjacency)
        network = run_own("the model's function", model_factory(unsettled.model))
        check_fit(network, torch.from_numpy(dataset.inputs[:2]), dataset.classes)
        source = data_source(data, dataset, label) | model_source(network)
        if model is None and dataset.name not in USUAL_MODEL:
            source["usual_model"] = unsettled.model
        return cls(promise, settled, dataset, records, seed, training.get("trials_per_block"), source)

    @cached_property
    def parts(self) -> tuple[Dataset, Dataset]:
        """D, drawn at random, and the rest of the data."""
        return split(self.dataset, self.records, self.seed)

    @property
    def mechanism(self) -> Mechanism:
        """The release that the training claims to be."""
        return training_mechanism(self.training.noise, self.training.rate, self.training.steps)


def promised(
    *,
    belief: float | None = None,
    advantage: float | None = None,
    epsilon: float | None = None,
    noise: float | None = None,
    delta: float | None = None,
    calibration: CalibratedBy = "exact",
    records: int = USUAL_RECORDS,
) -> Promise:
    """The one promise that is given; `delta` is also the belief's failure probability, by default 1/records."""
    given = {"belief": belief, "advantage": advantage, "epsilon": epsilon, "noise": noise}
    return Promise.only(given, 1 / whole("records", records, low=2) if delta is None else delta, calibration)


def check_records(dataset: Dataset, records: int, adjacency: Adjacency) -> None:
    """D needs two records, and with replace neighbours one more must be left."""
    replaced = adjacency is Adjacency.REPLACE
    if whole("records", records, low=2) >= len(dataset) + (not replaced):
        most = len(dataset) - replaced
        raise ValueError(f"records must be at most {most} for {adjacency} neighbours in {dataset.name}, got {records}")


def neighbourly(adjacency: Adjacency | str) -> Adjacency:
    """A kind of neighbours that a training can be played on."""
    if adjacency not in (Adjacency.REPLACE, Adjacency.ADD_REMOVE):
        raise ValueError(f"adjacency must be replace or add-remove, got {str(adjacency)!r}")
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


def model_source(network: torch.nn.Module) -> dict[str, Any]:
    """What a network is made of, for people."""
    layers = [str(layer) for layer in network.modules() if not any(layer.children())]
    return {"weights": sum(value.numel() for value in trainable(network).values()), "layers": layers}
