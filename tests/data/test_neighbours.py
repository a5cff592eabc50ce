"""The chosen neighbours against a naive twin that compares every pair by definition."""

from __future__ import annotations

from math import fsum
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.data import (
    MEASURES,
    Dataset,
    Neighbour,
    digits,
    dissimilarity,
    least_dissimilar,
    most_dissimilar,
    neighbours,
    purchases,
    split,
)
from deniable.mechanisms import Adjacency

CHOICES = {1: most_dissimilar, -1: least_dissimilar}


def data(features: np.ndarray) -> Dataset:
    kind = "image" if features.ndim > 2 else "table"
    return Dataset("test", features.astype(np.float32), np.zeros(len(features), dtype=np.int64), 1, kind)


def naive_pairs(inside: Dataset, outside: Dataset, measure: str, sign: int, count: int) -> list[Neighbour]:
    pairs = [
        Neighbour(i, j, float(dissimilarity(measure, inside.features[i : i + 1], outside.features[j : j + 1])[0]))
        for i in range(len(inside))
        for j in range(len(outside))
    ]
    return sorted(pairs, key=lambda pair: -sign * pair.dissimilarity)[:count]


def naive_records(inside: Dataset, measure: str, sign: int, count: int) -> list[Neighbour]:
    x = inside.features
    sums = [
        fsum(float(dissimilarity(measure, x[i : i + 1], x[j : j + 1])[0]) for j in range(len(x)) if j != i)
        for i in range(len(x))
    ]
    records = [Neighbour(i, None, total) for i, total in enumerate(sums)]
    return sorted(records, key=lambda record: -sign * record.dissimilarity)[:count]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> object:
    """Blocks so small that even these data have many of them."""
    with patch.multiple(neighbours, PANEL_ROWS=5, BLOCK_ROWS=4):
        yield


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("measure", MEASURES)
def test_digits_equal_the_naive_twin(measure: str, sign: int) -> None:
    inside, rest = split(digits(), 13, seed=1)
    outside = rest.take(np.arange(22))
    for count in (1, 3, 50):
        found = CHOICES[sign](inside, outside, "replace", measure=measure, count=count)
        assert found == naive_pairs(inside, outside, measure, sign, count)
    for count in (1, 4, 13):
        found = CHOICES[sign](inside, None, "add-remove", measure=measure, count=count)
        assert found == naive_records(inside, measure, sign, count)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    measure=st.sampled_from(["euclidean", "hamming", "manhattan", "cosine"]),
    sign=st.sampled_from([1, -1]),
    count=st.integers(1, 7),
)
def test_tables_full_of_ties_equal_the_naive_twin(seed: int, measure: str, sign: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    inside, outside = (data(generator.integers(0, 2, (rows, 4)) + np.array([1, 0, 0, 0])) for rows in (7, 11))
    found = CHOICES[sign](inside, outside, "replace", measure=measure, count=count)
    assert found == naive_pairs(inside, outside, measure, sign, count)
    assert CHOICES[sign](inside, None, "add-remove", measure=measure, count=count) == naive_records(
        inside, measure, sign, count
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_ties_of_images_go_to_the_first(sign: int) -> None:
    inside, outside = data(np.full((9, 8, 8), 0.5)), data(np.full((10, 8, 8), 0.25))
    assert [(n.record, n.replacement) for n in CHOICES[sign](inside, outside, "replace", count=3)] == [
        (0, 0),
        (0, 1),
        (0, 2),
    ]
    assert [n.record for n in CHOICES[sign](inside, None, "add-remove", count=3)] == [0, 1, 2]


def test_differences_below_single_precision_still_decide() -> None:
    """The kernel works in single precision; the right one is found because the definition has the last word."""
    images = np.random.default_rng(0).random((40, 9, 9)).astype(np.float32)
    images[1:] = images[1]
    images[30, 4, 4] = np.nextafter(images[30, 4, 4], np.float32(1))
    inside, outside = data(images[:1]), data(images[1:])
    for sign in (1, -1):
        assert CHOICES[sign](inside, outside, "replace") == naive_pairs(inside, outside, "ssim", sign, 1)


def test_usual_measures_are_those_of_001() -> None:
    for universe, measure in ((digits(), "ssim"), (purchases(10, 60), "hamming")):
        inside, outside = split(universe.take(np.arange(60)), 20, seed=0)
        assert most_dissimilar(inside, outside, "replace") == most_dissimilar(
            inside, outside, Adjacency.REPLACE, measure=measure
        )
    table = data(np.random.default_rng(0).normal(size=(30, 3)))
    assert most_dissimilar(table, None, "zero-out") == most_dissimilar(table, None, "add-remove", measure="manhattan")


def test_workers_do_not_change_the_result_and_progress_counts_up() -> None:
    inside, outside = split(digits().take(np.arange(120)), 30, seed=0)
    calls: list[tuple[int, int]] = []
    alone = most_dissimilar(inside, outside, "replace", count=5, workers=1)
    many = most_dissimilar(inside, outside, "replace", count=5, workers=4, progress=lambda *done: calls.append(done))
    assert alone == many
    blocks = (30 // 5) * -(-90 // 4)
    assert calls == [(done + 1, blocks) for done in range(blocks)]


def test_images_of_several_channels() -> None:
    pictures = np.random.default_rng(2).random((20, 3, 8, 9))
    inside, outside = data(pictures[:6]), data(pictures[6:])
    assert most_dissimilar(inside, outside, "replace", count=2) == naive_pairs(inside, outside, "ssim", 1, 2)


def test_a_single_record() -> None:
    one = data(np.ones((1, 3)))
    assert most_dissimilar(one, None, "add-remove") == [Neighbour(0, None, 0.0)]
    assert most_dissimilar(one, one, "replace") == [Neighbour(0, 0, 0.0)]


def test_bad_arguments_are_refused() -> None:
    table, wide = data(np.ones((3, 2))), data(np.ones((3, 4)))
    with pytest.raises(ValueError, match="adjacency must be one of add-remove, replace, zero-out, got 'swap'"):
        most_dissimilar(table, table, "swap")
    with pytest.raises(ValueError, match=r"outside must be the records of U .* got None"):
        most_dissimilar(table, None, "replace")
    with pytest.raises(ValueError, match=r"records of one shape, got \(2,\) and \(4,\)"):
        most_dissimilar(table, wide, "replace")
    with pytest.raises(ValueError, match=r"count must be at most 3, .* got 4"):
        least_dissimilar(table, None, "add-remove", count=4)
    with pytest.raises(ValueError, match="count must be a whole number >= 1, got 0"):
        most_dissimilar(table, table, "replace", count=0)
    with pytest.raises(ValueError, match="workers must be a whole number >= 1, got 0"):
        most_dissimilar(table, table, "replace", workers=0)
    with pytest.raises(ValueError, match="measure must be one of"):
        most_dissimilar(table, table, "replace", measure="ssmi")
    with pytest.raises(ValueError, match="cosine is undefined"):
        most_dissimilar(data(np.zeros((3, 2))), table, "replace", measure="cosine")
    with pytest.raises(ValueError, match="at most 0"):
        most_dissimilar(table, table.take(np.arange(0)), "replace")


@pytest.mark.parametrize(("pixels", "height"), [(3.0, 8), (0.1, 5)])
def test_images_without_structural_similarity_have_another_usual_measure(pixels: float, height: int) -> None:
    """Standardised pixels, and images smaller than its window: once an error about the range of pixels."""
    images = data(np.abs(np.random.default_rng(0).normal(0, pixels, (6, height, height))))
    found = most_dissimilar(images, None, "add-remove")[0]
    assert found.record == naive_records(images, "euclidean", 1, 1)[0].record
