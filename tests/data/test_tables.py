"""Tables by Arrow: CSV, gzipped CSV and Parquet say the same; what Arrow refuses is read or named row by row."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from deniable.data import load, table_reader
from deniable.data import scores_file as file
from deniable.data.scores_file import read_rows, read_scores

SCORES = {"score": [0.5, -0.25, 3.0], "member": [1, 0, 1], "run": ["a", "b", "a"]}
CSV = "score,member,run\n0.5,1,a\n-0.25,0,b\n3,1,a\n"


def written(path: Path, columns: dict[str, object]) -> Path:
    pyarrow.parquet.write_table(arrow.table(columns), path)
    return path


def test_scores_of_every_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    written(tmp_path / "a.parquet", SCORES)
    written(tmp_path / "b.parquet", {"extra": [1, 2, 3], **SCORES, "member": [True, False, True]})
    for name in ("a.csv", "a.csv.gz", "a.parquet", "b.parquet"):
        rows = read_rows(tmp_path / name)
        assert rows.score.tolist() == SCORES["score"], name
        assert rows.member.tolist() == [True, False, True], name
        assert rows.run is not None
        assert rows.run.tolist() == [0, 1, 0], name


@pytest.mark.parametrize("member", [["1", "0", "TRUE"], [1.0, 0.0, 1.0], [True, False, True]])
@pytest.mark.parametrize("score", [["0.5", " -.25 ", "+3"], [0.5, -0.25, 3.0]])
def test_parquet_columns_of_any_type(tmp_path: Path, member: list[object], score: list[object]) -> None:
    scores = read_scores(written(tmp_path / "a.parquet", {"member": member, "SCORE": score}))
    assert (scores.members.tolist(), scores.others.tolist()) == ([0.5, 3.0], [-0.25])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"score": [1.0, None], "member": [1, 0]}, "row 2: score must be a finite number, got ''"),
        ({"score": [1.0, float("nan")], "member": [1, 0]}, "row 2: score must be a finite number, got 'nan'"),
        ({"score": [1.0, 2.0], "member": [1, 3]}, "row 2: member must be 0, 1, true or false, got '3'"),
        ({"score": [1.0, 2.0], "member": [1, 0], "run": ["a", None]}, "row 2: run must name the row's training"),
        ({"score": ["x", "y"], "member": [1, 0]}, "row 1: score must be a finite number, got 'x'"),
        ({"score": [[1], [2]], "member": [1, 0]}, "row 1: score must be a finite number"),
        ({"score": [1.0, 2.0], "label": [1, 0]}, "no column 'member'"),
        ({"score": [1.0, 2.0], "member": [1, 1]}, "has member 1 in all 2 rows"),
        ({"score": arrow.array([], arrow.float64()), "member": arrow.array([], arrow.int64())}, "has no rows"),
    ],
)
def test_bad_parquet_scores_are_named(tmp_path: Path, columns: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_scores(written(tmp_path / "a.parquet", columns))


def test_own_data_of_every_kind_of_file(tmp_path: Path) -> None:
    text = "a,label,b\n1.5,0,2\n3,1,-4e-1\n"
    (tmp_path / "mine.csv").write_text(text)
    (tmp_path / "mine.csv.gz").write_bytes(gzip.compress(text.encode()))
    written(tmp_path / "mine.parquet", {"a": [1.5, 3.0], "label": [0, 1], "b": [2.0, -0.4]})
    plain = load(tmp_path / "mine.csv")
    for name in ("mine.csv.gz", "mine.parquet"):
        other = load(tmp_path / name, label="label")
        assert (other.name, other.sha256) == ("mine", plain.sha256)
    with pytest.raises(ValueError, match="row 2: column 'a' is missing"):
        load(written(tmp_path / "gap.parquet", {"a": [1.0, None], "label": [0, 1]}))
    with pytest.raises(ValueError, match="row 1: column 'a' is 'red', not a number"):
        load(written(tmp_path / "words.parquet", {"a": ["red", "2"], "label": [0, 1]}))


def test_every_number_is_rounded_correctly(tmp_path: Path) -> None:
    """Doubles of all magnitudes by their bits, and decimals next to the middle between two doubles."""
    bits = np.random.default_rng(0).integers(0, 2**64, 3000, dtype=np.uint64)
    doubles = [value for value in struct.unpack("<3000d", bits.tobytes()) if np.isfinite(value)]
    texts = [repr(value) for value in doubles] + [f"{value:.25e}" for value in doubles]
    texts += [
        "9007199254740993",
        "9007199254740993.00000000000000000000001",
        "2.2250738585072011e-308",
        "1e23",
        "5e-324",
    ]
    (tmp_path / "a.csv").write_text("score,member\n" + "\n".join(f"{text},{i % 2}" for i, text in enumerate(texts)))
    assert read_rows(tmp_path / "a.csv").score.tolist() == [float(text) for text in texts]


def cells(good: list[str], odd: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(good) | st.sampled_from(good) | st.sampled_from(good + odd)


ROW = st.tuples(
    cells(["1", "+.5", " 2 ", "-1e-3"], ["nan", "1e999", "", "x", '"3"', '"1"2', "1_0", "0x1", "1,2"]),
    cells(["1", "0", "true", " FALSE", "1.0"], ["2", "", '"1"']),
    cells(["a", " a", "b"], ["", '"c"']),
).map(",".join)
TEXT = st.lists(ROW | ROW | ROW | st.sampled_from(["", " ", ",,"]), min_size=1, max_size=3).map("\n".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much], max_examples=100)
@given(text=TEXT, end=st.sampled_from(["", "\n", "\r\n"]))
def test_arrow_reads_what_rows_read(tmp_path: Path, text: str, end: str) -> None:
    """The quick way gives what the careful way gives, or nothing; it never reads what the careful way refuses."""
    place = tmp_path / "a.csv"
    place.write_text(f"score,member,run\n{text}{end}", newline="")
    heading = file._Heading(place, ["score", "member", "run"])
    quick = file._quickly(place, heading)
    assume(quick is not None)
    careful = file._carefully(place, heading)
    for one, other in ((quick.score, careful.score), (quick.member, careful.member), (quick.run, careful.run)):
        np.testing.assert_array_equal(one, other)


def test_most_plain_files_go_the_quick_way(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    heading = file._Heading(tmp_path / "a.csv", ["score", "member", "run"])
    assert file._quickly(tmp_path / "a.csv", heading) is not None


def test_a_cell_that_goes_on_after_its_quotation_mark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('score,member\n1,1\n"1"2,0\n')
    with pytest.raises(ValueError, match="near line 2"):
        read_scores(tmp_path / "a.csv")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reader, "LONGEST_LINE_BYTES", 1000)
    for text in ("score,member\n1,1\n" + "x" * 3000, "x" * 3000):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(ValueError, match="has a line of more than 1,000 bytes"):
            read_scores(tmp_path / "a.csv")


def test_what_arrow_unpacks_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.data.files.MOST_UNPACKED_BYTES", 100_000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"score,member\n" + b"1,0\n2,1\n" * 200_000))
    written(tmp_path / "a.parquet", {"score": np.ones(10**6), "member": np.ones(10**6, bool)})
    for name in ("a.csv.gz", "a.parquet"):
        with pytest.raises(ValueError, match="unpacks to"):
            read_scores(tmp_path / name)


def test_any_flipped_byte_of_a_parquet_file_is_refused_in_a_sentence_or_read(tmp_path: Path) -> None:
    """Among them places beyond the file's own list of words, and bytes that are no text."""
    place = written(tmp_path / "a.parquet", {"score": np.arange(40.0), "member": [1, 0] * 20, "run": ["kk", "ll"] * 20})
    content, refusals = place.read_bytes(), []
    for at in range(0, len(content), 2):
        place.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            read_rows(place)
        except ValueError as error:
            refusals.append(type(error))
    assert len(refusals) > 400
    assert set(refusals) == {ValueError}


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    place = written(tmp_path / "a.parquet", SCORES)
    content = place.read_bytes()
    for broken in (b"", b"score,member\n1,0\n", content[:-7], content[: len(content) // 2], content[::-1]):
        place.write_bytes(broken)
        with pytest.raises(ValueError, match=r"a\.parquet is truncated or damaged"):
            read_scores(place)
