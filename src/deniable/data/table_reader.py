"""Tables in files: comma-separated text, gzipped or not, and Parquet. Arrow reads them; Python names what is wrong.

Arrow rounds every decimal number correctly and reads columns side by side, but it does not say in which line a fault
is. So a file that it refuses is read once more, row by row, which names the first fault, or reads what is unusual but
right (blank lines of blanks, for instance). Arrow is imported when the first table is read: `import deniable` stays
quick.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.data.files import damage_error, open_bytes, open_text, refuse_unpacking

SUFFIXES = (".csv", ".csv.gz", ".parquet")
LONGEST_LINE_BYTES = 1 << 22
_CELL_BYTES = 8
_ROWS_AT_ONCE = 256

Column = Any
"""A column as Arrow holds it: numbers of 64 bits, or words of which each is kept once."""
Kind = Literal["number", "word"]


def _arrow(part: str = "") -> Any:
    """Arrow or a part of it, imported when the first table is read."""
    return import_module(f"pyarrow{part}")


def is_table(path: Path | str) -> bool:
    """Whether the name is that of a table: .csv, .csv.gz or .parquet."""
    return str(path).endswith(SUFFIXES)


def first_row(path: Path) -> list[str]:
    """The cells of the first line, or the names of a Parquet file's columns; none where there is no line."""
    if _is_parquet(path):
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    with open_text(path) as stream:
        return next(csv.reader(_lines(path, stream), strict=True), [])


def read_columns(
    path: Path, columns: int, kinds: dict[int, Kind], *, skip: bool, quotes: bool = True
) -> list[Column] | None:
    """The columns at the places that `kinds` names, of a table with `columns` columns; `skip` leaves out a heading.

    None where Arrow cannot read them, or where there is a quotation mark although `quotes` is False: `rows` then tells
    why, or reads them. What is unpacked is bounded (`refuse_unpacking`).
    """
    arrow = _arrow()
    try:
        if _is_parquet(path):
            return _from_parquet(path, kinds)
        with open_bytes(path) as raw:
            if skip:
                raw.readline(LONGEST_LINE_BYTES)
            return _from_text(raw if quotes else _Unquoted(raw), columns, kinds, quotes)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, _QuotationMarkError):
        return None


def _from_text(raw: Any, columns: int, kinds: dict[int, Kind], quotes: bool) -> list[Column]:
    text = _arrow(".csv")
    names = [str(place) for place in range(columns)]
    table = text.read_csv(
        raw,
        # Arrow's threads may abort, or wait for ever, where the process ends soon after (8 of 41 refused tables)
        read_options=text.ReadOptions(column_names=names, block_size=LONGEST_LINE_BYTES, use_threads=False),
        parse_options=text.ParseOptions(quote_char='"' if quotes else False),
        convert_options=text.ConvertOptions(
            include_columns=[names[place] for place in kinds],
            column_types={names[place]: _arrow_type(kind) for place, kind in kinds.items()},
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    return [table[names[place]] for place in kinds]


def _from_parquet(path: Path, kinds: dict[int, Kind]) -> list[Column] | None:
    with _parquet(path) as file:
        refuse_unpacking(path, file.metadata.num_rows * len(kinds) * _CELL_BYTES)
        names = [file.schema_arrow.names[place] for place in kinds]
        found = [file.read(columns=[name])[name] for name in names]
        for column in found:
            column.validate(full=True)  # a damaged file may name words that it does not have
    if any(column.null_count for column in found):
        return None
    return [_cast(column, kind) for column, kind in zip(found, kinds.values(), strict=True)]


def _cast(column: Column, kind: Kind) -> Column:
    """A Parquet column as numbers or words; words that the file keeps once stay so."""
    arrow = _arrow()
    if kind == "number":
        return column.cast(arrow.float64(), safe=False)
    return column if arrow.types.is_dictionary(column.type) else column.cast(arrow.string()).dictionary_encode()


def _arrow_type(kind: Kind) -> Any:
    arrow = _arrow()
    return arrow.float64() if kind == "number" else arrow.dictionary(arrow.int32(), arrow.string())


def words(column: Column) -> tuple[list[str], NDArray[np.int64]]:
    """The different words of a column, without blanks around them, and the place of each row's word among them."""
    joined = column.unify_dictionaries().combine_chunks()
    found = [word.strip() for word in joined.dictionary.to_pylist()]
    number: dict[str, int] = {}
    places = np.array([number.setdefault(word, len(number)) for word in found], dtype=np.int64)
    return list(number), places[joined.indices.to_numpy(zero_copy_only=False)]


def rows(path: Path, *, skip: bool) -> Iterator[tuple[str, list[str]]]:
    """Each row as text, with its place in words ("line 3"); a Parquet file's empty cells are ''."""
    if _is_parquet(path):
        yield from _parquet_rows(path)
        return
    with open_text(path) as stream:
        reader = csv.reader(_lines(path, stream), strict=True)
        if skip:
            next(reader, None)
        line = reader.line_num
        try:
            for row in reader:
                line = reader.line_num
                yield f"line {line:,}", row
        except csv.Error as fault:
            raise ValueError(f"{path}, near line {line:,}: {fault}") from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    number = 0
    with _parquet(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            batch.validate(full=True)
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                yield f"row {number:,}", ["" if cell is None else str(cell) for cell in row]


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    """A Parquet file; whatever a broken one raises becomes one error that names the file."""
    arrow, parquet = _arrow(), _arrow(".parquet")
    try:
        texts = [field.name for field in parquet.read_schema(path) if arrow.types.is_string(field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            yield file
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damage_error(path, error) from error


def _is_parquet(path: Path) -> bool:
    return path.suffix == ".parquet"


def _lines(path: Path, stream: IO[str]) -> Iterator[str]:
    """The lines of a text, refused where one of them is so long that it could fill the memory."""
    number = 0
    while line := stream.readline(LONGEST_LINE_BYTES):
        number += 1
        if len(line) == LONGEST_LINE_BYTES and not line.endswith("\n"):
            raise ValueError(
                f"{path} has a line of more than {LONGEST_LINE_BYTES:,} bytes, line {number:,}: leave out columns, or "
                "end its lines"
            )
        yield line


class _QuotationMarkError(Exception):
    pass


class _Unquoted:
    """A stream of bytes that ends with an error at the first quotation mark."""

    def __init__(self, raw: BufferedIOBase) -> None:
        self._raw, self.closed = raw, False

    def read(self, size: int = -1) -> bytes:
        piece = self._raw.read(size)
        if b'"' in piece:
            raise _QuotationMarkError
        return piece
