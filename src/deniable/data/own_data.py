"""A user's own data: an .npz file, a table (.csv, .csv.gz, .parquet) with a label column, or a Python function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.data.dataset import Dataset, Kind
from deniable.data.encoding import TableEncoder, class_words, name_learnt_columns
from deniable.data.files import read_npz
from deniable.data.table_reader import first_row, read_columns, rows
from deniable.data.typed_columns import MixedColumn, read_mixed_table

T = TypeVar("T")
MISTYPED_SHARE = 0.5
"""Of the cells of a column; more numbers than this among words are a column of numbers with a slip in it."""


def from_arrays(name: str, features: NDArray[Any], labels: NDArray[Any], *, regression: bool = False) -> Dataset:
    """A data set of plain arrays: whole-number labels from 0 on, kept as they are; 8-bit images are divided by 255.

    With `regression`, labels are any finite numbers.
    """
    features, labels = np.asarray(features), np.asarray(labels)
    if features.dtype.kind not in "biuf" or features.ndim not in (2, 3, 4) or features.size == 0:
        raise ValueError(
            f"the features of {name} must be numbers of shape (records, features), (records, height, width) or "
            f"(records, channels, height, width), got {features.dtype} of shape {features.shape}"
        )
    if features.dtype == np.uint8 and features.ndim > 2:
        features = features / np.float32(255)
    with np.errstate(over="ignore"):
        values = features.astype(np.float32)
    if not np.isfinite(values).all():
        record = int(np.argwhere(~np.isfinite(values))[0][0])
        raise ValueError(
            f"the features of {name} must be finite 32-bit numbers; record {record} is not: drop or fill it"
        )
    if regression:
        return Dataset(name, values, _number_labels(name, labels, len(values)), 0, _kind(values))
    classes = _whole_labels(name, labels, len(values))
    return Dataset(name, values, classes, int(classes.max()) + 1, _kind(values))


def _number_labels(name: str, labels: NDArray[Any], records: int) -> NDArray[np.float64]:
    if labels.shape != (records,) or labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
        found = f"{labels.dtype} of shape {labels.shape}"
        raise ValueError(f"the labels of {name} must be finite numbers, one for each of {records} records, got {found}")
    return labels.astype(np.float64)


def _whole_labels(name: str, labels: NDArray[Any], records: int) -> NDArray[np.int64]:
    if labels.shape != (records,):
        raise ValueError(f"the labels of {name} must be one a record, {records} in all, got shape {labels.shape}")
    if labels.dtype.kind not in "biuf" or not np.all(np.isfinite(labels) & (labels >= 0) & (labels == labels // 1)):
        raise ValueError(
            f"the labels of {name} must be whole numbers >= 0 (0, 1, ...): "
            "number the classes first, name the labels' column, or call it a regression"
        )
    return labels.astype(np.int64)


def _kind(values: NDArray[np.float32]) -> Kind:
    if values.ndim > 2:
        return "image"
    return "binary" if np.all((values == 0) | (values == 1)) else "table"


def from_npz(path: Path, *, regression: bool = False) -> Dataset:
    """Arrays `X` and `y`, or `features` and `labels`; pickled objects are refused."""
    arrays = read_npz(path)
    for features, labels in (("X", "y"), ("features", "labels")):
        if features in arrays and labels in arrays:
            return from_arrays(path.stem, arrays[features], arrays[labels], regression=regression)
    raise ValueError(
        f"{path} must hold arrays X and y (or features and labels), it holds {', '.join(arrays) or 'none'}"
    )


def from_function(function: Callable[[], Any], name: str) -> Dataset:
    """What the function returns: a pair (features, labels)."""
    result = call_user_code(name, function)
    if not isinstance(result, tuple) or len(result) != 2:
        raise ValueError(f"{name} must return a pair (features, labels), got {type(result).__name__}")
    return from_arrays(name, *result)


def call_user_code(name: str, code: Callable[[], T]) -> T:
    """Call the user's own function; whatever it raises, and be it a wrong name, becomes one sentence."""
    try:
        return code()
    except (ModuleNotFoundError, MemoryError):
        raise
    except Exception as error:  # not our code, so any error is input
        raise ValueError(f"{name} raised {type(error).__name__}: {str(error)[:200]}") from error


def import_function(reference: str) -> Callable[..., Any]:
    """The function named `module:function`; modules of the current folder are found too, also by worker processes."""
    module, colon, attribute = reference.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"{reference}: a function is named as module:function, for example mine:{module or 'network'}")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        function = getattr(call_user_code(reference, lambda: import_module(module)), attribute, None)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{reference}: there is no module {error.name!r} in {here} or the installed packages"
        ) from error
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)  # behind all others; a process that is spawned takes the path over
    if not callable(function):
        raise ValueError(f"{reference}: module {module!r} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]


def from_table(path: Path, label: str | None = None, *, regression: bool = False, encode: bool = False) -> Dataset:
    """Numbers from comma-separated text, gzipped or not and with or without a header line, or from a Parquet file.

    The label column is the one named `label`; when no name is given, the one called "label", else the last. With
    `encode` words, dates and blanks become numbers, too, by statistics of the file's records (`encoding`).
    """
    first = first_row(path)
    if len(first) < 2:
        raise ValueError(
            f"{path} must have at least one feature column and a label column, its first line is {str(first)[:200]}"
        )
    header = None if all(map(_is_number, first)) and path.suffix != ".parquet" else [name.strip() for name in first]
    column = _label_column(path, header, len(first), label)
    table = _all_numbers(path, first, skip=header is not None)
    if table is None and encode and header is not None:
        return _from_mixed_table(path, header[column], regression=regression)
    if table is None:
        table = _named_numbers(path, first, skip=header is not None)
    if not len(table):
        raise ValueError(f"{path} has a header line but no records")
    return from_arrays(_stem(path), np.delete(table, column, axis=1), table[:, column], regression=regression)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _label_column(path: Path, header: Sequence[str] | None, columns: int, label: str | None) -> int:
    if label is not None and (header is None or label not in header):
        found = f"its columns are {', '.join(header)}" if header else "it has no header line"
        raise ValueError(f"{path} has no column {label!r}: {found}")
    wanted = "label" if label is None else label
    return header.index(wanted) if header and wanted in header else columns - 1


def _refuse_mistyped(path: Path, column: MixedColumn) -> None:
    """Refuse a slip among numbers, which made words of all of them; its record is named."""
    if column.kind != "word":
        return
    slips = np.array([not _is_number(cell) for cell in column.values if cell is not None], dtype=bool)
    if slips.size and slips.mean() < 1 - MISTYPED_SHARE:
        row = int(np.flatnonzero(~column.blank)[np.flatnonzero(slips)[0]])
        what = f"column {column.name[:40]!r} is {column.values[row][:40]!r}, not a number"
        raise ValueError(f"{path}, record {row + 1:,}: {what}, as most of its cells are; correct it")


def _from_mixed_table(path: Path, label: str, *, regression: bool) -> Dataset:
    """Its columns as features, encoded by statistics of all its records."""
    table = read_mixed_table(path)
    for column in table.columns:
        _refuse_mistyped(path, column)
    answers, others = table[label], table.without(label)
    if answers.blank.any():
        row = int(np.flatnonzero(answers.blank)[0]) + 1
        raise ValueError(f"{path}, record {row:,}: the label {label[:40]!r} is missing; leave such records out")
    encoder = TableEncoder().fit(others)
    labels = answers.values if answers.kind == "number" else _number_classes(answers)
    found = from_arrays(_stem(path), encoder.transform(others), labels, regression=regression)
    return replace(found, one_hot=encoder.one_hot, by_statistics=name_learnt_columns(encoder.told))


def _number_classes(label: MixedColumn) -> NDArray[np.int64]:
    return np.unique(class_words(label), return_inverse=True)[1].astype(np.int64)


def _all_numbers(path: Path, first: list[str], skip: bool) -> NDArray[np.float64] | None:
    """All cells below the header line, if each is a finite number and nothing is unusual."""
    columns = read_columns(path, len(first), dict.fromkeys(range(len(first)), "number"), skip=skip)
    table = None if columns is None else np.column_stack([column.to_numpy() for column in columns])
    return table if table is not None and np.isfinite(table).all() else None


def _named_numbers(path: Path, first: list[str], skip: bool) -> NDArray[np.float64]:
    """The same, row by row; the first cell that is no finite number is named."""
    checked = [_check_row(path, line, row, first) for line, row in rows(path, skip=skip) if row]
    return np.array(checked, dtype=np.float64).reshape(-1, len(first))


def _check_row(path: Path, line: str, row: list[str], first: list[str]) -> list[float]:
    """A row's numbers; a cell that is not a finite number is refused with line, column and content."""
    if len(row) != len(first):
        raise ValueError(f"{path} {line} has {len(row)} cells, the first line has {len(first)} cells")
    for name, cell in zip(first, row, strict=True):
        if not _is_number(cell):
            what = f"is {cell[:40]!r}, not a number" if cell.strip() else "is missing"
            raise ValueError(f"{path} {line}: column {name[:40]!r} {what}; number the words, fill the gaps")
    return [float(cell) for cell in row]


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False
