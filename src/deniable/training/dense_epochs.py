"""Epochs of many models of one dense network, each on its own records, in one kernel call (`_epochs.c`)."""

from __future__ import annotations

from ctypes import c_float, c_long

import torch
from torch import Tensor, nn

from deniable.training import kernels
from deniable.training.builder import known_layers
from deniable.training.networks.layers import Dense, Flatten
from deniable.training.networks.listed import most_listed
from deniable.training.networks.losses import check_classes, cross_entropy, loss_function
from deniable.training.settings import Columns, Course

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
