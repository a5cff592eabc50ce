"""Data that needs no file: scikit-learn's digits and generated purchases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole
from deniable.data.dataset import Dataset
from deniable.data.files import extra

CART_BITS = 600
INDICATOR_PROBABILITY = 0.8
TRAIN_BIT_PROBABILITY = 0.2
TEST_BIT_PROBABILITY = 0.5
ROWS_AT_ONCE = 10_000
LEAKING_RECORDS = 1000
"""So few of the default `purchases` an unprotected network learns by heart."""


def digits() -> Dataset:
    """scikit-learn's 1797 handwritten digits: 8 x 8 pixels, scaled from 0..16 to 0..1."""
    bunch = extra("sklearn.datasets").load_digits()
    return Dataset("digits", (bunch.images / 16).astype(np.float32), bunch.target.astype(np.int64), 10, "image")


def purchases(classes: int = 50, records: int = 20_000, seed: int = 0) -> Dataset:
    """The generator of Bernau 2021b (Section 4) without the skew: every record has its noise bits set with probability
    0.2.

    The default of 50 classes, 12 indicator bits each, is where membership shows: `LEAKING_RECORDS` of them are learned
    by heart by Bernau 2021b's 600-128-50 network (accuracy 1.00 in training, about 0.74 in test), and noise cures it.
    With 10 or 20 classes everything is learned, with 100 almost nothing that lasts.
    """
    labels = _balanced_labels(classes, records)
    features = _carts(labels, classes, TRAIN_BIT_PROBABILITY, np.random.default_rng(seed))
    return Dataset("purchases", features, labels, classes, "binary")


def skewed_purchases(classes: int = 100, records: int = 200_000, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Skewed Purchases (Bernau 2021b, Section 4): (training part, test part), half of the records each.

    Indicator bits are set with probability 0.8, noise bits with 0.2 in the training and 0.5 in the test part. Bernau
    2021b says neither how its 200,000 records divide nor which positions indicate a class; here they divide evenly and
    class c owns the c-th run of 600 / classes positions.
    """
    generator = np.random.default_rng(seed)
    training = _balanced_labels(classes, (whole("records", records, low=2) + 1) // 2)
    test = _balanced_labels(classes, records // 2)
    train_features = _carts(training, classes, TRAIN_BIT_PROBABILITY, generator)
    test_features = _carts(test, classes, TEST_BIT_PROBABILITY, generator)
    return (
        Dataset("skewed-purchases", train_features, training, classes, "binary"),
        Dataset("skewed-purchases", test_features, test, classes, "binary"),
    )


def _balanced_labels(classes: int, records: int) -> NDArray[np.int64]:
    if CART_BITS % whole("classes", classes, low=2):
        raise ValueError(
            f"classes must divide {CART_BITS} so that every class has as many indicator bits, got {classes}"
        )
    return np.arange(whole("records", records), dtype=np.int64) % classes


def _carts(
    labels: NDArray[np.int64], classes: int, noise: float, generator: np.random.Generator
) -> NDArray[np.float32]:
    owner = np.arange(CART_BITS) // (CART_BITS // classes)
    features = np.empty((len(labels), CART_BITS), dtype=np.float32)
    for start in range(0, len(labels), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        chance = np.where(owner == labels[rows, None], np.float32(INDICATOR_PROBABILITY), np.float32(noise))
        np.less(generator.random(chance.shape, dtype=np.float32), chance, out=features[rows], casting="unsafe")
    return features
