"""Many models of one recipe at once, each trained on its own part of the same records: shadow models.

Epochs of dense networks are one kernel call (`_epochs.c`).

"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_float, c_long
from math import ceil, inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deniable.data import Dataset
from deniable.training import kernels
from deniable.training.attacked.targets import TargetCourse, TargetSettings
from deniable.training.ensemble import Ensemble, initial_weights
from deniable.training.kernels import split_like
from deniable.training.networks.layers import Dense, Flatten
from deniable.training.networks.listed import most_listed
from deniable.training.networks.losses import check_classes, cross_entropy, loss_function
from deniable.training.networks.usual_models import check_fit
from deniable.training.noise_source import RandomSource, SeededSource
from deniable.training.release import fill_model
from deniable.training.settings import Columns, Course, as_records
from deniable.training.stack import known_layers
from deniable.training.threads import one_thread

LANES = 8
"""Widths are padded to multiples of this with units whose weights are zero and stay so."""


def dense_network(course: Course, model: nn.Module, weights: list[Tensor], records: Tensor) -> list[Dense] | None:
    """The layers if the kernel knows them: dense, ReLU between them, cross-entropy."""
    if kernels.KERNELS is None or not kernels.suit(records, *weights):
        return None
    layers = known_layers(model, weights, records[0], shared=False)
    if layers is None or loss_function(course.loss) is not cross_entropy:
        return None
    dense = [layer for layer in layers if isinstance(layer, Dense)]
    if not isinstance(layers[0], Flatten) or len(dense) + 1 != len(layers):
        return None
    return dense if all(layer.relu for layer in dense[:-1]) and not dense[-1].relu else None


class DenseEpochs:
    """Moves the weights of all models, without clipping or noise, by Adam or plain gradients.

    Guarantee: the same as of the layers' sums and the optimizer step by step, to float32 accuracy.
    """

    def __init__(self, course: Course, layers: list[Dense], columns: Columns, batch: int) -> None:
        """Batches have `batch` records, or what is left of an epoch; a step goes along their mean."""
        records = columns.records.flatten(1).contiguous()
        self._course, self._layers, self._batch, self._steps = course, layers, batch, 0
        classes = layers[-1].weights[0].shape[1]
        check_classes(columns.labels, classes)
        lists = _list_records(records)
        self._most = int(lists[0].diff().sort().values[-batch:].sum()) if lists else 0
        dense: list[Tensor | None] = [records, None, None, None]
        self._records = [*([None, *lists] if lists else dense), columns.labels.contiguous()]
        self._values = [_pack(layers), *(torch.zeros_like(_pack(layers)) for _ in range(2))]
        widths = [_pad_to_lanes(layer.weights[0].shape[1]) for layer in layers]
        biased = [len(layer.weights) == 2 for layer in layers]
        self._sizes = bool(lists), course.optimizer == "adam", classes, len(layers), *widths, *biased
        self._features = records.shape[1]

    def run(self, order: Tensor, batches: int) -> None:
        """The next steps of all models; order (models, places) has the records of one batch after the other."""
        order = order.contiguous()
        sizes = kernels.sizes(len(order), self._features, self._batch, batches, order.shape[1], *self._sizes)
        rate = c_float(float(self._course.learning_rate))
        known = kernels.addresses(*self._records), order, kernels.addresses(*self._values)
        kernels.call("train_epochs", *known, rate, sizes, c_long(self._most), c_long(self._steps + 1))
        self._steps += batches

    def store(self) -> None:
        """Write the weights to where the layers have them."""
        start = 0
        for layer in self._layers:
            inputs, width = _shape(layer, self._layers)
            turned = self._values[0][:, start : start + (inputs + 1) * width].view(-1, inputs + 1, width)
            units, features = layer.weights[0].shape[1:]
            layer.weights[0].copy_(turned[:, :features, :units].mT)
            if len(layer.weights) == 2:
                layer.weights[1].copy_(turned[:, inputs, :units])
            start += (inputs + 1) * width


def _pad_to_lanes(width: int) -> int:
    return -(-width // LANES) * LANES


def _shape(layer: Dense, layers: list[Dense]) -> tuple[int, int]:
    """Inputs and units as the kernel has them."""
    units, features = layer.weights[0].shape[1:]
    return features if layer is layers[0] else _pad_to_lanes(features), _pad_to_lanes(units)


def _pack(layers: list[Dense]) -> Tensor:
    """(models, values): each layer's weights, turned and padded, and below them its bias, or zeros."""
    parts = []
    for layer in layers:
        inputs, width = _shape(layer, layers)
        models, units, features = layer.weights[0].shape
        turned = torch.zeros(models, inputs + 1, width)
        turned[:, :features, :units] = layer.weights[0].mT
        if len(layer.weights) == 2:
            turned[:, inputs, :units] = layer.weights[1]
        parts.append(turned.flatten(1))
    return torch.cat(parts, 1).contiguous()


def _list_records(records: Tensor) -> list[Tensor] | None:
    """Where each record's list begins, and the places and values of what is not zero; None for dense records."""
    there = records != 0  # NaN, too
    counts = there.sum(1)
    if int(counts.sum()) > most_listed(records.numel()):
        return None
    start = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    return [start.int(), there.nonzero()[:, 1].int(), records[there].contiguous()]


def train_subsets(
    settings: TargetSettings, records: Dataset, inside: NDArray[np.bool_], *, seed: int, block: int, steps: int
) -> Iterator[nn.Module]:
    """One model for each row of `inside` (models, records), trained on the records that the row names.

    They are yielded one after the other as one module, which holds a model's weights until the next is asked for.

    The recipe is the target's: with noise, Poisson batches, clipping and noise as `fit` has them; without noise,
    batches of `settings.batch` records by shuffling, epoch after epoch. The result depends on the arguments alone. For
    audits only: everything is drawn from the seed.
    """
    with one_thread(), torch.no_grad():
        columns = Columns(*as_records(records.inputs, records.labels), 0)
        course = _course(settings, inside, "squared-error" if records.regression else "cross-entropy")
        source = SeededSource(seed, block, stream=1)
        model, weights = initial_weights(course, len(inside), SeededSource(seed, block, stream=0).generator)
        check_fit(model, columns.records[:2], max(1, records.classes))
        kind = _PoissonSubsets if settings.noise else _ShuffledSubsets
        models = kind(course, model, weights, columns, source=source, inside=torch.from_numpy(inside))
        models.train(steps, settings.noise * settings.clip if settings.noise else 0.0)
    for number in range(len(inside)):
        yield fill_model(model, models, number)


def _course(settings: TargetSettings, inside: NDArray[np.bool_], loss: str = "cross-entropy") -> TargetCourse:
    sizes = inside.sum(1)
    if len(set(sizes.tolist())) != 1 or sizes[0] == 0:
        raise ValueError(f"inside must name equally many records for every model, got {sizes.min()} to {sizes.max()}")
    clip, rate = settings.clip if settings.noise else inf, settings.rate(int(sizes[0]))
    return TargetCourse(settings.model, clip, rate, settings.learning_rate, settings.optimizer, loss)


class _Subsets(Ensemble):
    """Batches are drawn from each model's own records."""

    def __init__(
        self,
        course: TargetCourse,
        model: nn.Module,
        weights: list[Tensor],
        columns: Columns,
        *,
        source: RandomSource,
        inside: Tensor,
    ) -> None:
        self._flat_weights = torch.cat([values.flatten() for values in weights])
        super().__init__(course, model, split_like(self._flat_weights, weights), columns, source)
        self._flat_sums = torch.zeros_like(self._flat_weights)
        self.sums = split_like(self._flat_sums, weights)
        self._inside = inside
        self._places = inside.nonzero()[:, 1].view(len(inside), -1)
        self._members = self._places.shape[1]
        self._count = course.rate * self._members

    def train(self, steps: int, sigma: float) -> None:
        """So many steps, with noise of standard deviation `sigma` on each sum."""
        models = len(self._inside)
        for _ in range(steps):
            self.draw_batch(torch.empty(models, 0))
            self.sum_gradients()
            if sigma:
                self.add_noise(torch.full((models,), sigma))
            self.apply()

    def apply(self) -> None:
        """All weights are one row of memory: the optimizer's few passes over it cost little for small networks."""
        self._updater.apply([self._flat_weights], [self._flat_sums], self._count)


class _PoissonSubsets(_Subsets):
    def _draw_members(self) -> Tensor:
        drawn = self._source.uniform(*self._inside.shape) < self._settings.rate
        return drawn.logical_and_(self._inside).float()


class _ShuffledSubsets(_Subsets):
    """Every epoch in a new order; its last batch has what is left, as that of a torch `DataLoader`."""

    _left: tuple[Tensor, ...] = ()
    """The epoch's batches that are still to come."""

    def train(self, steps: int, sigma: float) -> None:
        """An epoch of a dense network is one kernel call; its draws are those of `draw_batch`."""
        layers = dense_network(self._settings, self.model, self.weights, self._records)
        if layers is None:
            super().train(steps, sigma)
            return
        epochs = DenseEpochs(self._settings, layers, Columns(self._records, self._labels, 0), self._size)
        batches = ceil(self._members / self._size)
        for done in range(0, steps, batches):
            epochs.run(self._draw_order(), min(batches, steps - done))
        epochs.store()

    @property
    def _size(self) -> int:
        return max(1, round(self._settings.rate * self._members))

    def _draw_order(self) -> Tensor:
        """Each model's records in the order of an epoch, (models, records)."""
        keys = self._source.uniform(*self._places.shape).numpy()
        return self._places.gather(1, torch.from_numpy(keys.argsort(1)))  # twice as fast as torch's

    def draw_batch(self, members: Tensor) -> Tensor:
        """The next batch; where batches are small, copied together by the places of its records."""
        places = self._draw_places()
        self._count = places.shape[1]
        if self._shared:
            self._include = torch.zeros(self._inside.shape).scatter_(1, places, 1.0)
        else:
            self._include = self._everybody[:, : places.shape[1]]
            drawn = self._records.index_select(0, places.flatten())
            self.gradients.load(drawn.view(*places.shape, *drawn.shape[1:]), self._labels[places])
        return members

    def _draw_places(self) -> Tensor:
        """The records of each model's batch, (models, batch)."""
        now, *left = self._left or torch.split(self._draw_order(), self._size, 1)
        self._left = tuple(left)
        return now
