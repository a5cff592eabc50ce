"""The data of a frontier: training, validation and test part as numbers, with what was done to make them so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.data import Dataset, load
from deniable.data.encoding import EncodedColumn, TableEncoder, class_words
from deniable.data.table_reader import is_table
from deniable.data.typed_columns import ColumnKind, MixedColumn, MixedTable, read_mixed_table
from deniable.formatting import count_of

Task = Literal["classification", "regression"]
LEAST_RECORDS = 40
LEAST_OF_CLASS = 4
TEST_SHARE, VALIDATION_SHARE = 0.25, 0.2
MOST_CLASSES = 1000
FEW_VALUES = 20
"""A label of whole numbers is a class if it has at most so many different ones."""
_SCALED = "0 to 1 by the training part's own ends"
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_PUBLISHED = ("adult", "mnist", "skewed-purchases")
"""Data sets with a test part of their own."""


@dataclass(frozen=True)
class Parts:
    """Records as a model takes them; of `validation` alone it is said which training records they are."""

    name: str
    task: Task
    train: Tensor
    train_labels: Tensor
    validation: NDArray[np.int64]
    """Places of training records that the search trains without, and judges by."""
    test: Tensor
    test_labels: Tensor
    classes: tuple[str, ...]
    """Names, by number; none of a regression."""
    groups: tuple[str, ...]
    test_groups: NDArray[np.int64]
    """Each test record's group; -1 where it has none."""
    label_mean: float
    label_spread: float
    """A regression is trained on (label - mean) / spread of the training part."""
    encoding: tuple[EncodedColumn, ...]
    cautions: tuple[str, ...]
    kind: str = "table"
    one_hot: tuple[tuple[int, int], ...] = ()
    standardised: tuple[int, ...] = ()
    """Features that lie between -`LARGEST_SPREADS` and `LARGEST_SPREADS`."""
    encoder: TableEncoder | None = None
    """That made numbers of a table."""

    @property
    def search_places(self) -> NDArray[np.int64]:
        """Places of the training records that the search trains on."""
        return np.setdiff1d(np.arange(len(self.train)), self.validation)

    @property
    def outputs(self) -> int:
        """Values that a model puts out."""
        return len(self.classes) or 1

    @property
    def sha256(self) -> str:
        """Checksum of all numbers."""
        digest = sha256()
        for part in (self.train, self.train_labels, self.test, self.test_labels):
            digest.update(np.ascontiguousarray(part.numpy()).data)
        return digest.hexdigest()


def prepare_parts(
    data: str | Path | Callable[[], Any],
    *,
    label: str | None = None,
    group: str | None = None,
    task: Task | None = None,
    test: str | Path | None = None,
    seed: int = 0,
    public: Parts | None = None,
) -> Parts:
    """Read, divide and encode the data; bad data is refused in one line.

    A test part is that of `test`, or the published one, or a quarter of the records, drawn by `seed`. A `public` table
    lends its encoder, so that no statistic of the data's own records makes its features, and the numbers of its
    classes.
    """
    if task is not None and task not in get_args(Task):
        raise ValueError(f"task must be one of {', '.join(get_args(Task))}, got {task!r}")
    if isinstance(data, str | Path) and is_table(str(data)):
        return _from_table(Path(data), label=label, group=group, task=task, test=test, seed=seed, public=public)
    if public is not None:
        return _of_one_shape(prepare_parts(data, label=label, group=group, task=task, test=test, seed=seed), public)
    if group is not None or test is not None:
        raise ValueError("group and test are about a table: name a .csv, .csv.gz or .parquet file as data")
    if task == "regression":
        raise ValueError(f"task regression needs a table with a column of numbers, {data} has classes")
    if isinstance(data, str) and data in _PUBLISHED:
        return _from_datasets(load(data, "train"), load(data, "test"), seed, label)
    whole = load(data, label=label)
    _check_classes(whole.name, whole.labels, tuple(map(str, range(whole.classes))))
    order = _order(len(whole), seed, 0)
    cut = round(TEST_SHARE * len(whole))
    return _from_datasets(whole.take(np.sort(order[cut:])), whole.take(np.sort(order[:cut])), seed, label)


def _of_one_shape(parts: Parts, public: Parts) -> Parts:
    """The parts, if a model for them takes the public records as well."""
    (_, *own), (_, *other) = parts.train.shape, public.train.shape
    if own != other or parts.task != public.task or public.outputs > parts.outputs:
        raise ValueError(
            f"public_data ({_shape(public)}) must have records and classes like the data ({_shape(parts)})"
        )
    return parts


def _shape(parts: Parts) -> str:
    kind = f"{len(parts.classes)} classes" if parts.classes else "numbers as label"
    return f"records of {' x '.join(map(str, parts.train.shape[1:]))}, {kind}"


def _order(records: int, seed: int, stream: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, stream]).permutation(records)


def _validation(records: int, seed: int) -> NDArray[np.int64]:
    return np.sort(_order(records, seed, 1)[: max(1, round(VALIDATION_SHARE * records))])


def _from_datasets(train: Dataset, test: Dataset, seed: int, label: str | None) -> Parts:
    classes = tuple(map(str, range(max(train.classes, test.classes))))
    _check_classes(train.name, train.labels, classes)
    scaled = (
        tuple(EncodedColumn(name, "numbers", _SCALED, 1, looks_at_data=True) for name in _ADULT_NUMBERS)
        if train.name == "adult"
        else ()
    )
    return Parts(
        train.name,
        "classification",
        torch.from_numpy(train.inputs),
        torch.from_numpy(train.labels),
        _validation(len(train), seed),
        torch.from_numpy(test.inputs),
        torch.from_numpy(test.labels),
        classes,
        (),
        np.full(len(test), -1),
        0.0,
        1.0,
        scaled,
        (),
        train.kind,
        train.one_hot,
    )


def _from_table(
    path: Path,
    *,
    label: str | None,
    group: str | None,
    task: Task | None,
    test: str | Path | None,
    seed: int,
    public: Parts | None,
) -> Parts:
    table = read_mixed_table(path)
    for name in (label, group):
        if name is not None and name not in table.names:
            raise ValueError(f"{path} has no column {name!r}: its columns are {', '.join(table.names)}"[:400])
    label = label if label is not None else ("label" if "label" in table.names else table.names[-1])
    table, cautions = _rows_with_label(path, table, label)
    if test is None:
        _check_records(str(path), len(table), "record")
        order = _order(len(table), seed, 0)
        cut = round(TEST_SHARE * len(table))
        train, held_out = table.take(np.sort(order[cut:])), table.take(np.sort(order[:cut]))
    else:
        train, (held_out, more) = table, _rows_with_label(Path(test), read_mixed_table(Path(test)), label)
        held_out = _like(train, held_out, str(test))
        cautions += more
    return _encode(path, train, held_out, label, group=group, task=task, seed=seed, cautions=cautions, public=public)


def _like(table: MixedTable, other: MixedTable, name: str) -> MixedTable:
    """The other table with the columns of the first, in its order; refused where one lacks or holds another kind."""
    missing = next((one for one in table.names if one not in other.names), None)
    if missing is not None:
        raise ValueError(f"{name} has no column {missing!r}: its columns are {', '.join(other.names)}"[:400])
    return MixedTable(tuple(_of_kind(other[one.name], one.kind, name) for one in table.columns))


def _of_kind(column: MixedColumn, kind: ColumnKind, name: str) -> MixedColumn:
    """The column as one of this kind, which blanks can always be."""
    if column.kind == kind:
        return column
    if not column.blank.all():
        raise ValueError(f"{name}: column {column.name!r} holds a {column.kind}, in the other table a {kind}")
    blanks = np.full(len(column.values), None if kind == "word" else np.nan)
    return MixedColumn(column.name, kind, blanks)


def _rows_with_label(path: Path, table: MixedTable, label: str) -> tuple[MixedTable, tuple[str, ...]]:
    """The rows that have a label."""
    if label not in table.names:
        raise ValueError(f"{path} has no column {label!r}: its columns are {', '.join(table.names)}"[:400])
    blank = table[label].blank
    if blank.all():
        raise ValueError(f"{path}: every cell of the label {label!r} is blank: there is nothing to learn")
    if not blank.any():
        return table, ()
    left = int(blank.sum())
    said = f"{count_of(left, 'record')} of {path.name} without a label {'was' if left == 1 else 'were'} left out."
    return table.take(np.flatnonzero(~blank)), (said,)


def _encode(
    path: Path,
    train: MixedTable,
    test: MixedTable,
    label: str,
    *,
    group: str | None,
    task: Task | None,
    seed: int,
    cautions: tuple[str, ...],
    public: Parts | None,
) -> Parts:
    kind: Task = task or _task_of(train[label])
    _check_records(str(path), len(train))
    encoder = TableEncoder().fit(train.without(label)) if public is None else _lent_encoder(public, train, label, kind)
    told, name = encoder.told if public is None else _told_as_public(encoder, public), path.name
    if kind == "regression":
        labels, mean, spread = _numbers(name, train[label], test[label])
        classes: tuple[str, ...] = ()
        by = "mean 0, spread 1 while training"
        told = (*told, EncodedColumn(label, "the label", by, 0, looks_at_data=True))
    else:
        labels, classes = _class_numbers(name, train[label], test[label], () if public is None else public.classes)
        mean, spread = 0.0, 1.0
    groups, of_test = _groups(test, group)
    return Parts(
        name,
        kind,
        torch.from_numpy(encoder.transform(train.without(label))),
        labels[0],
        _validation(len(train), seed),
        torch.from_numpy(encoder.transform(test.without(label))),
        labels[1],
        classes,
        groups,
        of_test,
        mean,
        spread,
        told,
        cautions,
        "table",
        encoder.one_hot,
        encoder.standardised,
        encoder,
    )


def _lent_encoder(public: Parts, train: MixedTable, label: str, task: Task) -> TableEncoder:
    """That of the public table, if both tables have the same columns and the same task."""
    if public.encoder is None:
        raise ValueError(f"public_data must be a table like the data, got {public.name}")
    if public.task != task:
        raise ValueError(f"public_data is for a {public.task}, the data for a {task}: name other public data")
    columns = train.without(label)
    own, other = (dict(one) for one in (columns.kinds, public.encoder.kinds))
    differing = next((name for name in {**own, **other} if own.get(name) != other.get(name)), None)
    if differing is not None:
        held = [f"a {one[differing]}" if differing in one else "nothing" for one in (own, other)]
        raise ValueError(
            f"public_data must have the columns of the data: {differing!r} holds {held[0]} in the data, {held[1]} in "
            f"{public.name}"
        )
    return public.encoder


def _told_as_public(encoder: TableEncoder, public: Parts) -> tuple[EncodedColumn, ...]:
    return tuple(replace(one, by=f"{one.by}, of {public.name}", looks_at_data=False) for one in encoder.told)


def _check_records(name: str, records: int, kind: str = "training record") -> None:
    if records < LEAST_RECORDS:
        raise ValueError(f"{name} has {count_of(records, kind)}, a frontier needs at least {LEAST_RECORDS}")


def _task_of(label: MixedColumn) -> Task:
    if label.kind in ("word", "yes or no"):
        return "classification"
    values = np.unique(label.values)
    return "classification" if len(values) <= FEW_VALUES and np.all(values == values // 1) else "regression"


def _numbers(name: str, train: MixedColumn, test: MixedColumn) -> tuple[tuple[Tensor, Tensor], float, float]:
    if train.kind == "word" or test.kind != train.kind:
        raise ValueError(f"the label {train.name!r} of {name} holds words: a regression needs numbers")
    mean, spread = float(train.values.mean()), float(train.values.std())
    if spread == 0:
        raise ValueError(f"the label {train.name!r} of {name} is {mean:g} in every record: there is nothing to learn")
    scaled = [torch.from_numpy(((part.values - mean) / spread).astype(np.float32)) for part in (train, test)]
    return (scaled[0], scaled[1]), mean, spread


def _class_numbers(
    name: str, train: MixedColumn, test: MixedColumn, known: tuple[str, ...]
) -> tuple[tuple[Tensor, Tensor], tuple[str, ...]]:
    """Labels as numbers of classes; those that are `known` come first."""
    words = [class_words(part) for part in (train, test)]
    classes = [*known, *sorted((set(words[0]) | set(words[1])).difference(known))]
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"the label {train.name!r} of {name} has {len(classes):,} different values, more than {MOST_CLASSES:,} "
            "classes: is it the right column, or a regression (task)?"
        )
    number = {word: place for place, word in enumerate(classes)}
    labels = [np.array([number[word] for word in part], dtype=np.int64) for part in words]
    _check_classes(name, np.concatenate(labels), tuple(classes))
    return (torch.from_numpy(labels[0]), torch.from_numpy(labels[1])), tuple(classes)


def _check_classes(name: str, labels: NDArray[np.int64], classes: tuple[str, ...]) -> None:
    _check_records(name, len(labels))
    counts = np.bincount(labels, minlength=len(classes))
    if np.count_nonzero(counts) < 2:
        only = classes[int(labels[0])]
        raise ValueError(f"the label of {name} is {only[:40]!r} in every record: there is nothing to learn")
    rare = next((place for place, count in enumerate(counts) if 0 < count < LEAST_OF_CLASS), None)
    if rare is not None:
        few = count_of(int(counts[rare]), "record")
        raise ValueError(
            f"class {classes[rare][:40]!r} of {name} has {few}, fewer than {LEAST_OF_CLASS}: "
            "leave it out, join it with another, or name the right label"
        )


def _groups(test: MixedTable, group: str | None) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if group is None:
        return (), np.full(len(test), -1)
    words = [
        "(blank)" if none else word for none, word in zip(test[group].blank, class_words(test[group]), strict=True)
    ]
    names = sorted(set(words))
    if len(names) > MOST_CLASSES:
        raise ValueError(f"group {group!r} has {len(names):,} different values, more than {MOST_CLASSES:,}")
    return tuple(names), np.array([names.index(word) for word in words], dtype=np.int64)


def generated_parts(like: Parts, seed: int) -> Parts:
    """Generated data of the same size and task, made of nothing but the numbers of records, features and classes."""
    records, features = len(like.train), int(np.prod(like.train.shape[1:]))
    generator = np.random.default_rng([seed, 2])
    x = generator.normal(size=(records + len(like.test), features)).astype(np.float32)
    some = min(features, 10)
    signal = x[:, :some] @ generator.normal(size=(some, like.outputs)) / np.sqrt(some)
    signal += generator.normal(size=signal.shape)
    y = signal.argmax(1) if like.classes else (signal[:, 0] / signal[:, 0].std()).astype(np.float32)
    x = x.reshape(-1, *like.train.shape[1:])
    train, test = slice(records), slice(records, None)
    return Parts(
        "generated data",
        like.task,
        torch.from_numpy(x[train]),
        torch.from_numpy(y[train]),
        _validation(records, seed),
        torch.from_numpy(x[test]),
        torch.from_numpy(y[test]),
        like.classes,
        (),
        np.full(len(like.test), -1),
        0.0,
        1.0,
        (),
        (),
    )
