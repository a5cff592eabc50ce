"""How unlike two records are: the definitions, and kernels that compare all records of two blocks at once.

Every measure has a definition (readable, in double precision, pair by pair) and a kernel (fast, all pairs of two
blocks) with a bound on the difference between the two. The search uses the kernel to rule pairs out and the definition
to decide among the rest, so its result is the definition's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.data.files import extra
from deniable.data.ssim import StructuralKernel, negative_ssim

Array = NDArray[np.floating]


class Kernel(Protocol):
    """Compares all records of a left block with all of a right one, each prepared once.

    `error` bounds |kernel - definition| for every pair; `record_bytes` is the memory of one prepared record.
    """

    error: float
    record_bytes: int

    def left(self, records: Array) -> Any: ...

    def right(self, records: Array) -> Any: ...

    def compare(self, left: Any, right: Any) -> Array: ...


@dataclass(frozen=True)
class Measure:
    """A dissimilarity by its definition on paired records and the kernel for given sets of records."""

    paired: Callable[[Array, Array], NDArray[np.float64]]
    kernel: Callable[[Array, Array], Kernel]


def dissimilarity(measure: str, x: Array, y: Array) -> NDArray[np.float64]:
    """The dissimilarity of x[i] and y[i] for every i, by definition and in double precision.

    `ssim`: negative structural similarity of images with pixels from 0 to 1. `euclidean`, `manhattan` and `cosine`
    (one minus the cosine of the angle) as usual, `hamming` the number of features that differ; images are flattened.
    """
    return find_measure(measure).paired(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))


def find_measure(measure: str) -> Measure:
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}")
    return MEASURES[measure]


def flat(records: Array) -> Array:
    return records.reshape(len(records), -1)


def euclidean(x: Array, y: Array) -> NDArray[np.float64]:
    return np.sqrt(_total(np.square(x - y)))


def manhattan(x: Array, y: Array) -> NDArray[np.float64]:
    return _total(np.abs(x - y))


def hamming(x: Array, y: Array) -> NDArray[np.float64]:
    return _total((x != y).astype(np.float64))


def cosine(x: Array, y: Array) -> NDArray[np.float64]:
    return np.clip(1 - _total(x * y) / (_lengths(x) * _lengths(y)), 0, 2)


def _total(values: Array) -> NDArray[np.float64]:
    totals: NDArray[np.float64] = flat(values).sum(axis=1)
    return totals


def _lengths(records: Array) -> NDArray[np.float64]:
    lengths = np.sqrt(_total(np.square(records)))
    if not lengths.all():
        raise ValueError("cosine is undefined for a record of zeros only: leave it out or use another measure")
    return lengths


class EuclideanKernel:
    """|x|^2 + |y|^2 - 2 x.y by matrix product in double precision."""

    def __init__(self, left: Array, right: Array) -> None:
        width = flat(left[:1]).size
        longest = max(_longest(left), _longest(right))
        # The rounding of each of the three terms is at most (width + 1) eps times the longest squared length,
        # and a root moves at most by the root of what is under it.
        self.error = float(np.sqrt(8 * (width + 2) * np.finfo(np.float64).eps) * longest)
        self.record_bytes = 8 * width

    def left(self, records: Array) -> tuple[Array, Array]:
        values = flat(records).astype(np.float64)
        return values, np.square(values).sum(axis=1)

    right = left

    def compare(self, left: tuple[Array, Array], right: tuple[Array, Array]) -> Array:
        squares = left[0] @ right[0].T
        squares *= -2
        squares += left[1][:, None]
        squares += right[1]
        return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


class CosineKernel:
    """One minus the product of normalised records, in double precision."""

    def __init__(self, left: Array, right: Array) -> None:
        width = flat(left[:1]).size
        self.error = 8 * (width + 4) * float(np.finfo(np.float64).eps)
        self.record_bytes = 8 * width

    def left(self, records: Array) -> Array:
        values = flat(records).astype(np.float64)
        values /= _lengths(values)[:, None]
        return values

    right = left

    def compare(self, left: Array, right: Array) -> Array:
        product = left @ right.T
        return np.subtract(1, product, out=product)


class CountingKernel:
    """Hamming and Manhattan: bits by matrix product, other columns by SciPy's `cdist`.

    On columns of zeros and ones both count the positions that differ, |x| + |y| - 2 x.y; these are whole numbers, exact
    in single precision up to 2^24 columns. One-hot tables such as Adult are nearly all bits.
    """

    def __init__(self, left: Array, right: Array, metric: str) -> None:
        self.bits = _bit_columns(flat(left)) & _bit_columns(flat(right))
        self.metric = metric
        width, rest = self.bits.size, int(np.count_nonzero(~self.bits))
        largest = width + 2 * rest * max(float(np.abs(left).max()), float(np.abs(right).max()))
        whole_numbers = metric == "hamming" or rest == 0
        self.error = 0.0 if whole_numbers else 2 * (width + 2) * largest * float(np.finfo(np.float64).eps)
        self.record_bytes = 8 * width

    def left(self, records: Array) -> tuple[Array, Array, Array]:
        values = flat(records)
        bits = values[:, self.bits].astype(np.float32)
        return bits, bits.sum(axis=1), values[:, ~self.bits].astype(np.float64)

    right = left

    def compare(self, left: tuple[Array, Array, Array], right: tuple[Array, Array, Array]) -> Array:
        differ = left[0] @ right[0].T
        differ *= -2
        differ += left[1][:, None]
        differ += right[1]
        return differ if self.bits.all() else self._others(left[2], right[2]) + differ

    def _others(self, left: Array, right: Array) -> Array:
        distances: Array = extra("scipy.spatial.distance").cdist(left, right, self.metric)
        # cdist gives the share of positions that differ, hamming here is their number
        return np.rint(distances * left.shape[1]) if self.metric == "hamming" else distances


def _longest(records: Array) -> float:
    values = flat(records)
    return float(np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64).max()))


def _bit_columns(values: Array) -> NDArray[np.bool_]:
    bits = np.ones(values.shape[1], dtype=bool)
    for start in range(0, len(values), 4096):
        rows = values[start : start + 4096]
        bits &= np.all((rows == 0) | (rows == 1), axis=0)
    return bits


MEASURES = {
    "ssim": Measure(negative_ssim, StructuralKernel),
    "euclidean": Measure(euclidean, EuclideanKernel),
    "hamming": Measure(hamming, lambda left, right: CountingKernel(left, right, "hamming")),
    "manhattan": Measure(manhattan, lambda left, right: CountingKernel(left, right, "cityblock")),
    "cosine": Measure(cosine, CosineKernel),
}
"""Every measure by name."""
