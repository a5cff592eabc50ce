"""Files that lie or burst: refused in a sentence, before they fill the memory."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from deniable.data import load
from deniable.data.files import open_text, read_npz


def npy(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    """An array's file whose header names a shape that its content may not have."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + content


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("shape", [(10**15,), (10**9, 10**9), (100,), (-1,), (2**62, 4)])
def test_an_array_whose_header_lies(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"a\.npz is (not an \.npz of plain arrays|truncated)"):
        read_npz(archive(tmp_path / "a.npz", {"X": npy(shape, bytes(80))}))


def test_an_archive_that_bursts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.data.files.MOST_UNPACKED_BYTES", 2**20)
    zeros = npy((2**17 + 1,), bytes(2**20 + 8))
    with pytest.raises(ValueError, match=r"unpacks to [\d,]+ or more.*write it uncompressed"):
        read_npz(archive(tmp_path / "a.npz", {"X": zeros}))


def test_a_gzipped_text_that_bursts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.data.files.MOST_UNPACKED_BYTES", 100_000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 500_000))
    with pytest.raises(ValueError, match="unpacks to"), open_text(tmp_path / "a.csv.gz") as stream:
        for _ in stream:
            pass
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 10_000))
    with open_text(tmp_path / "b.csv.gz") as stream:
        assert sum(1 for _ in stream) == 10_000


@pytest.mark.parametrize("cell", ["x" * 3_000_000, "1" * 3_000_000, '"' + "1" * 200_000])
def test_an_enormous_cell(tmp_path: Path, cell: str) -> None:
    for text in (f"1,2\n{cell},1\n", f"{cell},1\n1,2\n", f"a,label\n{cell},1\n"):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(ValueError, match=r"a\.csv|features of a") as refused:
            load(tmp_path / "a.csv")
        assert len(str(refused.value)) < 600


@pytest.mark.parametrize("flag", [1, 64])
def test_an_encrypted_archive(tmp_path: Path, flag: int) -> None:
    content = bytearray(archive(tmp_path / "a.npz", {"X": npy((1,), bytes(8))}).read_bytes())
    content[6] |= flag
    content[content.index(b"PK\x01\x02") + 8] |= flag
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"not an \.npz of plain arrays"):
        read_npz(tmp_path / "a.npz")


def test_a_function_of_ones_own_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hostile_mine.py").write_text("def data():\n    return 1 / 0\n")
    (tmp_path / "hostile_typo.py").write_text("def data(:\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="hostile_mine:data raised ZeroDivisionError"):
        load("hostile_mine:data")
    with pytest.raises(ValueError, match="hostile_typo:data raised SyntaxError"):
        load("hostile_typo:data")


def test_an_archive_of_the_future(tmp_path: Path) -> None:
    content = bytearray(archive(tmp_path / "a.npz", {"X": npy((1,), bytes(8))}).read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 137
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"not an \.npz of plain arrays"):
        read_npz(tmp_path / "a.npz")


def test_a_heading_of_another_length(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c,d,label\n1,2\n3,1\n")
    with pytest.raises(ValueError, match="first line has 5 cells"):
        load(tmp_path / "a.csv")
