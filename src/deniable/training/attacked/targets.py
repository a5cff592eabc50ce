"""Target models: what membership inference attacks. One engine, with and without noise (Bernau 2021b, Section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf

import numpy as np
import torch
from torch import Tensor, nn

from deniable.calibration import calibrate
from deniable.checks import one_of, positive, whole
from deniable.data import Dataset
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, Training
from deniable.promises import Promise
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.training.ensemble import Ensemble, initial_weights
from deniable.training.networks.usual_models import check_fit
from deniable.training.noise_source import RandomSource, SeededSource, SystemSource
from deniable.training.release import fill_model, unpredictable
from deniable.training.settings import Columns, ModelFactory, Optimizer, as_records
from deniable.training.threads import one_thread

LARGEST_BATCH_RECORDS = 4096
"""Records that pass through a trained model at once."""


@dataclass(frozen=True)
class TargetSettings:
    """How a target model is trained; the defaults are Bernau 2021b, Table 2's for Purchases with central noise.

    `noise` is the noise multiplier z: Gaussian noise of standard deviation z x clip on each step's sum of gradients
    clipped to norm `clip`, under add-remove neighbours. With ``noise=0`` neither clipping nor noise is applied: an
    ordinary training, the original and the local-DP row of Bernau 2021b. Batches are Poisson samples of `batch` records
    in expectation; an epoch is as many steps as give every record one expected visit. Training stops once the held-out
    loss has not improved for `patience` epochs (None: never), or after `epochs`.
    """

    model: str | ModelFactory
    noise: float = 0.0
    learning_rate: float = 0.001
    batch: int = 128
    epochs: int = 200
    clip: float = 4.0
    optimizer: Optimizer = "adam"
    patience: int | None = 5

    def __post_init__(self) -> None:
        positive("noise", self.noise, zero=True)
        for name in ("learning_rate", "clip"):
            positive(name, getattr(self, name))
        for name in ("batch", "epochs"):
            whole(name, getattr(self, name))
        if self.patience is not None:
            whole("patience", self.patience)
        one_of("optimizer", self.optimizer, ("sgd", "adam"))

    def rate(self, records: int) -> float:
        """The probability of each of `records` records to be in a batch."""
        return min(1.0, self.batch / whole("records", records))

    def steps(self, records: int, epochs: int | None = None) -> int:
        """How many steps the first `epochs` (default: all) take."""
        return ceil((self.epochs if epochs is None else epochs) / self.rate(records))

    def mechanism(self, records: int, steps: int | None = None) -> Mechanism | None:
        """The release of the first `steps` (default: all) steps' gradients; None without noise: no guarantee."""
        if self.noise == 0:
            return None
        taken = self.steps(records) if steps is None else steps
        return Training(self.noise, self.rate(records), taken, Adjacency.ADD_REMOVE, self.clip).mechanism


def calibrate_settings(settings: TargetSettings, promise: Promise, records: int) -> TargetSettings:
    """The settings with the least noise that keeps the promise over all planned epochs (`dn.calibrate`).

    Early stopping then spends less, never more.
    """

    def release(noise: float) -> Mechanism:
        return replace(settings, noise=noise).mechanism(records) or Gaussian(noise)

    return replace(settings, noise=calibrate(release, promise, Adjacency.ADD_REMOVE).value)


@dataclass(frozen=True)
class ModelQuality:
    """How a model does on a data set."""

    loss: float
    """The mean cross-entropy."""
    accuracy: float


@dataclass(frozen=True)
class Fitted:
    """A trained target model and what its training cost.

    The privacy of the training records is that of the steps taken. Early stopping chooses their number by looking at
    the weights, so a promise made *before* the training is the planned one (`planned_loss`), which holds whenever it
    stops; `spent` is what this very run released. Held-out records are used without protection: they must be public,
    or not part of the promise.
    """

    model: nn.Module
    settings: TargetSettings
    records: int
    steps: int
    history: tuple[ModelQuality, ...]
    """The held-out quality after every epoch."""
    train: ModelQuality
    """On the records as they were given, perturbed ones if they were."""

    @cached_property
    def spent(self) -> PrivacyLoss | None:
        """The exact privacy loss of the steps really taken; None without noise: no guarantee."""
        return _loss(self.settings.mechanism(self.records, self.steps))

    @cached_property
    def planned_loss(self) -> PrivacyLoss | None:
        """The exact privacy loss of all planned epochs, promised whenever the training stops."""
        return _loss(self.settings.mechanism(self.records))

    def epsilon(self, delta: float | None = None) -> float:
        """Epsilon of the steps really taken, delta 1/n unless given (Bernau 2021b, Section 5); inf without noise."""
        return inf if self.spent is None else float(self.spent.epsilon(1 / self.records if delta is None else delta))


def _loss(mechanism: Mechanism | None) -> PrivacyLoss | None:
    return None if mechanism is None else privacy_loss(mechanism, Adjacency.ADD_REMOVE)


@dataclass(frozen=True)
class TargetCourse:
    """The settings as the engine's moves need them."""

    model: str | ModelFactory
    clip: float
    rate: float
    learning_rate: float
    optimizer: Optimizer
    loss: str = "cross-entropy"


def fit(
    settings: TargetSettings,
    train: Dataset,
    validation: Dataset,
    seed: int | None,
    progress: Callable[[int], None] | None = None,
) -> Fitted:
    """Train one target model; early stopping watches `validation`. The weights are those of the last step.

    A `seed` makes weights, batches and noise repeatable on one machine, for audits only; with None they come from the
    operating system's entropy, as for a model to be released. `progress` hears the number of each epoch as it ends.
    """
    if len(validation) == 0 or validation.inputs.shape[1:] != train.inputs.shape[1:]:
        raise ValueError(
            f"validation must hold records of shape {train.inputs.shape[1:]}, got {len(validation)} of "
            f"{validation.inputs.shape[1:]}"
        )
    source: RandomSource = SystemSource() if seed is None else SeededSource(seed, 0, stream=1)
    generator = unpredictable() if seed is None else SeededSource(seed, 0, stream=0).generator
    with one_thread(), torch.no_grad():
        run = _Run(settings, train, source, generator)
        history: list[ModelQuality] = []
        while len(history) < settings.epochs and not _stagnant(history, settings.patience):
            run.advance(settings.steps(len(train), len(history) + 1))
            history.append(quality(run.model(), validation))
            if progress is not None:
                progress(len(history))
        model = run.model()
        return Fitted(model, settings, len(train), run.steps, tuple(history), quality(model, train))


class _Run:
    def __init__(
        self, settings: TargetSettings, train: Dataset, source: RandomSource, generator: torch.Generator
    ) -> None:
        clip = settings.clip if settings.noise else inf
        rate = settings.rate(len(train))
        course = TargetCourse(settings.model, clip, rate, settings.learning_rate, settings.optimizer)
        columns = Columns(*as_records(train.inputs, train.labels), 0)
        self._model, weights = initial_weights(course, 1, generator)
        check_fit(self._model, columns.records[:2], train.classes)
        self._ensemble = Ensemble(course, self._model, weights, columns, source)
        self._sigma = torch.tensor([settings.noise * settings.clip])
        self.steps = 0

    def advance(self, until: int) -> None:
        """Steps up to the given number."""
        while self.steps < until:
            self._ensemble.draw_batch(torch.empty(1, 0))
            self._ensemble.sum_gradients()
            if self._sigma > 0:
                self._ensemble.add_noise(self._sigma)
            self._ensemble.apply()
            self.steps += 1

    def model(self) -> nn.Module:
        """The model as trained so far."""
        return fill_model(self._model, self._ensemble)


def _stagnant(history: list[ModelQuality], patience: int | None) -> bool:
    """Whether the best loss is `patience` epochs old."""
    losses = [epoch.loss for epoch in history]
    return patience is not None and len(losses) > patience and len(losses) - 1 - int(np.argmin(losses)) >= patience


def quality(model: nn.Module, dataset: Dataset) -> ModelQuality:
    """Mean loss and accuracy of a model on a data set."""
    loss, right = 0.0, 0
    for start in range(0, len(dataset), LARGEST_BATCH_RECORDS):
        rows = slice(start, start + LARGEST_BATCH_RECORDS)
        outputs, labels = _outputs(model, dataset, rows), torch.from_numpy(dataset.labels[rows])
        loss += float(nn.functional.cross_entropy(outputs, labels, reduction="sum"))
        right += int((outputs.argmax(1) == labels).sum())
    return ModelQuality(loss / len(dataset), right / len(dataset))


def _outputs(model: nn.Module, dataset: Dataset, rows: slice) -> Tensor:
    with torch.no_grad():
        return model(torch.from_numpy(dataset.inputs[rows]))  # type: ignore[no-any-return]
