"""Inputs of which most values are zero, such as one-hot columns, as lists of the others: products skip the zeros."""

from __future__ import annotations

from ctypes import c_long

import torch
from torch import Tensor

from deniable.training import kernels

LARGEST_SHARE = 0.4
"""Of values that are not zero: with more of them a library's dense product is nearly as fast."""
FEWEST_ROWS = 16
"""Of the other matrix, whose rows are the lanes of the kernel's vectors."""
MOST_COUNTED = 2**31 - 1
"""Values that the kernels' lists can count."""


def most_listed(size: int) -> int:
    """So many of `size` values may differ from zero, or lists are not used."""
    return min(int(LARGEST_SHARE * size), MOST_COUNTED)


class ListedInputs:
    """Lists of what is not zero in inputs (features, examples), by examples and by features.

    Products equal the dense ones: one with a weight that is NaN or infinite is NaN where the input is zero, too.
    """

    def __init__(self, inputs: Tensor, by_example: list[Tensor], by_feature: list[Tensor]) -> None:
        self.inputs = inputs
        self._by_example, self._by_feature = by_example, by_feature

    def multiply(self, weights: Tensor, out: Tensor) -> None:
        """Weights (rows, features) times inputs, (rows, examples)."""
        sizes = kernels.sizes(*weights.shape, out.shape[1])
        kernels.call("multiply_listed", weights, *self._by_example, out, sizes)

    def outer(self, deltas: Tensor, out: Tensor) -> None:
        """Deltas (rows, examples) times inputs transposed, (rows, features)."""
        sizes = kernels.sizes(*deltas.shape, out.shape[1])
        kernels.call("multiply_listed", deltas, *self._by_feature, out, sizes)


def list_inputs(inputs: Tensor, rows: int) -> ListedInputs | None:
    """The lists of inputs (features, examples) for products with `rows` rows; None where those would not be faster."""
    if kernels.KERNELS is None or rows < FEWEST_ROWS:
        return None
    features, examples = inputs.shape
    most = most_listed(inputs.numel())
    room, count = most + examples + 1, torch.zeros(1, dtype=torch.int64)
    by_example, by_feature = (
        [torch.empty(length, dtype=kind) for length, kind in zip((ends, room, room), _KINDS, strict=True)]
        for ends in (examples + 1, features + 1)
    )
    sizes = kernels.sizes(features, examples)
    kernels.call("list_values", inputs, *by_example, *by_feature, count, c_long(most), sizes)
    return ListedInputs(inputs, by_example, by_feature) if int(count) <= most else None


_KINDS = (torch.int32, torch.int32, torch.float32)
"""Where each list begins, places, values."""
