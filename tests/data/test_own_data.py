"""A user's own files and functions, good and bad, and the one door `load`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deniable.data import NAMES, from_arrays, load

TABLE = np.array([[0.5, -2.0], [1.25, 3.0], [0.0, 1e-3]], dtype=np.float32)
LABELS = np.array([0, 2, 1])


@pytest.mark.parametrize("names", [("X", "y"), ("features", "labels")])
def test_npz(tmp_path: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "mine.npz"
    np.savez(
        path, **{names[0]: TABLE.astype(np.float64), names[1]: LABELS.astype(np.float32)}, other=np.array(["words"])
    )
    data = load(path)
    np.testing.assert_array_equal(data.features, TABLE)
    np.testing.assert_array_equal(data.labels, LABELS)
    assert (data.name, data.classes, data.kind) == ("mine", 3, "table")
    assert load(str(path)).sha256 == data.sha256


def test_npz_without_the_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", inputs=TABLE, y=LABELS)
    with pytest.raises(ValueError, match=r"mine.npz must hold arrays X and y .*, it holds inputs, y"):
        load(tmp_path / "mine.npz")


def test_kinds() -> None:
    assert from_arrays("bits", np.eye(3, dtype=bool), LABELS).kind == "binary"
    grey = from_arrays("grey", np.full((3, 9, 8), 51, dtype=np.uint8), LABELS)
    assert grey.kind == "image"
    assert np.all(grey.features == np.float32(0.2))
    assert from_arrays("colour", np.zeros((3, 3, 9, 8)), LABELS).features.shape == (3, 3, 9, 8)


@pytest.mark.parametrize(
    ("features", "labels", "fault"),
    [
        (np.array([["a"], ["b"]]), [0, 1], "must be numbers of shape"),
        (np.zeros(3), [0, 1, 0], "must be numbers of shape"),
        (np.zeros((0, 3)), [], "must be numbers of shape"),
        (np.zeros((2, 3)), [0], "must be one a record, 2 in all"),
        (np.zeros((2, 3)), [0, -1], "whole numbers >= 0"),
        (np.zeros((2, 3)), [0, 0.5], "whole numbers >= 0"),
        (np.zeros((2, 3)), [0, np.nan], "whole numbers >= 0"),
        (np.zeros((2, 3)), ["cat", "dog"], "whole numbers >= 0"),
        (np.array([[1.0], [np.nan]]), [0, 1], "record 1 is not: drop or fill it"),
        (np.array([[1.0], [1e300]]), [0, 1], "record 1 is not: drop or fill it"),
    ],
)
def test_bad_arrays(features: np.ndarray, labels: list[float], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        from_arrays("mine", features, np.array(labels))


@pytest.mark.parametrize(
    ("text", "label", "features", "labels"),
    [
        ("a,label,b\n1,0,2\n3,1,4\n", None, [[1, 2], [3, 4]], [0, 1]),
        ("a,b,c\n1,0,2\n3,1,4\n", None, [[1, 0], [3, 1]], [2, 4]),
        ("a, b ,c\r\n1,0,2\r\n3,1,4\r\n", "b", [[1, 2], [3, 4]], [0, 1]),
        ("1,0,2\n3,1,4", None, [[1, 0], [3, 1]], [2, 4]),
        ('\ufeff"a","label"\n"1.5","0"\n\n-2e-1,1\n', None, [[1.5], [-0.2]], [0, 1]),
    ],
)
def test_csv(tmp_path: Path, text: str, label: str | None, features: list[list[float]], labels: list[int]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8", newline="")
    data = load(path, label=label)
    np.testing.assert_array_equal(data.features, np.array(features, dtype=np.float32))
    assert data.labels.tolist() == labels


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "must have at least one feature column and a label column"),
        ("label\n1\n", "must have at least one feature column and a label column"),
        ("a,label\n", "has a header line but no records"),
        ("a,label\n1,0\nred,1\n", "line 3: column 'a' is 'red', not a number"),
        ("a,label\n1,0\n,1\n", "line 3: column 'a' is missing"),
        ("a,label\n1,0\nnan,1\n", "line 3: column 'a' is 'nan', not a number"),
        ("a,label\n1,inf\n", "line 2: column 'label' is 'inf', not a number"),
        ("a,label\n1,0\n1,2,3\n", "line 3 has 3 cells, the first line has 2"),
        ("a,label\n1,0.5\n", "labels of mine must be whole numbers"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=fault):
        load(path)


def test_csv_without_the_named_column(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n1,0\n")
    with pytest.raises(ValueError, match="has no column 'income': its columns are a, b"):
        load(path, label="income")
    path.write_text("1,0\n1,1\n")
    with pytest.raises(ValueError, match="has no column 'income': it has no header line"):
        load(path, label="income")


def pair() -> tuple[np.ndarray, np.ndarray]:
    return TABLE, LABELS


def test_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(pair).name == "pair"
    code = "import numpy as np\ndef rows():\n    return np.eye(2), np.arange(2)\ndef one():\n    return 1\nnumber = 3\n"
    (tmp_path / "own_rows_module.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert load("own_rows_module:rows").kind == "binary"
    with pytest.raises(ValueError, match=r"own_rows_module:one must return a pair .* got int"):
        load("own_rows_module:one")
    with pytest.raises(ValueError, match="has no function 'number'"):
        load("own_rows_module:number")
    with pytest.raises(ValueError, match="there is no module 'no_such_module'"):
        load("no_such_module:rows")


def test_unknown_sources(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"data must be one of {', '.join(NAMES)}, an .npz or .csv file .* got minst"):
        load("minst")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone.csv"):
        load(tmp_path / "gone.csv")
    with pytest.raises(ValueError, match=r"label names a column of a .csv file"):
        load("digits", label="a")
    with pytest.raises(ValueError, match="digits has no published train part"):
        load("digits", part="train")
    with pytest.raises(ValueError, match="part must be one of all, train, test, got 'half'"):
        load("digits", part="half")  # type: ignore[arg-type]


def test_classes_keeps_the_most_common() -> None:
    assert len(load("digits", classes=2)) == 183 + 182
