"""A user's own table with words, dates and blanks: encoded where a training is audited, and the result says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deniable as dn
from deniable.data import load

HEADING = "age,colour,member,answer"
ROWS = ("1.5,red,yes,good", "2.5,blue,no,bad", ",red,no,bad", "4.5,green,yes,good", "3,blue,no,bad", "2,red,yes,good")


def write(place: Path, *rows: str, heading: str = HEADING) -> Path:
    file = place / "mine.csv"
    file.write_text("\n".join([heading, *rows]))
    return file


def test_words_blanks_and_classes_become_numbers(tmp_path: Path) -> None:
    found = load(write(tmp_path, *ROWS), encode=True)
    assert (found.classes, found.labels.tolist()) == (2, [1, 0, 0, 1, 0, 1])  # bad, good
    assert found.by_statistics == ("age", "colour")  # yes and no are 1 and 0, whatever the data
    ((first, behind),) = found.one_hot
    assert np.array_equal(found.features[:, first:behind].argmax(1), [2, 0, 2, 1, 0, 2])  # blue, green, red
    assert np.array_equal(found.features[:, behind], [1, 0, 0, 1, 0, 1])
    filled, marks = found.features[:, 0], found.features[:, 1]
    assert np.array_equal(marks, [0, 0, 1, 0, 0, 0])
    assert filled[2] == pytest.approx((2.5 - filled_mean()) / filled_spread(), abs=1e-6)  # the median of the others


def filled_mean() -> float:
    return float(np.mean([1.5, 2.5, 2.5, 4.5, 3, 2]))


def filled_spread() -> float:
    return float(np.std([1.5, 2.5, 2.5, 4.5, 3, 2]))


def test_numbers_alone_are_left_as_they_are(tmp_path: Path) -> None:
    file = write(tmp_path, "10,0", "20,1", "30,1", heading="age,label")
    found = load(file, encode=True)
    assert found.by_statistics == ()
    assert np.array_equal(found.features[:, 0], [10, 20, 30])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1.5x,red,yes,good", r"record 7: column 'age' is '1.5x', not a number, as most of its cells are"),
        ("1.5,red,yes,", r"record 7: the label 'answer' is missing"),
    ],
)
def test_a_slip_is_named(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load(write(tmp_path, *ROWS, row), encode=True)


def test_two_files_are_not_encoded_apart(tmp_path: Path) -> None:
    """Members and others of an attack come from files of their own: what a word means must not differ."""
    with pytest.raises(ValueError, match="column 'colour' is 'red', not a number"):
        load(write(tmp_path, *ROWS[:2]))


def test_an_audit_says_which_columns_looked_at_the_data(tmp_path: Path) -> None:
    file = write(tmp_path, *ROWS * 5)
    found = dn.audit(file, belief=0.9, records=10, steps=2, trials=4, processes=1, model="logistic")
    assert any("2 columns (age, colour) became numbers by statistics of all records" in note for note in found.notes)
    numbers = write(tmp_path, *(f"{n},{n % 2}" for n in range(20)), heading="age,label")
    plain = dn.audit(numbers, belief=0.9, records=10, steps=2, trials=4, processes=1, model="logistic")
    assert not any("statistics" in note for note in plain.notes)


def test_a_column_of_words_may_be_blank_throughout(tmp_path: Path) -> None:
    """Parquet names a column's kind, whatever it holds."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"age": [1.0, 2.0, 3.0], "note": arrow.array([None] * 3, arrow.string()), "label": ["a", "b", "a"]}
    parquet.write_table(arrow.table(columns), tmp_path / "mine.parquet")
    assert load(tmp_path / "mine.parquet", encode=True).labels.tolist() == [0, 1, 0]
