"""A data set as frozen data, and the random split of the universe U into D and the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole

Kind = Literal["image", "binary", "table"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled records.

    `features` is float32 with one record a row. Images keep their shape: grey ones are (records, height, width), colour
    ones (records, channels, height, width), pixels from 0 to 1. `binary` records hold zeros and ones only, a `table`
    any finite numbers. `labels` is int64, each from 0 to `classes` - 1; of a regression, whose `classes` are 0, it is
    float64. `one_hot` are the ranges (first, behind the
    last) of a table's columns that write one category each, in order. `by_statistics` names the columns of a file that
    became numbers by statistics of these very records (`encoding`).
    """

    name: str
    features: NDArray[np.float32]
    labels: NDArray[Any]
    classes: int
    kind: Kind
    one_hot: tuple[tuple[int, int], ...] = ()
    by_statistics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {self.kind!r}")
        if self.features.dtype != np.float32 or self.features.ndim not in ((3, 4) if self.kind == "image" else (2,)):
            raise ValueError(
                f"features of {self.name} must be float32, (records, features), for images (records, height, width) "
                f"or (records, channels, height, width), got {self.features.dtype} of shape {self.features.shape}"
            )
        wanted = np.dtype(np.float64 if self.regression else np.int64)
        if self.labels.dtype != wanted or self.labels.shape != self.features.shape[:1]:
            raise ValueError(
                f"labels of {self.name} must be {wanted}, one for each of its {len(self.features)} records, "
                f"got {self.labels.dtype} of shape {self.labels.shape}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def regression(self) -> bool:
        """Whether labels are numbers to be predicted, and no classes."""
        return self.classes == 0

    @cached_property
    def sha256(self) -> str:
        """Checksum of the content: kind, classes, shape, features and labels, whatever file they came from."""
        digest = sha256(f"{self.kind} {self.classes} {self.features.shape}".encode())
        digest.update(np.ascontiguousarray(self.features, dtype="<f4").data)
        digest.update(np.ascontiguousarray(self.labels, dtype="<f8" if self.regression else "<i8").data)
        return digest.hexdigest()

    @property
    def largest_class_share(self) -> float:
        """Share of the most common label: the accuracy of always answering it."""
        return float(np.bincount(self.labels).max() / len(self))

    @property
    def inputs(self) -> NDArray[np.float32]:
        """Records as models take them: grey images get the channel that convolutions expect."""
        return self.features[:, None] if self.features.ndim == 3 else self.features

    def take(self, records: NDArray[np.integer]) -> Dataset:
        """The named records, in the given order."""
        return replace(self, features=self.features[records], labels=self.labels[records])

    def most_common(self, classes: int) -> Dataset:
        """The records of the most common classes, relabelled: 0 is the most common (Bernau 2021b, Section 4; ties:
        lower label).

        Bernau 2021b makes its variants this way: Purchases with 10, 20, 50, 100 groups and LFW with 20, 50, 100 people.
        """
        sizes = np.bincount(self.labels, minlength=self.classes)
        if whole("classes", classes) > np.count_nonzero(sizes):
            raise ValueError(
                f"classes must be at most {np.count_nonzero(sizes)}, all that {self.name} has, got {classes}"
            )
        kept = np.argsort(-sizes, kind="stable")[:classes]
        rank = np.full(self.classes, -1)
        rank[kept] = np.arange(classes)
        chosen = np.flatnonzero(rank[self.labels] >= 0)
        return replace(self, features=self.features[chosen], labels=rank[self.labels[chosen]], classes=classes)


def split(dataset: Dataset, records: int, seed: int) -> tuple[Dataset, Dataset]:
    """(D, U \\ D): `records` of the data set, every choice equally likely, and all the others, both in file order."""
    if whole("records", records) > len(dataset):
        raise ValueError(f"records must be at most {len(dataset)}, all that {dataset.name} has, got {records}")
    chosen = np.zeros(len(dataset), dtype=bool)
    chosen[np.random.default_rng(seed).choice(len(dataset), records, replace=False)] = True
    return dataset.take(np.flatnonzero(chosen)), dataset.take(np.flatnonzero(~chosen))
