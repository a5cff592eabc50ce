"""Every measure against readable loops, outside libraries and its own kernel's error bound."""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance

from deniable.data import MEASURES, digits, dissimilarity

SCIPY = {
    "euclidean": distance.euclidean,
    "manhattan": distance.cityblock,
    "cosine": distance.cosine,
    "hamming": lambda x, y: len(x) * distance.hamming(x, y),
}


def loop_ssim(x: np.ndarray, y: np.ndarray) -> float:
    """The formula of Wang et al. 2004 in plain Python, window by window."""
    values = []
    for top in range(x.shape[0] - 6):
        for left in range(x.shape[1] - 6):
            p = [float(v) for v in x[top : top + 7, left : left + 7].ravel()]
            q = [float(v) for v in y[top : top + 7, left : left + 7].ravel()]
            mean_p, mean_q = fsum(p) / 49, fsum(q) / 49
            var_p = fsum((v - mean_p) ** 2 for v in p) / 48
            var_q = fsum((v - mean_q) ** 2 for v in q) / 48
            covariance = fsum((v - mean_p) * (w - mean_q) for v, w in zip(p, q, strict=True)) / 48
            luminance = (2 * mean_p * mean_q + 0.01**2) / (mean_p**2 + mean_q**2 + 0.01**2)
            values.append(luminance * (2 * covariance + 0.03**2) / (var_p + var_q + 0.03**2))
    return fsum(values) / len(values)


def images(seed: int, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Flat, noisy, binary and smooth images: each stresses another part of the formula."""
    generator = np.random.default_rng(seed)
    noise = generator.random((count, *shape), dtype=np.float32)
    contrast = generator.choice([0.0, 1e-3, 1.0], (count,) + (1,) * len(shape))
    picture = generator.random((count,) + (1,) * len(shape)) * (1 - contrast) + contrast * noise
    picture[::3] = noise[::3] > 0.8
    return picture.astype(np.float32)


def test_ssim_is_the_formula() -> None:
    x, y = images(0, 12, (9, 8)), images(1, 12, (9, 8))
    expected = [-loop_ssim(a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(dissimilarity("ssim", x, y), expected, atol=1e-13)


@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (7, 11), (3, 9, 9)])
def test_ssim_is_scikit_images(shape: tuple[int, ...]) -> None:
    metrics = pytest.importorskip("skimage.metrics", reason="scikit-image is not installed")
    x, y = images(2, 10, shape).astype(float), images(3, 10, shape).astype(float)
    channel = 0 if len(shape) == 3 else None
    expected = [
        -metrics.structural_similarity(a, b, data_range=1.0, channel_axis=channel) for a, b in zip(x, y, strict=True)
    ]
    np.testing.assert_allclose(dissimilarity("ssim", x, y), expected, atol=1e-11)


def test_ssim_of_known_images() -> None:
    black, white = np.zeros((1, 8, 8)), np.ones((1, 8, 8))
    assert dissimilarity("ssim", white, white)[0] == pytest.approx(-1)
    assert dissimilarity("ssim", black, white)[0] == pytest.approx(-1e-4 / (1 + 1e-4))
    checks = np.indices((8, 8)).sum(axis=0, keepdims=True) % 2
    assert dissimilarity("ssim", checks, 1 - checks)[0] > 0.99


@pytest.mark.parametrize("measure", SCIPY)
def test_measures_are_scipys(measure: str) -> None:
    generator = np.random.default_rng(4)
    x, y = generator.normal(size=(2, 20, 13))
    x[:, ::2] = y[:, ::2]
    expected = [SCIPY[measure](a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(dissimilarity(measure, x, y), expected, rtol=1e-12, atol=1e-15)


def test_plain_distances_flatten_images() -> None:
    x, y = digits().features[:5], digits().features[5:10]
    assert dissimilarity("euclidean", x, y)[0] == pytest.approx(sqrt(float(((x[0] - y[0]) ** 2).sum())))


@given(seed=st.integers(0, 2**32), measure=st.sampled_from(sorted(MEASURES)))
def test_symmetry_bounds_and_identity(seed: int, measure: str) -> None:
    x, y = images(seed, 6, (8, 7)), images(seed + 1, 6, (8, 7))
    x[:, 0, 0] = y[:, 0, 0] = 1  # no all-zero records: cosine has no value there
    forth, back, self = (dissimilarity(measure, a, b) for a, b in ((x, y), (y, x), (x, x)))
    np.testing.assert_array_equal(forth, back)
    low, high = {"ssim": (-1, 1), "cosine": (0, 2), "hamming": (0, 56)}.get(measure, (0, np.inf))
    assert np.all((forth >= low - 1e-12) & (forth <= high + 1e-12))
    np.testing.assert_allclose(self, low, atol=1e-12)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    measure=st.sampled_from(sorted(MEASURES)),
    shape=st.sampled_from([(8, 7), (2, 7, 9), (15, 13)]),
)
def test_kernels_keep_their_error_bound(seed: int, measure: str, shape: tuple[int, ...]) -> None:
    left, right = images(seed, 7, shape), images(seed + 1, 5, shape)
    left[:, ..., 0, 0] = right[:, ..., 0, 0] = 1
    kernel = MEASURES[measure].kernel(left, right)
    fast = kernel.compare(kernel.left(left), kernel.right(right))
    i, j = (index.ravel() for index in np.indices(fast.shape))
    exact = dissimilarity(measure, left[i], right[j]).reshape(fast.shape)
    assert np.abs(fast - exact).max() <= kernel.error
    assert kernel.error < 1e-3


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
@pytest.mark.parametrize("measure", sorted(SCIPY))
def test_tables_of_any_scale_keep_the_error_bound(measure: str, scale: float) -> None:
    generator = np.random.default_rng(5)
    left, right = (generator.normal(size=(9, 6)).astype(np.float32) for _ in range(2))
    left[:, :3] *= np.float32(scale)
    right[:, :3] *= np.float32(scale)
    left[:, 3:5], right[:, 3:5] = left[:, 3:5] > 0, right[:, 3:5] > 0
    left[:, 5] = left[:, 5] > 0  # bits on one side only
    kernel = MEASURES[measure].kernel(left, right)
    fast = kernel.compare(kernel.left(left), kernel.right(right))
    i, j = (index.ravel() for index in np.indices(fast.shape))
    assert np.abs(fast.ravel() - dissimilarity(measure, left[i], right[j])).max() <= kernel.error


def test_bad_records_are_refused() -> None:
    with pytest.raises(ValueError, match=r"ssim needs images of at least 7 x 7 pixels, .* got shape \(2, 32, 32, 3\)"):
        dissimilarity("ssim", np.zeros((2, 32, 32, 3)), np.zeros((2, 32, 32, 3)))
    with pytest.raises(ValueError, match="ssim needs images"):
        dissimilarity("ssim", np.zeros((2, 64)), np.zeros((2, 64)))
    with pytest.raises(ValueError, match=r"ssim needs pixels from 0 to 1, got 0.0 to 255.0"):
        dissimilarity("ssim", np.zeros((1, 8, 8)), np.full((1, 8, 8), 255.0) * np.eye(8))
    with pytest.raises(ValueError, match="cosine is undefined for a record of zeros only"):
        dissimilarity("cosine", np.zeros((1, 3)), np.ones((1, 3)))
    with pytest.raises(
        ValueError, match="measure must be one of ssim, euclidean, hamming, manhattan, cosine, got 'l3'"
    ):
        dissimilarity("l3", np.zeros((1, 3)), np.ones((1, 3)))
