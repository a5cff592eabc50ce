"""Published data sets, each from its published form: images, faces, a table, and records of bits with a class each.

Faces are those of Labeled Faces in the Wild: the people with the most images, grey and cut to the face. Records of bits
(Purchase-100, Texas and Location-30) are read in the layouts that circulate. A layout is told by the file's name:
``NAME.npz`` (arrays `features` and `labels`, or `X` and `y`; labels from 0 on, or one-hot); ``NAME.csv`` (a line a
record: the label from 1 on, then the bits); ``NAME.txt`` (the bits, a semicolon, the label from 0 on); Shokri's own
archive; and what unpacking it gives.
"""

from __future__ import annotations

import csv
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole
from deniable.data.dataset import Dataset
from deniable.data.files import (
    PublishedFile,
    damage_named,
    extra,
    locate,
    open_text,
    read_npz,
    read_table,
    read_tar_table,
    tar_stream,
)

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


PREPARED = PublishedFile(
    "lfw_min20_gray_62x47.npz",
    ("0a88e816ad9ca737acebcaa71831460ac6f646ac79a79b66dd31996408d628d7",),
    origin="a repacked form: faces of the 62 people with at least 20 pictures",
)
FUNNELED = PublishedFile(
    "lfw-funneled.tgz",
    ("b47c8422c8cded889dc5a13418c4bc2abbda121092b3533a83306f90d900100a",),
    "https://ndownloader.figshare.com/files/5976015",
)
ORIGINAL = PublishedFile(
    "lfw.tgz",
    ("055f7d9c632d7370e6fb4afc7468d40f970c34a80d4c6f50ffec63f5a8d536c0",),
    "https://ndownloader.figshare.com/files/5976018",
)
PREPARED_PEOPLE = 62
FACE_PIXELS = (78, 70, 172, 195)
"""Left, top, right and bottom of the face in an image of 250 x 250 pixels."""
SIZE_PIXELS = (47, 62)


def lfw(people: int | None = None) -> Dataset:
    """Labeled Faces in the Wild: grey images of 62 x 47 pixels, the `people` with the most images.

    Without a number: the 62 people with 20 images or more, 3023 images. Bernau 2021b (Section 4) has 20, 50 and 100
    people with 1906, 2773 and 3651 images; 100 need the archive, from which faces are cut out and halved.
    """
    files = (PREPARED, FUNNELED, ORIGINAL) if (people or 0) <= PREPARED_PEOPLE else (FUNNELED, ORIGINAL)
    return read_lfw(locate(f"lfw{people or ''}", *files), people)


def read_lfw(path: Path, people: int | None = None) -> Dataset:
    """The people with the most images, from either file; a prepared one in its own order if no number is given."""
    if path.suffix != ".npz":
        return _from_archive(path, PREPARED_PEOPLE if people is None else whole("people", people))
    arrays = read_npz(path)
    missing = [name for name in ("images", "target", "names") if name not in arrays]
    if missing:
        raise ValueError(f"{path} lacks the array {missing[0]!r}; it holds {', '.join(arrays) or 'nothing'}")
    pixels = np.divide(arrays["images"], 255, dtype=np.float32)
    found = Dataset("lfw", pixels, arrays["target"].astype(np.int64), len(arrays["names"]), "image")
    return found if people is None else found.most_common(people)


def _from_archive(path: Path, people: int) -> Dataset:
    """Images are read straight from the archive; nothing is unpacked to disk."""
    with damage_named(path), tarfile.open(path) as archive:
        names = [m.name for m in archive.getmembers() if m.isfile() and m.name.endswith(".jpg")]
        persons = [PurePosixPath(name).parent.name for name in names]
        # as `most_common` does: the more images first, then by name
        ranked = sorted(Counter(persons).items(), key=lambda item: (-item[1], item[0]))[:people]
        if len(ranked) < people:
            raise ValueError(f"people must be at most {len(ranked)}, all that {path} has, got {people}")
        rank = {person: number for number, (person, _) in enumerate(ranked)}
        chosen = [(name, rank[person]) for name, person in zip(names, persons, strict=True) if person in rank]
        faces = np.stack([_face(path, name, tar_stream(path, archive, name)) for name, _ in chosen])
    return Dataset("lfw", faces, np.array([label for _, label in chosen], dtype=np.int64), people, "image")


def _face(path: Path, member: str, stream: IO[bytes]) -> NDArray[np.float32]:
    image = extra("PIL.Image")
    try:
        with image.open(stream, formats=["JPEG"]) as picture:
            grey = picture.convert("L").crop(FACE_PIXELS).resize(SIZE_PIXELS, image.Resampling.LANCZOS)
            face: NDArray[np.float32] = np.divide(np.asarray(grey), 255, dtype=np.float32)
            return face
    except (OSError, SyntaxError) as error:
        raise ValueError(f"{member} in {path} is truncated or no image ({error}); fetch the archive again") from error
