"""How shadow models are trained: as the target was, as far as that is known.

A recipe takes a pool of records and rows that say which of them each shadow is trained on, and gives one model a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import nn

from deniable.adversaries.membership import as_input
from deniable.adversaries.model_observation import losses
from deniable.checks import whole
from deniable.data import Dataset
from deniable.data.own_data import call_user_code
from deniable.training.attacked.targets import TargetSettings
from deniable.training.networks.losses import cross_entropy, squared_error
from deniable.training.networks.usual_models import model_factory, refuse
from deniable.training.noise_source import SeededSource
from deniable.training.settings import ModelFactory, Optimizer
from deniable.training.subset_models import train_subsets
from deniable.training.threads import one_thread

LEARNING_RATES = (0.001, 0.01)
"""That are tried in this order where none is named."""
MOST_EPOCHS = 200
"""That are tried to fit shadows as closely as the target."""
PILOT_SHADOWS = 2
MANY_WEIGHTS = 10**6
"""From so many on, fewer shadows are trained at once: each takes five times its weights in memory."""

Train = Callable[[Dataset, int], Any]
"""A user's own training: records and a seed in, a trained model out (`nn.Module`, or anything with `predict_proba`)."""


class ShadowRecipe(Protocol):
    """Trains shadows; the same arguments give the same models."""

    @property
    def shadows_at_once(self) -> int:
        """How many of them are best trained together."""

    def train(self, pool: Dataset, inside: NDArray[np.bool_], seed: int, block: int) -> Iterator[Any]:
        """One model for each row of `inside`, each usable until the next is asked for."""


@dataclass(frozen=True)
class ShadowTraining:
    """How the target was trained, as far as that is known; what the defaults say may differ from it.

    `epochs` None takes as many as fit shadows to their own records as closely as the target fits its members;
    `learning_rate` None is 0.001, or 0.01 where no such number of epochs is found with that. `noise` is the noise
    multiplier of DP-SGD with Poisson batches of `batch` expected records and clipping norm `clip`.
    """

    epochs: int | None = None
    batch: int = 64
    learning_rate: float | None = None
    optimizer: Optimizer = "adam"
    noise: float = 0.0
    clip: float = 1.0

    def __post_init__(self) -> None:
        self.settings("unnamed", 1)
        if self.epochs is not None:
            whole("epochs", self.epochs)
        elif self.noise:
            raise ValueError("epochs must be named with noise: what the training promises depends on them")

    def settings(self, model: str | ModelFactory, epochs: int) -> TargetSettings:
        """As the engine takes them."""
        rate = LEARNING_RATES[0] if self.learning_rate is None else self.learning_rate
        return TargetSettings(model, self.noise, rate, self.batch, epochs, self.clip, self.optimizer, patience=None)


@dataclass(frozen=True)
class EngineRecipe:
    """DP-SGD, DP-Adam or the same without noise, all shadows of a block at once (`deniable.training`)."""

    settings: TargetSettings
    steps: int | None = None
    """Of a training that stopped early; by default those of `settings.epochs`."""
    shadows_at_once: int = 16

    def train(self, pool: Dataset, inside: NDArray[np.bool_], seed: int, block: int) -> Iterator[nn.Module]:
        """For all steps; there is no early stopping."""
        steps = self._all_steps(int(inside[0].sum())) if self.steps is None else self.steps
        return train_subsets(self.settings, pool, inside, seed=seed, block=block, steps=steps)

    def _all_steps(self, records: int) -> int:
        """Without noise an epoch is every record once, and its last batch may be smaller than the others."""
        if self.settings.noise:
            return self.settings.steps(records)
        return self.settings.epochs * ceil(records / self.settings.batch)


@dataclass(frozen=True)
class LoopRecipe:
    """An ordinary loop without noise, one shadow after the other: for layers that the engine refuses (batch norm)."""

    settings: TargetSettings
    shadows_at_once: int = 1

    def train(self, pool: Dataset, inside: NDArray[np.bool_], seed: int, block: int) -> Iterator[nn.Module]:
        """For `settings.epochs`, in batches by shuffling."""
        for number, row in enumerate(inside):
            with one_thread(), torch.random.fork_rng(devices=[]):
                torch.set_rng_state(SeededSource(seed, block, stream=4 + number).generator.get_state())
                yield self._train_one(pool.take(np.flatnonzero(row)))

    def _train_one(self, records: Dataset) -> nn.Module:
        settings, (inputs, labels) = self.settings, as_input(records)
        loss = squared_error if records.regression else cross_entropy
        model = model_factory(settings.model)().train()
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[settings.optimizer]
        optimizer = kind((p for p in model.parameters() if p.requires_grad), settings.learning_rate)
        for _ in range(settings.epochs):
            for batch in torch.split(torch.randperm(len(labels)), settings.batch):
                if len(batch) == 1 < settings.batch:
                    continue  # what is left of the epoch: batch norm cannot take one record
                optimizer.zero_grad()
                loss(model(inputs[batch]), labels[batch]).mean().backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        return model.eval()


@dataclass(frozen=True)
class OwnRecipe:
    """The user's own training."""

    function: Train
    shadows_at_once: int = 1

    def train(self, pool: Dataset, inside: NDArray[np.bool_], seed: int, block: int) -> Iterator[Any]:
        """A call a row, each with a seed of its own below 2^32, in one thread: blocks run side by side."""
        for number, row in enumerate(inside):
            own = int(np.random.SeedSequence([seed, block, number]).generate_state(1)[0])
            train = partial(self.function, pool.take(np.flatnonzero(row)), own)
            with one_thread():
                model = call_user_code("the training of a shadow model", train)
            if not isinstance(model, nn.Module) and not hasattr(model, "predict"):
                found = type(model).__name__
                raise ValueError(f"the training of a shadow model must return the trained model, it returned {found}")
            yield model


def fresh_copy(model: nn.Module) -> nn.Module:
    """The same network with new weights; frozen ones stay as they are.

    A weight that no layer can draw anew is refused: shadows would start from what the target has learnt.
    """
    copy = deepcopy(model).train()
    for name, layer in copy.named_modules():
        own = [parameter for parameter in layer.parameters(recurse=False) if parameter.requires_grad]
        if not own and not isinstance(layer, nn.modules.batchnorm._NormBase):
            continue
        reset = getattr(layer, "reset_parameters", None)
        if reset is None:
            raise ValueError(
                f"the weights of {type(layer).__name__} at {name or 'the top'!r} cannot be drawn anew (it has no "
                "reset_parameters): name your own training of shadow models"
            )
        reset()
    return copy


def suitable_recipe(model: nn.Module, training: ShadowTraining) -> EngineRecipe | LoopRecipe:
    """The engine, where it takes all layers of the target's network; else a loop, if there is no noise."""
    fresh_copy(model)
    settings = training.settings(partial(fresh_copy, model), training.epochs or 1)
    try:
        refuse(model)
    except ValueError:
        if training.noise:
            raise
        return LoopRecipe(settings)
    weights = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return EngineRecipe(settings, shadows_at_once=16 if weights < MANY_WEIGHTS else 4)


def refit(estimator: Any, records: Dataset, seed: int) -> Any:
    """A scikit-learn estimator's own training: the same parameters, new records."""
    fresh = clone(estimator)
    seeds = {name: seed for name in fresh.get_params() if name.split("__")[-1] == "random_state"}
    return fresh.set_params(**seeds).fit(records.features.reshape(len(records), -1), records.labels)


class Matched(NamedTuple):
    """A recipe, and the mean loss that its pilots reached on their own records."""

    recipe: EngineRecipe | LoopRecipe
    loss: float


def match_epochs(model: nn.Module, training: ShadowTraining, pool: Dataset, target: float, seed: int) -> Matched:
    """The recipe with as many epochs as give shadows a mean loss of at most `target` on their own records.

    Where the learning rate is not named either, the next one is tried where `MOST_EPOCHS` are not enough; the recipe
    that comes closest is taken, and its loss tells whether it fits as closely.
    """
    rates = LEARNING_RATES if training.learning_rate is None else (training.learning_rate,)
    tried: list[Matched] = []
    for rate in rates:
        recipe = suitable_recipe(model, replace(training, learning_rate=rate))
        tried.append(_fit_epochs(recipe, pool, target, seed))
        if tried[-1].loss <= target:
            return tried[-1]
    return min(tried, key=lambda found: found.loss)


def _fit_epochs(recipe: EngineRecipe | LoopRecipe, pool: Dataset, target: float, seed: int) -> Matched:
    """By doubling and bisection, each number of epochs a training of its own: the loss falls with epochs."""
    low, high, found = 0, 1, _pilot(recipe, pool, 1, seed)
    while found.loss > target and high < MOST_EPOCHS:
        low, high = high, min(2 * high, MOST_EPOCHS)
        found = _pilot(recipe, pool, high, seed)
    while found.loss <= target and high - low > max(1, high // 8):
        middle = (low + high) // 2
        fewer = _pilot(recipe, pool, middle, seed)
        low, high, found = (low, middle, fewer) if fewer.loss <= target else (middle, high, found)
    return found


def _pilot(recipe: EngineRecipe | LoopRecipe, pool: Dataset, epochs: int, seed: int) -> Matched:
    half = np.tile(np.arange(len(pool)) < len(pool) // 2, (PILOT_SHADOWS, 1))
    inside = np.random.default_rng([seed, 5]).permuted(half, axis=1)
    asked = replace(recipe, settings=replace(recipe.settings, epochs=epochs))
    models = zip(asked.train(pool, inside, seed, 0), inside, strict=True)
    return Matched(
        asked, float(np.mean([losses(model, pool.take(np.flatnonzero(row))).mean() for model, row in models]))
    )
