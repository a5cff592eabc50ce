"""Dense networks with few weights behind the first layer: everything between its two products in one kernel.

The kernel (`_narrow.c`) takes sixteen examples at a time through all layers, forward and backward; torch needs a pass
over memory for each of two dozen operations, which cost more than the products of small layers.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from deniable.training import kernels
from deniable.training.networks.layers import Dense, Layer
from deniable.training.networks.losses import Loss, cross_entropy

MOST_WEIGHTS = 512
"""Of the layers behind the first one: the kernel keeps eight sums of each in the first cache."""


def narrow_pass(layers: list[Layer], loss: Loss) -> NarrowPass | None:
    """The pass through these layers if the kernel knows them: dense, with ReLU between them, and cross-entropy."""
    dense = [layer for layer in layers if isinstance(layer, Dense)]
    if kernels.KERNELS is None or loss is not cross_entropy or not 2 <= len(dense) == len(layers):
        return None
    behind = sum(layer.weights[0][0].numel() for layer in dense[1:])
    rectified = [layer.relu for layer in dense]
    return NarrowPass(dense) if behind <= MOST_WEIGHTS and all(rectified[:-1]) and not rectified[-1] else None


class NarrowPass:
    """Sums of clipped gradients of all layers, for one wave of trials at a time; examples are a multiple of 16."""

    def __init__(self, layers: list[Dense]) -> None:
        self._layers = layers
        self.widths = [layer.weights[0].shape[1] for layer in layers]
        self.biased = [len(layer.weights) == 2 for layer in layers]

    def load(self, labels: Tensor) -> None:
        """The labels (1 or trials, examples), known to be class numbers."""
        self._labels = labels.contiguous()

    def sum_wave(
        self, trials: slice, inputs: Tensor, include: Tensor, clipping: Clipping | None, out: list[list[Tensor]]
    ) -> None:
        """Each layer's sums over examples, weighed by `include` (trials, examples), go into `out`."""
        first = self._layers[0]
        values = first.multiply(inputs, None)
        labels = self._labels if len(self._labels) == 1 else self._labels[trials]
        squares = first.input_squares() if clipping else None
        own = int(len(labels) > 1), int(squares is not None and len(squares) > 1)
        sizes = kernels.sizes(len(values), len(self.widths), values.shape[2], *own, *self.widths)
        pairs = zip(self._layers, out, strict=True)
        pointers = kernels.addresses(*(tensor for layer, sums in pairs for tensor in _four(layer, sums)))
        kernels.call("narrow_pass", values, pointers, labels, squares, include, *(clipping or [None] * 3), sizes)
        first.outer(values, out[0][0])


class Clipping(NamedTuple):
    """What is clipped, and where norms before clipping and factors go: (trials,), (trials, examples) twice."""

    clip: Tensor
    norms: Tensor
    factors: Tensor


def _four(layer: Dense, sums: list[Tensor]) -> list[Tensor | None]:
    """Weights, bias and the sums of their gradients; None where there is no bias."""
    missing: list[Tensor | None] = [None] * (2 - len(sums))
    return [*layer.now, *missing, *sums, *missing]
