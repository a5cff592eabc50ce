"""Tables with words, dates, yes and no and blanks become numbers; what looks at the data is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

pytest.importorskip("sklearn", reason="encoding needs the extra 'train'")

from deniable.data.encoding import TableEncoder
from deniable.data.typed_columns import MixedTable, read_mixed_table

TEXT = """age,job,smokes,since,note,income
30,clerk,yes,2001-02-03,,12.5
,nurse,no,2001-02-04,,13
50,clerk,,2001-02-05,,?
40, clerk ,yes,,,11
"""


@pytest.fixture
def table(tmp_path: Path) -> MixedTable:
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    return read_mixed_table(path)


def test_kinds_of_columns(table: MixedTable) -> None:
    kinds = {column.name: column.kind for column in table.columns}
    assert kinds == {
        "age": "number",
        "job": "word",
        "smokes": "yes or no",
        "since": "date",
        "note": "number",
        "income": "number",
    }
    assert np.diff(table["since"].values[:3]).tolist() == [1.0, 1.0]
    assert table["job"].values.tolist() == ["clerk", "nurse", "clerk", "clerk"]
    assert table["income"].blank.tolist() == [False, False, True, False]


def test_parquet_is_read_as_the_same_text(table: MixedTable, tmp_path: Path) -> None:
    (tmp_path / "again.csv").write_text(TEXT)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "again.csv"), tmp_path / "again.parquet")
    found = read_mixed_table(tmp_path / "again.parquet")
    assert found.names == table.names
    assert np.array_equal(found["age"].values, table["age"].values, equal_nan=True)
    assert found["job"].values.tolist() == table["job"].values.tolist()


def test_numbers_are_those_of_a_twin(table: MixedTable) -> None:
    encoder = TableEncoder().fit(table.without("income"))
    x = encoder.transform(table.without("income"))
    age = np.array([30, 40, 50, 40.0])  # the blank is the median
    assert np.allclose(x[:, 0], (age - age.mean()) / age.std())
    assert x[:, 1].tolist() == [0, 1, 0, 0]  # and marked
    assert x[:, 2:4].tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    assert x[:, 4:6].tolist() == [[1, 0], [0, 0], [0.5, 1], [1, 0]]
    assert encoder.one_hot == ((2, 4),)
    assert x.dtype == np.float32
    assert x.shape[1] == sum(told.features for told in encoder.told)


def test_what_looks_at_the_data_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("answer,age,job,y\n" + "yes,1,a,1\nno,2,b,0\n")
    told = {one.name: one.looks_at_data for one in TableEncoder().fit(read_mixed_table(path).without("y")).told}
    assert told == {"answer": False, "age": True, "job": True}


def test_new_words_and_far_numbers_do_not_break_it(table: MixedTable, tmp_path: Path) -> None:
    encoder = TableEncoder().fit(table)
    other = tmp_path / "other.csv"
    other.write_text(TEXT.splitlines()[0] + "\n1e9,pilot,no,1970-01-01,,0\n")
    x = encoder.transform(read_mixed_table(other))
    assert np.isfinite(x).all()
    assert np.abs(x).max() <= 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n", "no records"),
        ("a\n1\n", "at least one column beside the label"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("a,b\n1,2\n3\n", "not a table with a line of names"),
        ("a,b\ninf,1\n2,3\n", "column 'a' is infinite"),
        (",".join(f"c{n}" for n in range(10_001)) + "\n", "10,001 columns, more than 10,000"),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as refused:
        read_mixed_table(path)
    assert "\n" not in str(refused.value)


def test_a_million_columns_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(10**6)) + "\n")
    with pytest.raises(ValueError, match=r"line of more than|columns, more than"):
        read_mixed_table(path)
