"""How unlike two records are: the definitions, and kernels that compare all records of two blocks at once.

Every measure has a definition (readable, in double precision, pair by pair) and a kernel (fast, all pairs of two
blocks) with a bound on the difference between the two. The search uses the kernel to rule pairs out and the definition
to decide among the rest, so its result is the definition's.

Structural similarity of images (Wang et al. 2004) is as scikit-image defines it by default. Windows of 7 x 7 pixels,
all alike in weight, wholly inside the image; sample covariances (divided by 48); K1 = 0.01, K2 = 0.03, data range 1.0;
the mean over all windows (and channels).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from deniable.data.files import extra

Array = NDArray[np.floating]

WINDOW = 7
PIXELS = WINDOW * WINDOW
C1 = 0.01**2
C2 = 0.03**2


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


def negative_ssim(x: Array, y: Array) -> NDArray[np.float64]:
    """Minus the structural similarity of the images x[i] and y[i]: -1 for the same image, above 0 for opposites."""
    p, q = (
        sliding_window_view(_check_images(images), (WINDOW, WINDOW), axis=(-2, -1)).reshape(len(images), -1, PIXELS)
        for images in (x, y)
    )
    mean_p, mean_q = p.mean(axis=-1), q.mean(axis=-1)
    p, q = p - mean_p[..., None], q - mean_q[..., None]
    var_p, var_q, covariance = ((a * b).sum(axis=-1) / (PIXELS - 1) for a, b in ((p, p), (q, q), (p, q)))
    luminance = (2 * mean_p * mean_q + C1) / (mean_p**2 + mean_q**2 + C1)
    structure = (2 * covariance + C2) / (var_p + var_q + C2)
    similarity: NDArray[np.float64] = (luminance * structure).mean(axis=-1)
    return -similarity


def are_pixels(records: Array) -> bool:
    """Whether structural similarity is defined for these: images that are large enough, with pixels from 0 to 1."""
    try:
        _check_images(records)
    except ValueError:
        return False
    return True


def _check_images(images: Array) -> Array:
    if images.ndim not in (3, 4) or min(images.shape[-2:]) < WINDOW:
        raise ValueError(
            f"ssim needs images of at least {WINDOW} x {WINDOW} pixels, height and width last, got shape {images.shape}"
        )
    if images.size and not (images.min() >= 0 and images.max() <= 1):
        raise ValueError(f"ssim needs pixels from 0 to 1, got {images.min()} to {images.max()}: scale them first")
    return images


class StructuralKernel:
    """All pairs by matrix products in single precision, one set of products a window.

    With centred windows p and q (49 pixels each) the similarity in one window is

        (2 mean_p mean_q + C1) (2 cov + C2) / ((mean_p^2 + mean_q^2 + C1) (var_p + var_q + C2)),

    and each of (2 mean mean + C1), (2 cov + C2) and the whole denominator is a dot product of a vector of the left
    image and one of the right, of length 2, 50 and 4. Written by hand because scikit-image compares one pair at a time.
    """

    def __init__(self, left: Array, right: Array) -> None:
        shape = _check_images(left).shape
        _check_images(right)
        self.windows = int(np.prod(shape[1:-2])) * (shape[-2] - WINDOW + 1) * (shape[-1] - WINDOW + 1)
        # Relative rounding (u = eps / 2): means 50 u each in four places, variances 52 u, covariances 52 u of the
        # variances, products 10 u; the running sum adds windows * u. Together below (windows + 200) eps.
        self.error = (self.windows + 200) * float(np.finfo(np.float32).eps)
        self.record_bytes = 4 * self.windows * (PIXELS + 1 + 2 + 4)

    def left(self, images: Array) -> tuple[Array, Array, Array]:
        p, mean, variance = self._centre(images)
        p[:, :PIXELS] *= 2 / (PIXELS - 1)
        p[:, PIXELS] = C2
        one, b, d = np.ones_like(mean), mean**2 + np.float32(C1), variance + np.float32(C2)
        return p, np.stack([2 * mean, C1 * one], axis=1), np.stack([b * d, b, d, one], axis=1)

    def right(self, images: Array) -> tuple[Array, Array, Array]:
        q, mean, variance = self._centre(images)
        q[:, PIXELS] = 1
        one, b = np.ones_like(mean), mean**2
        return q, np.stack([mean, one], axis=1), np.stack([one, variance, b, b * variance], axis=1)

    def _centre(self, images: Array) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """(windows, 50, images) with a free last row, means and variances; images last, so that all loops are long."""
        pixels = np.ascontiguousarray(np.moveaxis(images, 0, -1), dtype=np.float32)
        view = sliding_window_view(pixels, (WINDOW, WINDOW), axis=(-3, -2))
        centred = np.empty((self.windows, PIXELS + 1, len(images)), dtype=np.float32)
        centred[:, :PIXELS] = np.moveaxis(view, -3, -1).reshape(self.windows, PIXELS, len(images))
        patches = centred[:, :PIXELS]
        mean = patches.mean(axis=1)
        patches -= mean[:, None]
        return centred, mean, np.einsum("wpi,wpi->wi", patches, patches) / np.float32(PIXELS - 1)

    def compare(self, left: tuple[Array, Array, Array], right: tuple[Array, Array, Array]) -> Array:
        shape = left[0].shape[-1], right[0].shape[-1]
        total, term, factor = (np.zeros(shape, dtype=np.float32) for _ in range(3))
        for cov_p, mean_p, low_p, cov_q, mean_q, low_q in zip(*left, *right, strict=True):
            np.matmul(cov_p.T, cov_q, out=term)
            np.matmul(mean_p.T, mean_q, out=factor)
            term *= factor
            np.matmul(low_p.T, low_q, out=factor)
            term /= factor
            total -= term
        total /= self.windows
        return total


MEASURES = {
    "ssim": Measure(negative_ssim, StructuralKernel),
    "euclidean": Measure(euclidean, EuclideanKernel),
    "hamming": Measure(hamming, lambda left, right: CountingKernel(left, right, "hamming")),
    "manhattan": Measure(manhattan, lambda left, right: CountingKernel(left, right, "cityblock")),
    "cosine": Measure(cosine, CosineKernel),
}
"""Every measure by name."""
