"""All pairs by SSIM against scikit-image in a loop, and by Manhattan against scikit-learn's chunked distances.

Bars: at least 50 times as fast, and not slower. Times are the best of several runs, taken in turn on the same machine.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
import pytest

from deniable.data import Dataset, most_dissimilar

ADULT_GROUPS = (7, 16, 7, 14, 6, 5, 2, 41)


def fastest(*tasks: Callable[[], object], rounds: int = 3) -> list[float]:
    """Seconds of each task, the best of several rounds in turn."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for task, seconds in zip(tasks, times, strict=True):
            start = perf_counter()
            task()
            seconds.append(perf_counter() - start)
    return [min(seconds) for seconds in times]


def strokes(records: int) -> Dataset:
    """Images of MNIST's size: a bright blurred stroke on black."""
    generator = np.random.default_rng(0)
    row, column = np.indices((28, 28))
    middle, slope = generator.uniform(10, 18, (records, 1, 1)), generator.uniform(-1, 1, (records, 1, 1))
    pixels = np.clip(2 - np.abs(column - middle - slope * (row - 14)), 0, 1).astype(np.float32)
    return Dataset("strokes", pixels, np.zeros(records, dtype=np.int64), 1, "image")


def incomes(records: int, seed: int) -> Dataset:
    """Rows of Adult's form: 6 numbers and 8 one-hot groups, 104 columns."""
    generator = np.random.default_rng(seed)
    groups = [np.eye(size)[generator.integers(size, size=records)] for size in ADULT_GROUPS]
    rows = np.hstack([generator.random((records, 6)), *groups]).astype(np.float32)
    return Dataset("incomes", rows, np.zeros(records, dtype=np.int64), 1, "table")


def test_ssim_of_all_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = pytest.importorskip("skimage.metrics", reason="the bench needs scikit-image")
    images = strokes(3048)
    inside, outside = images.take(np.arange(1000)), images.take(np.arange(1000, 3048))
    one = images.features[0]
    ours, loop = fastest(
        lambda: most_dissimilar(inside, outside, "replace"),
        lambda: [metrics.structural_similarity(one, other, data_range=1.0) for other in outside.features[:1000]],
    )
    rate, loop_rate = len(inside) * len(outside) / ours, 1000 / loop
    with capsys.disabled():
        print(
            f"\nSSIM 28x28: {rate:,.0f} pairs/s; scikit-image in a loop {loop_rate:,.0f}; {rate / loop_rate:.0f} times"
        )
    assert rate >= 50 * loop_rate


def test_manhattan_of_all_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="the bench needs scikit-learn")
    inside, outside = incomes(1000, seed=1), incomes(40_000, seed=2)

    def chunked() -> float:
        chunks = sklearn_metrics.pairwise_distances_chunked(
            inside.features, outside.features, metric="manhattan", n_jobs=-1, reduce_func=lambda d, _: d.max(axis=1)
        )
        return max(float(chunk.max()) for chunk in chunks)

    ours, theirs = fastest(lambda: most_dissimilar(inside, outside, "replace"), chunked)
    assert most_dissimilar(inside, outside, "replace")[0].dissimilarity == pytest.approx(chunked(), rel=1e-6)
    with capsys.disabled():
        print(f"\nManhattan 1000 x 40000 x 104: {ours:.2f} s; scikit-learn {theirs:.2f} s; {theirs / ours:.1f} times")
    assert ours <= theirs
