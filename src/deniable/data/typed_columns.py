"""A table whose columns hold numbers, words, dates or yes and no, with blanks: from a CSV or Parquet file, by Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.data.files import damage_error, open_bytes, refuse_unpacking
from deniable.data.table_reader import LONGEST_LINE_BYTES, first_row

ColumnKind = Literal["number", "word", "date", "yes or no"]
BLANKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "?", "-")
"""Cells that say nothing."""
MOST_COLUMNS = 10_000
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class MixedColumn:
    """One column: words as text or None, everything else as 64-bit numbers, NaN where blank; dates are days."""

    name: str
    kind: ColumnKind
    values: NDArray[Any]

    @property
    def blank(self) -> NDArray[np.bool_]:
        """Which rows say nothing."""
        if self.kind == "word":
            return np.array([value is None for value in self.values], dtype=bool)
        return np.asarray(np.isnan(self.values))

    def take(self, rows: NDArray[Any]) -> MixedColumn:
        """The named rows, in the given order."""
        return MixedColumn(self.name, self.kind, self.values[rows])


@dataclass(frozen=True)
class MixedTable:
    """Columns of equal length."""

    columns: tuple[MixedColumn, ...]

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __getitem__(self, name: str) -> MixedColumn:
        return next(column for column in self.columns if column.name == name)

    @property
    def names(self) -> list[str]:
        """Of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def kinds(self) -> tuple[tuple[str, ColumnKind], ...]:
        """Name and kind of every column, in order."""
        return tuple((column.name, column.kind) for column in self.columns)

    def take(self, rows: NDArray[Any]) -> MixedTable:
        """The named rows, in the given order."""
        return MixedTable(tuple(column.take(rows) for column in self.columns))

    def without(self, *names: str) -> MixedTable:
        """All columns but these."""
        return MixedTable(tuple(column for column in self.columns if column.name not in names))


def read_mixed_table(path: Path) -> MixedTable:
    """Every column of the file by the kind of its cells; what cannot be read is refused in one line."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    names = [name.strip() for name in first_row(path)]
    _check_names(path, names)
    arrow = import_module("pyarrow")
    try:
        table = _read_parquet(path) if path.suffix == ".parquet" else _read_text(path, names)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise ValueError(f"{path} is not a table with a line of names above its rows: {str(error)[:160]}") from error
    except (arrow.ArrowException, OSError) as error:
        raise damage_error(path, error) from error
    if not table.num_rows:
        raise ValueError(f"{path} has a header line but no records")
    return MixedTable(tuple(_column(path, name, column) for name, column in zip(names, table.columns, strict=True)))


def _check_names(path: Path, names: Sequence[str]) -> None:
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"{path} has {len(names):,} columns, more than {MOST_COLUMNS:,}: choose those that matter")
    if not names:
        raise ValueError(f"{path} is empty: it needs a line of names, and a line for each record")
    if len(names) < 2:
        raise ValueError(f"{path} must have at least one column beside the label, its first line is {names}"[:240])
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has two columns named {twice[:40]!r}: give each a name of its own")


def _read_text(path: Path, names: Sequence[str]) -> Any:
    text = import_module("pyarrow.csv")
    with open_bytes(path) as raw:
        return text.read_csv(
            raw,
            read_options=text.ReadOptions(column_names=list(names), skip_rows=1, block_size=LONGEST_LINE_BYTES),
            convert_options=text.ConvertOptions(
                null_values=[blank + end for blank in BLANKS for end in ("", " ")] + [f" {blank}" for blank in BLANKS],
                strings_can_be_null=True,
                true_values=["true", "True", "TRUE", "yes", "Yes"],
                false_values=["false", "False", "FALSE", "no", "No"],
            ),
        )


def _read_parquet(path: Path) -> Any:
    parquet = import_module("pyarrow.parquet")
    with parquet.ParquetFile(path) as file:
        refuse_unpacking(path, file.metadata.num_rows * file.metadata.num_columns * 8)
        table = file.read()
    table.validate(full=True)
    return table


def _column(path: Path, name: str, column: Any) -> MixedColumn:
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    types, kind = arrow.types, column.type
    if types.is_boolean(kind):
        return MixedColumn(name, "yes or no", _floats(column.cast(arrow.int8())))
    if types.is_date(kind) or types.is_timestamp(kind):
        seconds = compute.cast(column, arrow.timestamp("s"), safe=False).cast(arrow.int64())
        return MixedColumn(name, "date", _floats(seconds) / _SECONDS_A_DAY)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        values = _floats(column)
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0]) + 1
            raise ValueError(f"{path} row {row:,}: column {name[:40]!r} is infinite; fill it or leave it blank")
        return MixedColumn(name, "number", values)
    if types.is_null(kind):
        return MixedColumn(name, "number", np.full(len(column), np.nan))
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind):
        return MixedColumn(name, "word", _words(column.cast(arrow.string())))
    raise ValueError(f"{path}: column {name[:40]!r} holds {kind}, neither numbers, words, dates nor yes and no")


def _floats(column: Any) -> NDArray[np.float64]:
    arrow = import_module("pyarrow")
    return np.asarray(column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _words(column: Any) -> NDArray[Any]:
    found = [None if word is None or word.strip() in BLANKS else word.strip() for word in column.to_pylist()]
    return np.array(found, dtype=object)
