"""Structural similarity of images (Wang et al. 2004), as scikit-image defines it by default.

Windows of 7 x 7 pixels, all alike in weight, wholly inside the image; sample covariances (divided by 48); K1 = 0.01,
K2 = 0.03, data range 1.0; the mean over all windows (and channels).
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.floating]

WINDOW = 7
PIXELS = WINDOW * WINDOW
C1 = 0.01**2
C2 = 0.03**2


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
