"""Names for the arrays that the loss room passes around, their round-off, and their product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

EPS = 2.2e-16  # twice the relative round-off of one operation, 1.1e-16

Floats = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]
Numbers = Floats | Complexes

_ONE_THREAD = 2**16 - 1  # multiplications in one product of matrices, ...
_ONE_THREAD_VECTOR = 2**12 - 1  # ... and in one with a vector, up to which OpenBLAS wakes no other thread
_ROWS = _ONE_THREAD // _ONE_THREAD_VECTOR


def multiply(left: Numbers, right: Numbers) -> Any:
    """left @ right, of vectors or (stacks of) matrices, without other threads.

    For larger products OpenBLAS wakes other threads and waits for them: on busy cores 20 ms in place of 20 us.
    """
    if left.ndim == 1 or right.ndim == 1:
        rows = "i" if left.ndim == 1 else "...i"
        return np.einsum(f"{rows},{'i' if right.ndim == 1 else 'i...'}->...", left, right)
    width, height, depth = right.shape[-1], left.shape[-2], left.shape[-1]
    if width * height * depth <= (_ONE_THREAD if min(width, height) > 1 else _ONE_THREAD_VECTOR):
        return left @ right
    if width > height:
        return multiply(right.swapaxes(-1, -2), left.swapaxes(-1, -2)).swapaxes(-1, -2)
    deep = max(_ONE_THREAD_VECTOR // max(width, _ROWS), 1)
    return np.concatenate(
        [_sum_products(left[..., at : at + _ROWS, :], right, deep) for at in range(0, height, _ROWS)], axis=-2
    )


def _sum_products(left: Numbers, right: Numbers, deep: int) -> Any:
    """left @ right, so many terms of its sums at a time."""
    depth = left.shape[-1]
    found = left[..., :deep] @ right[..., :deep, :]
    for at in range(deep, depth, deep):
        found += left[..., at : at + deep] @ right[..., at : at + deep, :]
    return found
