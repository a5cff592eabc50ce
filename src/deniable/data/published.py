"""MNIST and Adult, each from its published form; see `bits` and `faces` for the others."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.data.dataset import Dataset
from deniable.data.files import PublishedFile, locate, open_text, read_npz

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
SHARED = "a repacked form of the published file"

MNIST = PublishedFile(
    "mnist.npz",
    (
        "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
        "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
    ),
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
)
ADULT_TRAIN = (
    PublishedFile(
        "adult_train.csv.gz", ("fe24177a5b0df1874e6afc5748b7d9e547ca25880a84c4310f39b7ccf1b0da37",), origin=SHARED
    ),
    PublishedFile(
        "adult.data", ("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",), UCI + "adult.data"
    ),
)
ADULT_TEST = (
    PublishedFile(
        "adult_test.csv.gz", ("e809ea7e82c113838d8ca6ff3cb3557a163ddce5ece7785639e9fb3e533bb347",), origin=SHARED
    ),
    PublishedFile(
        "adult.test", ("a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",), UCI + "adult.test"
    ),
)
ADULT_NUMBERS = (0, 2, 4, 10, 11, 12)
ADULT_CATEGORIES = (1, 3, 5, 6, 7, 8, 9, 13)
ADULT_INCOME = 14


def mnist() -> tuple[Dataset, Dataset]:
    """MNIST: 60,000 training and 10,000 test images of 28 x 28 pixels, scaled from 0..255 to 0..1."""
    return read_mnist(locate("mnist", MNIST))


def read_mnist(path: Path) -> tuple[Dataset, Dataset]:
    arrays = _arrays(path, "x_train", "y_train", "x_test", "y_test")
    train, test = (
        Dataset("mnist", _pixels(arrays[f"x_{part}"]), arrays[f"y_{part}"].astype(np.int64), 10, "image")
        for part in ("train", "test")
    )
    return train, test


def adult() -> tuple[Dataset, Dataset]:
    """UCI Adult: 30,162 training and 15,060 test records without missing values, 104 columns, label income > 50K."""
    return read_adult(locate("adult", *ADULT_TRAIN), locate("adult", *ADULT_TEST))


def read_adult(train: Path, test: Path) -> tuple[Dataset, Dataset]:
    """Rows with a '?' are dropped. The columns are the 6 numbers, then one for every category of the training part.

    After dropping, the training part has 7 + 16 + 7 + 14 + 6 + 5 + 2 + 41 = 98 categories in its 8 categorical columns.
    Numbers are scaled so that the training part spans 0..1; a test value may lie outside.
    """
    parts = _adult_rows(train), _adult_rows(test)
    numbers = [part[:, ADULT_NUMBERS].astype(np.float64) for part in parts]
    low, high = numbers[0].min(axis=0), numbers[0].max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    one_hot = [_one_hot(parts[0][:, column], [part[:, column] for part in parts]) for column in ADULT_CATEGORIES]
    widths = [columns[0].shape[1] for columns in one_hot]
    ends = [len(ADULT_NUMBERS), *(len(ADULT_NUMBERS) + np.cumsum(widths)).tolist()]
    first, second = (
        Dataset(
            "adult",
            np.hstack([(numbers[part] - low) / span, *(columns[part] for columns in one_hot)]).astype(np.float32),
            np.char.startswith(parts[part][:, ADULT_INCOME], ">50K").astype(np.int64),
            2,
            "table",
            tuple(pairwise(ends)),
        )
        for part in (0, 1)
    )
    return first, second


def _adult_rows(path: Path) -> NDArray[np.str_]:
    """The complete rows: with or without a header, UCI's own remark line and the dots behind its test labels."""
    with open_text(path) as stream:
        rows = [row for row in csv.reader(stream, skipinitialspace=True) if row and not row[0].startswith(("age", "|"))]
    wrong = [row for row in rows if len(row) != ADULT_INCOME + 1]
    if wrong or not rows:
        raise ValueError(f"{path} is not Adult: every row must have 15 columns, found {wrong[:1] or 'no rows'}")
    return np.array([row for row in rows if "?" not in row])


def _one_hot(known: NDArray[np.str_], columns: list[NDArray[np.str_]]) -> list[NDArray[np.bool_]]:
    categories = np.unique(known)
    unknown = np.setdiff1d(np.concatenate(columns), categories)
    if len(unknown):
        raise ValueError(f"the test part of Adult has categories that its training part lacks: {', '.join(unknown)}")
    return [column[:, None] == categories for column in columns]


def _arrays(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    arrays = read_npz(path)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(f"{path} lacks the array {missing[0]!r}; it holds {', '.join(arrays) or 'nothing'}")
    return arrays


def _pixels(grey: NDArray[Any]) -> NDArray[np.float32]:
    pixels: NDArray[np.float32] = np.divide(grey, 255, dtype=np.float32)
    return pixels
