"""Digits and the purchases generators against what Bernau 2021b, Section 4 says of them."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.data import Dataset, digits, load, purchases, skewed_purchases


def rates(data: Dataset) -> tuple[float, float]:
    """The share of set bits among indicator and among noise bits, counted record by record."""
    run = 600 // data.classes
    own = np.zeros(data.features.shape, dtype=bool)
    for record, label in enumerate(data.labels):
        own[record, label * run : (label + 1) * run] = True
    return float(data.features[own].mean()), float(data.features[~own].mean())


@pytest.mark.parametrize("classes", [10, 20, 50, 100])
def test_skewed_purchases_have_the_stated_rates(classes: int) -> None:
    train, test = skewed_purchases(classes, records=8000, seed=3)
    for part, noise in ((train, 0.2), (test, 0.5)):
        indicator_rate, noise_rate = rates(part)
        indicator_bits = len(part) * 600 // classes
        assert indicator_rate == pytest.approx(0.8, abs=5 * (0.16 / indicator_bits) ** 0.5)
        assert noise_rate == pytest.approx(noise, abs=5 * (0.25 / (len(part) * 600 - indicator_bits)) ** 0.5)
        assert np.ptp(np.bincount(part.labels)) == 0
        assert part.kind == "binary"
        assert part.features.shape == (4000, 600)


def test_purchases_have_no_skew_and_are_seeded() -> None:
    data = purchases(20, records=3000, seed=5)
    assert rates(data)[1] == pytest.approx(0.2, abs=0.003)
    assert data.sha256 == purchases(20, records=3000, seed=5).sha256 != purchases(20, records=3000, seed=6).sha256
    halves = purchases(20, 3000, 5).take(np.arange(1500)), purchases(20, 3000, 5).take(np.arange(1500, 3000))
    assert abs(halves[0].features.mean() - halves[1].features.mean()) < 0.003


def test_more_records_extend_fewer() -> None:
    np.testing.assert_array_equal(purchases(10, 12_000).features[:11_000], purchases(10, 11_000).features)


def test_load_generates_the_published_size() -> None:
    assert load("purchases", classes=10).features.shape == (20_000, 600)
    assert len(skewed_purchases(100, records=7)[0]) == 4
    skewed = load("skewed-purchases", part="test", classes=50)
    assert (len(skewed), skewed.classes) == (100_000, 50)
    assert skewed.features[:2000].mean() == pytest.approx(0.5 + 0.3 / 50, abs=0.003)


@pytest.mark.parametrize("classes", [1, 7, 601, 2.0])
def test_classes_must_divide_the_bits(classes: int) -> None:
    with pytest.raises(ValueError, match=r"classes must .* got"):
        purchases(classes, records=10)


def test_digits() -> None:
    data = digits()
    assert data.features.shape == (1797, 8, 8)
    assert (data.features.min(), data.features.max()) == (0, 1)
    assert np.bincount(data.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
