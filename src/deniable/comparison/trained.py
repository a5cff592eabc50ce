"""The models behind a campaign's trials, and the records that a membership attack on them is tested on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor, nn

from deniable.campaigns.campaign import Plan
from deniable.data import Dataset, split
from deniable.training import Observation
from deniable.training.gradients import trainable
from deniable.training.networks.usual_models import model_factory


class Weights:
    """A watcher that keeps all trials' weights as they are before certain steps; step 0 has the untrained ones."""

    def __init__(self, *steps: int) -> None:
        self._steps = steps
        self._kept: dict[int, list[Tensor]] = {}

    def __call__(self, observation: Observation) -> None:
        if observation.step in self._steps:
            self._kept[observation.step] = [values.clone() for values in observation.weights]

    def at(self, step: int) -> list[list[Tensor]]:
        """One trial's weights after the other's, before this step."""
        return [list(values) for values in zip(*self._kept[step], strict=True)]


def trained_model(plan: Plan, weights: list[Tensor]) -> nn.Module:
    """The campaign's network with one trial's weights."""
    model = model_factory(plan.training.model)()
    model.load_state_dict(dict(zip(trainable(model), weights, strict=True)), strict=False)
    return model


def members_of(plan: Plan, like: Dataset) -> Dataset:
    """D without the differing record, which only half of the trainings have."""
    rest = np.arange(len(plan.neighbours.records)) != plan.neighbours.index
    features = plan.neighbours.records.numpy()[rest].reshape(-1, *like.features.shape[1:])
    return replace(like, features=features, labels=plan.neighbours.labels.numpy()[rest])


def non_members_of(dataset: Dataset, records: int, seed: int) -> Dataset:
    """As many records as D has, drawn from those that the campaign with this seed left out of D."""
    _, rest = split(dataset, records, seed)
    return split(rest, records, seed)[0]
