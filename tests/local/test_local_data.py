"""Whole data sets: which randomizer suits them, tables of unlike columns, and the speed that is promised."""

from __future__ import annotations

from math import exp
from pathlib import Path
from time import process_time

import numpy as np
import pytest

import deniable as dn
from deniable.data import Dataset, digits, load, purchases
from deniable.local import (
    BinaryResponse,
    BoundedLaplace,
    ImagePixelization,
    TableRandomizer,
    perturb_dataset,
    suitable_randomizer,
)
from deniable.local.mixed_table import OneHotResponse


def table(records: int = 4, one_hot: tuple[tuple[int, int], ...] = ((1, 4), (5, 7))) -> Dataset:
    """A number, a category of three, a number, a category of two."""
    generator = np.random.default_rng(0)
    blocks = [np.eye(width)[generator.integers(0, width, records)] for width in (3, 2)]
    numbers = generator.random((2, records, 1))
    features = np.hstack([numbers[0], blocks[0], numbers[1], blocks[1]]).astype(np.float32)
    return Dataset("people", features, np.zeros(records, dtype=np.int64), 2, "table", one_hot)


def test_each_kind_of_data_gets_003s_randomizer() -> None:
    assert suitable_randomizer(purchases(10, 20), 2.0) == BinaryResponse(2.0)
    assert suitable_randomizer(digits(), 3.0) == ImagePixelization(3.0, pixels=8, cell=1)
    parts = dict(suitable_randomizer(table(), 1.0).parts)  # type: ignore[attr-defined]
    assert parts == {
        (0, 1): BoundedLaplace(1.0),
        (1, 4): OneHotResponse(1.0),
        (4, 5): BoundedLaplace(1.0),
        (5, 7): OneHotResponse(1.0),
    }


def test_a_perturbed_data_set_keeps_all_but_its_features() -> None:
    data = purchases(10, 200)
    noisy = perturb_dataset(data, suitable_randomizer(data, 1.0), seed=1)
    assert (noisy.features != data.features).mean() == pytest.approx(1 / (1 + exp(1)), abs=0.01)
    assert noisy.labels is data.labels
    assert (noisy.kind, noisy.classes, noisy.name, noisy.one_hot) == ("binary", 10, "purchases", ())
    assert set(np.unique(noisy.features)) == {0.0, 1.0}


def test_a_table_stays_a_table() -> None:
    data = table(3000)
    noisy = perturb_dataset(data, suitable_randomizer(data, 2.0), seed=3)
    for start, stop in data.one_hot:
        assert np.all(noisy.features[:, start:stop].sum(axis=1) == 1)
        kept = np.all(noisy.features[:, start:stop] == data.features[:, start:stop], axis=1).mean()
        assert kept == pytest.approx(exp(2) / (exp(2) + stop - start - 1), abs=0.03)
    assert np.all((noisy.features[:, [0, 4]] >= 0) & (noisy.features[:, [0, 4]] <= 1))
    first, second = noisy.features[:, 0] - data.features[:, 0], noisy.features[:, 4] - data.features[:, 4]
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15  # a stream of its own for each part


def test_a_table_costs_one_epsilon_a_category_or_number() -> None:
    cost = suitable_randomizer(table(), 0.5).cost((7,))
    assert (cost.features, cost.epsilon) == (4, pytest.approx(2.0))
    same = dn.compose(dn.Laplace(2.0).composed(2), dn.RandomizedResponse(0.5, 3), dn.RandomizedResponse(0.5, 2))
    assert float(cost.loss.advantage()) == pytest.approx(
        float(dn.privacy_loss(same, adjacency="add-remove").advantage()), abs=1e-6
    )


def test_columns_must_be_covered_once() -> None:
    laplace = BoundedLaplace(1.0)
    for parts in (
        (),
        (((0, 2), laplace), ((3, 4), laplace)),
        (((0, 2), laplace), ((1, 4), laplace)),
        (((1, 2), laplace),),
    ):
        with pytest.raises(ValueError, match="parts must cover all columns"):
            TableRandomizer(parts)
    with pytest.raises(ValueError, match="records must have 2 columns"):
        TableRandomizer((((0, 2), laplace),)).perturb(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="one-hot columns must hold a single 1"):
        OneHotResponse(1.0).perturb(np.ones((2, 2)))


def test_numbers_without_known_bounds_are_refused() -> None:
    data = table(one_hot=())
    wide = Dataset("people", 50 * data.features, data.labels, 2, "table")
    with pytest.raises(ValueError, match=r"the numbers of people must be scaled to 0\.\.1"):
        suitable_randomizer(wide, 1.0)


def test_adult_is_perturbed_by_categories(real_data: Path) -> None:
    data = load("adult", part="train")
    randomizer = suitable_randomizer(data, 1.0)
    assert randomizer.cost(data.features.shape[1:]).epsilon == pytest.approx(14)  # 6 numbers and 8 categories
    noisy = perturb_dataset(data, randomizer, seed=0)
    assert np.all(noisy.features[:, 6:].sum(axis=1) == 8)


def test_200_000_records_of_600_bits_take_less_than_a_second() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (200_000, 600), dtype=np.uint8)
    times = []
    for _ in range(2):
        start = process_time()
        BinaryResponse(1.0).perturb(bits)
        times.append(process_time() - start)
    assert min(times) < 1.0
