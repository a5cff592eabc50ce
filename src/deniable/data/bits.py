"""Published records of bits with a class each: Purchase-100, Texas and Location-30, in the layouts that circulate.

A layout is told by the file's name: ``NAME.npz`` (arrays `features` and `labels`, or `X` and `y`; labels from 0 on, or
one-hot); ``NAME.csv`` (a line a record: the label from 1 on, then the bits); ``NAME.txt`` (the bits, a semicolon, the
label from 0 on); Shokri's own archive; and what unpacking it gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.data.dataset import Dataset
from deniable.data.files import PublishedFile, locate, read_npz, read_table, read_tar_table

SHOKRI = "from https://github.com/privacytrustlab/datasets"
UNPACKED = "what unpacking it gives"
ONE_HOT = "from https://github.com/xehartnort/Purchase100-Texas100-datasets"
LABEL_FIRST = "a line a record: the label from 1 on, then the bits, with commas"
LABEL_LAST = "a line a record: the bits with commas, a semicolon, the label from 0 on"
LOCATION = (
    PublishedFile(
        "location30_packed.npz",
        ("9e0393dcecfb42835fac229ae31c41ccaf50eee443e3a9262ed317b4b5d06dac",),
        origin="a repacked form of the published file",
    ),
    PublishedFile("dataset_location.tgz", origin=SHOKRI),
    PublishedFile("bangkok", origin=UNPACKED),
)
PURCHASE_CLASSES = 100


def location30() -> Dataset:
    """Location-30: 5010 people, 446 bits (places visited), 30 classes."""
    return read_location30(locate("location30", *LOCATION))


def read_location30(path: Path) -> Dataset:
    """Location-30 from any of its files."""
    if path.suffix != ".npz":
        return _read_labelled("location30", path, "bangkok", 30)
    arrays = read_npz(path)
    if not {"X_packed", "n_features", "y"} <= set(arrays):
        raise ValueError(f"{path} lacks X_packed, n_features or y; it holds {', '.join(arrays) or 'nothing'}")
    bits = np.unpackbits(arrays["X_packed"], axis=1)[:, : int(arrays["n_features"])]
    return _check_bits("location30", path, bits, arrays["y"], 30)


def purchase(classes: int = PURCHASE_CLASSES) -> Dataset:
    """Purchase-100: 197,324 carts, 600 bits (products bought), 100 classes; or its most common classes.

    Bernau 2021b (Section 4) has variants with 10, 20 and 50 classes, of which the smallest has 38,551 records.
    """
    files = _files("purchase100", "dataset_purchase.tgz", "dataset_purchase")
    dataset = read_purchase(locate("purchase100", *files))
    return dataset if classes == PURCHASE_CLASSES else dataset.most_common(classes)


def read_purchase(path: Path) -> Dataset:
    """Purchase-100 from any of its files."""
    return _read_labelled("purchase100", path, "dataset_purchase", PURCHASE_CLASSES)


def texas(classes: int = 100) -> Dataset:
    """Texas hospital stays of the 100, 150, 200 or 300 most common procedures, which are the classes.

    67,330 records of 6,170 bits with 100 procedures, up to 89,815 of 6,382 with 300 (Bernau 2021b, Section 4); each of
    the four has features of its own, so none is made from another.
    """
    name = f"texas{classes}"
    return read_texas(locate(name, *_files(name, "dataset_texas.tgz", f"texas/{classes}/feats")), classes)


def read_texas(path: Path, classes: int = 100) -> Dataset:
    """Texas from any of its files; of the unpacked pair `feats` and `labels` the former is given."""
    name = f"texas{classes}"
    if path.name == "feats":
        labels = read_table(path.with_name("labels"), np.uint16)
        return _check_bits(name, path, read_table(path), _from_one(labels), classes)
    if path.suffix != ".tgz":
        return _read_labelled(name, path, "", classes)
    labels = read_tar_table(path, f"texas/{classes}/labels", np.uint16)
    return _check_bits(name, path, read_tar_table(path, f"texas/{classes}/feats"), _from_one(labels), classes)


def _files(name: str, archive: str, unpacked: str) -> tuple[PublishedFile, ...]:
    return (
        PublishedFile(f"{name}.npz", origin=f"features and labels, {ONE_HOT}"),
        PublishedFile(archive, origin=SHOKRI),
        PublishedFile(unpacked, origin=UNPACKED),
        PublishedFile(f"{name}.csv", origin=LABEL_FIRST),
        PublishedFile(f"{name}.txt", origin=LABEL_LAST),
    )


def _read_labelled(name: str, path: Path, member: str, classes: int) -> Dataset:
    """Bits and labels in one file."""
    if path.suffix == ".npz":
        return _from_npz(name, path, classes)
    if path.suffix == ".txt":
        table = read_table(path, np.uint16, semicolons=True)
        return _check_bits(name, path, table[:, :-1], table[:, -1], classes)
    table = read_tar_table(path, member, np.uint16) if path.suffix == ".tgz" else read_table(path, np.uint16)
    return _check_bits(name, path, table[:, 1:], _from_one(table[:, 0]), classes)


def _from_npz(name: str, path: Path, classes: int) -> Dataset:
    arrays = read_npz(path)
    for features, labels in (("features", "labels"), ("X", "y")):
        if features in arrays and labels in arrays:
            numbers = arrays[labels]
            one_hot = numbers.ndim == 2 and numbers.shape[1] > 1
            return _check_bits(name, path, arrays[features], numbers.argmax(axis=1) if one_hot else numbers, classes)
    raise ValueError(f"{path} lacks features and labels (or X and y); it holds {', '.join(arrays) or 'nothing'}")


def _from_one(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Labels that count from 1 on, counted from 0."""
    numbers: NDArray[np.int64] = labels.astype(np.int64) - 1
    return numbers


def _check_bits(name: str, path: Path, bits: NDArray[Any], labels: NDArray[Any], classes: int) -> Dataset:
    numbers = labels.reshape(-1).astype(np.int64)
    if bits.ndim != 2 or bits.size == 0 or not _zeros_and_ones(bits):
        raise ValueError(f"{path} is not {name}: its features must be zeros and ones, a row a record")
    if len(numbers) != len(bits):
        raise ValueError(f"{path} is not {name}, or truncated: {len(bits)} records have {len(numbers)} labels")
    if numbers.min() < 0 or numbers.max() >= classes:
        wrong = sorted(set(numbers.tolist()) - set(range(classes)))
        raise ValueError(f"{path} is not {name}: its labels must name {classes} classes, number {wrong[0]} is none")
    return Dataset(name, bits.astype(np.float32), numbers, classes, "binary")


def _zeros_and_ones(values: NDArray[Any]) -> bool:
    # the largest of unsigned numbers says it all, without an array of comparisons as large as Texas
    return bool(values.max() <= 1 if values.dtype.kind in "bu" else np.all((values == 0) | (values == 1)))
