"""A mixed table as numbers between about -3 and 3, by scikit-learn; what looked at the data on the way is told.

Guarantee: an encoder is fitted to the rows that it is given (the training part) and never sees others. What it learns
of them (means, spreads, medians, which words there are) is NOT protected by any noise: every such column is marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.data.files import extra
from deniable.data.typed_columns import ColumnKind, MixedColumn, MixedTable
from deniable.formatting import count_of

MOST_WORDS = 50
"""Of a column that get a feature of their own; rarer ones share one."""
MOST_FEATURES = 20_000
_BLANK = "(blank)"
LARGEST_SPREADS = 5.0
"""Numbers are cut off so many standard deviations from the mean."""


@dataclass(frozen=True)
class EncodedColumn:
    """How one column became features, and whether that looked at the data."""

    name: str
    kind: str
    by: str
    features: int
    looks_at_data: bool


@dataclass
class TableEncoder:
    """Fitted to a training part; `told` says how each column became features."""

    told: tuple[EncodedColumn, ...] = ()
    one_hot: tuple[tuple[int, int], ...] = ()
    """Ranges of features that write one word each."""
    standardised: tuple[int, ...] = ()
    """Features that lie between -`LARGEST_SPREADS` and `LARGEST_SPREADS`; all others are 0, 1 or 0.5."""
    kinds: tuple[tuple[str, ColumnKind], ...] = ()
    """Name and kind of every column that it was fitted to."""
    _steps: list[tuple[str, Any]] = field(default_factory=list)

    def fit(self, table: MixedTable) -> TableEncoder:
        """Learn from these rows."""
        told, ranges, standardised, place = [], [], [], 0
        for column in table.columns:
            step = _WordEncoder() if column.kind == "word" else _NumberEncoder()
            found = step.fit(column)
            if place + found.features > MOST_FEATURES:
                raise ValueError(f"the columns make more than {MOST_FEATURES:,} features: choose those that matter")
            if column.kind == "word":
                ranges.append((place, place + found.features))
            elif column.kind != "yes or no" and found.features:
                standardised.append(place)
            told.append(found)
            self._steps.append((column.name, step))
            place += found.features
        self.told, self.one_hot, self.standardised = tuple(told), tuple(ranges), tuple(standardised)
        self.kinds = table.kinds
        if not place:
            raise ValueError("no column beside the label holds anything: there is nothing to learn from")
        return self

    def transform(self, table: MixedTable) -> NDArray[np.float32]:
        """Rows as features."""
        return np.hstack([step.transform(table[name]) for name, step in self._steps]).astype(np.float32)


def name_learnt_columns(columns: Iterable[EncodedColumn]) -> tuple[str, ...]:
    """Those whose encoding looked at the data."""
    return tuple(column.name for column in columns if column.looks_at_data)


def tell_statistics(names: Sequence[str], rows: str) -> str:
    """The sentence about columns that became numbers by statistics of `rows`, such as "the training records"."""
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return (
        f"{count_of(len(names), 'column')} ({listed}) became numbers by statistics of {rows} (means, spreads, medians, "
        "lists of words), which no noise protects: fix them from public knowledge before a release."
    )


def class_words(label: MixedColumn) -> list[str]:
    """A column's classes as people read them; a dot at the end of a word (as in Adult's test part) makes no other."""
    if label.kind == "word":
        return [str(value).removesuffix(".") for value in label.values]
    if label.kind == "yes or no":
        return ["yes" if value else "no" for value in label.values]
    return [f"{value:g}" for value in label.values]


class _WordEncoder:
    """A feature for each word, one for all rare or new ones, blanks as a word of their own."""

    def fit(self, column: MixedColumn) -> EncodedColumn:
        self._encoder = extra("sklearn.preprocessing").OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MOST_WORDS, sparse_output=False, dtype=np.float32
        )
        width = self._encoder.fit_transform(_as_words(column)).shape[1]
        return EncodedColumn(column.name, "words", f"one of {width}: OneHotEncoder", width, looks_at_data=True)

    def transform(self, column: MixedColumn) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._encoder.transform(_as_words(column))
        return found


def _as_words(column: MixedColumn) -> NDArray[Any]:
    return np.array([[_BLANK if value is None else str(value)] for value in column.values], dtype=object)


class _NumberEncoder:
    """Numbers, dates as days, yes and no as 1 and 0; a blank is the median, and told by a feature of its own."""

    def fit(self, column: MixedColumn) -> EncodedColumn:
        values, blank = column.values, column.blank
        self._marks_blanks, self._is_answer = bool(blank.any()), column.kind == "yes or no"
        if blank.all():
            self._empty = True
            return EncodedColumn(column.name, column.kind, "left out: every cell is blank", 0, looks_at_data=True)
        self._empty = False
        self._median = float(np.median(values[~blank]))
        if not self._is_answer:
            scaler = extra("sklearn.preprocessing").StandardScaler()
            self._scaler = scaler.fit(self._fill_blanks(values))
        by = "1 and 0" if self._is_answer else "mean 0, spread 1: StandardScaler"
        if column.kind == "date":
            by = f"days, {by}"
        if self._marks_blanks:
            by += ", blanks marked" if self._is_answer else f", {int(blank.sum()):,} blanks as the median and marked"
        looked = self._marks_blanks or not self._is_answer
        return EncodedColumn(column.name, f"{column.kind}s".replace("nos", "no"), by, 1 + self._marks_blanks, looked)

    def _fill_blanks(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        fill = 0.5 if self._is_answer else self._median
        return np.where(np.isnan(values), fill, values)[:, None]

    def transform(self, column: MixedColumn) -> NDArray[np.float32]:
        if self._empty:
            return np.empty((len(column.values), 0), dtype=np.float32)
        filled = self._fill_blanks(column.values)
        if not self._is_answer:
            filled = np.clip(self._scaler.transform(filled), -LARGEST_SPREADS, LARGEST_SPREADS)
        marked = [filled, column.blank[:, None]] if self._marks_blanks else [filled]
        return np.hstack(marked).astype(np.float32)
