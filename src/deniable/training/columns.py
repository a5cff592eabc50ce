"""What dense layers do between matrix products: values are (trials, width, examples), and contiguous.

Each function is one pass over memory where the kernels were built (`_columns.c`), else some torch operations that
give the same to float32 accuracy.
"""

from __future__ import annotations

import ctypes
from operator import lt

import torch
from torch import Tensor
from torch.nn import functional

from deniable.training import kernels

LEAST_SIZES = (8, 16, 16)
"""Rows, inner sizes and columns from which a kernel's product pays for its call."""


def multiply(left: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """`torch.bmm` to contiguous `out`; by a kernel where that is twice as fast as torch's library."""
    rows, inner, width = out.shape[1], left.shape[2], out.shape[2]
    turned = not left.is_contiguous(), not right.is_contiguous()
    if not kernels.faster_products() or any(map(lt, (rows, inner, width), LEAST_SIZES)):
        return torch.bmm(left, right, out=out)
    as_stored = [values.mT if other else values for values, other in zip((left, right), turned, strict=True)]
    if not all(values.is_contiguous() and kernels.suit(values) for values in (*as_stored, out)):
        return torch.bmm(left, right, out=out)
    kernels.call("multiply_each", *as_stored, out, kernels.sizes(len(out), rows, inner, width, *turned))
    return out


def squares(values: Tensor, out: Tensor) -> Tensor:
    """Every example's sum of squares, (trials, examples)."""
    if kernels.KERNELS is not None:
        kernels.call("column_squares", values, out, kernels.sizes(*values.shape))
        return out
    # far faster than a vector_norm over a dimension that is not the last
    return torch.sum(values * values, 1, out=out)


def rectify(values: Tensor, bias: Tensor | None) -> None:
    """The larger of 0 and value plus `bias` (trials, width), in place."""
    if kernels.KERNELS is not None:
        kernels.call("rectify", values, bias, kernels.sizes(*values.shape))
        return
    if bias is not None:
        values.add_(bias.unsqueeze(2))
    values.clamp_(min=0)


def stop(delta: Tensor, outputs: Tensor, out: Tensor) -> Tensor:
    """Set `delta` to zero where `outputs` are not positive; returns the `squares` of what is left."""
    if kernels.KERNELS is not None:
        kernels.call("stop", delta, outputs, out, kernels.sizes(*delta.shape))
        return out
    torch.ops.aten.threshold_backward.grad_input(delta, outputs, 0, grad_input=delta)
    return squares(delta, out)


def weigh(values: Tensor, factors: Tensor, sums: Tensor | None) -> None:
    """Multiply each example's values by its factor (trials, examples), in place; their sums over examples to `sums`."""
    if kernels.KERNELS is not None:
        kernels.call("weigh", values, factors, sums, kernels.sizes(*values.shape))
        return
    values.mul_(factors.unsqueeze(1))
    if sums is not None:
        torch.sum(values, 2, out=sums)


def softmax_minus_class(values: Tensor, labels: Tensor) -> Tensor:
    """Every example's softmax, less 1 at its class (1 or trials, examples), in place."""
    if kernels.KERNELS is not None and labels.dtype == torch.int64:
        kernels.call("softmax_minus_class", values, labels, ctypes.c_long(len(labels)), kernels.sizes(*values.shape))
        return values
    classes = functional.one_hot(labels, values.shape[1]).transpose(1, 2)
    return torch.softmax(values, 1, out=values).sub_(classes)


def multiply_few(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Matrices (trials, width, features) by some columns (1 or trials, features, count)."""
    if kernels.KERNELS is None:
        return _multiply_singly(matrices, vectors)
    products = torch.empty(*matrices.shape[:2], vectors.shape[2], dtype=matrices.dtype)
    counts = ctypes.c_long(len(vectors)), ctypes.c_long(vectors.shape[2])
    kernels.call("multiply_few", matrices, vectors.mT.contiguous(), *counts, products, kernels.sizes(*matrices.shape))
    return products


def _multiply_singly(matrices: Tensor, vectors: Tensor) -> Tensor:
    """MKL is slow on products with two columns, and on matrix-vector products that it takes for a batch."""
    if len(vectors) > 1 or not vectors.shape[2]:
        return matrices @ vectors
    return torch.stack([matrices @ vector for vector in vectors[0].unbind(1)], 2)
