"""One door to all data: a name, a file or a function; and the data that needs no file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from deniable.checks import as_path, whole
from deniable.data import own_data, published
from deniable.data.dataset import Dataset
from deniable.data.files import extra
from deniable.data.table_reader import is_table

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


Part = Literal["all", "train", "test"]
Found = Dataset | tuple[Dataset, Dataset]

GENERATED: dict[str, Callable[..., Found]] = {
    "purchases": purchases,
    "skewed-purchases": skewed_purchases,
}
COLLECTED: dict[str, Callable[[], Found]] = {
    "digits": digits,
    "mnist": published.mnist,
    "adult": published.adult,
    "location30": published.location30,
    **{f"purchase{classes}": partial(published.purchase, classes) for classes in (10, 20, 50, 100)},
    **{f"texas{classes}": partial(published.texas, classes) for classes in (100, 150, 200, 300)},
    "lfw": published.lfw,
    **{f"lfw{people}": partial(published.lfw, people) for people in (20, 50, 100)},
}
NAMES = (*COLLECTED, *GENERATED)
"""Every name that `load` knows."""


def load(
    source: str | Path | Callable[[], Any],
    part: Part = "all",
    classes: int | None = None,
    label: str | None = None,
    *,
    regression: bool = False,
    encode: bool = False,
) -> Dataset:
    """A data set by name (`NAMES`), by file or by function ("module:function" or the function itself).

    A file is an .npz, or a table: .csv, .csv.gz or .parquet.

    `part` picks the published training or test part (mnist, adult, skewed-purchases). `classes` keeps the most common
    classes only; for generated data it is their number. `label` names the label column of a table. With `regression`
    the labels of a file are any numbers. With `encode` a table may hold words, dates and blanks (`from_table`).
    """
    if label is not None and not is_table(str(source)):
        raise ValueError(f"label names a column of a .csv file (.csv.gz, .parquet), {source} is none: leave it out")
    if isinstance(source, str) and source in GENERATED:
        generate = GENERATED[source]
        return _part(source, generate() if classes is None else generate(classes), part)
    dataset = _part(str(source), _find(source, label, regression, encode), part)
    return dataset if classes is None else dataset.most_common(classes)


def _find(source: str | Path | Callable[[], Any], label: str | None, regression: bool, encode: bool) -> Found:
    if callable(source):
        return own_data.from_function(source, getattr(source, "__qualname__", repr(source)))
    if isinstance(source, str) and source in COLLECTED:
        return COLLECTED[source]()
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(source)):
        return own_data.from_function(own_data.import_function(str(source)), str(source))
    path = as_path("data", source)
    if path.is_dir():
        raise ValueError(f"data must be a file, {path} is a folder: name a table in it")
    if path.suffix != ".npz" and not is_table(path):
        files = "an .npz or .csv file (.csv.gz, .parquet)"
        raise ValueError(f"data must be one of {', '.join(NAMES)}, {files} or module:function, got {source}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".npz":
        return own_data.from_npz(path, regression=regression)
    return own_data.from_table(path, label, regression=regression, encode=encode)


def _part(name: str, found: Found, part: Part) -> Dataset:
    if part not in get_args(Part):
        raise ValueError(f"part must be one of {', '.join(get_args(Part))}, got {part!r}")
    if isinstance(found, Dataset):
        if part != "all":
            raise ValueError(f"{name} has no published {part} part: load all of it and use split")
        return found
    train, test = found
    if part != "all":
        return train if part == "train" else test
    features = np.concatenate((train.features, test.features))
    return replace(train, features=features, labels=np.concatenate((train.labels, test.labels)))
