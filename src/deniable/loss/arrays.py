"""Arrays that the loss room passes around, their round-off and product, and functions of complex numbers."""

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


_VANISHED = 2.0**-52  # a moment that has cancelled to nothing
_OFTEN = 0.9  # rates below leave so much of 1 that its digits suffice


def log_mixture(rate: float | Floats, exponent: Numbers) -> Numbers:
    """ln(1 - rate + rate e^exponent), accurate where it is small and where the exponent is large of either sign."""
    big = exponent.real > 30 - np.log(rate)
    if not big.any():
        return _log_mild_mixture(rate, exponent)
    held = np.where(big, exponent, 0.0)
    large = held + np.log(rate + (1 - rate) * np.exp(-held))
    return np.where(big, large, _log_mild_mixture(rate, np.where(big, 0.0, exponent)))


def _log_mild_mixture(rate: float | Floats, exponent: Numbers) -> Numbers:
    """The same where no exponent is large: as a difference from 1, unless little of 1 is left."""
    near = log1p(rate * expm1(exponent))
    if np.max(rate) <= _OFTEN:
        return near
    sunk = (exponent.real < -1) & (np.asarray(rate) > _OFTEN)
    return np.where(sunk, np.log(1 - rate + rate * np.exp(np.where(sunk, exponent, 0.0))), near)


def log1p(x: Numbers) -> Numbers:
    """log(1 + x); NumPy's own loses the real part's digits where a complex x is small."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    squared = x.real * (2 + x.real) + x.imag**2  # |1 + x|^2 - 1
    found = np.empty_like(x)
    small = squared < -0.5  # there 1 + x itself has more digits
    found.real = 0.5 * np.log1p(np.where(small, 0.0, squared))
    if small.any():
        found.real[small] = np.log(np.maximum(np.hypot(1 + x.real[small], x.imag[small]), _VANISHED))
    found.imag = np.arctan2(x.imag, 1 + x.real)
    return found


def expm1(x: Numbers) -> Numbers:
    """e^x - 1; NumPy's own takes twice as long where x is complex."""
    if not np.iscomplexobj(x):
        return np.expm1(x)
    growth, half = np.expm1(x.real), np.tan(x.imag / 2)
    sine = 2 * half / (1 + half * half)
    turned = half * sine  # 1 - cos
    found = np.empty_like(x)
    found.real, found.imag = growth * (1 - turned) - turned, (1 + growth) * sine
    return found
