"""Where files come from, and what is said of those that are missing, altered or damaged."""

from __future__ import annotations

import hashlib
import io
import logging
import pickle
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest

from deniable.data import files
from deniable.data.files import PublishedFile, locate, open_text, read_npz, read_tar_table

CONTENT = b"some published content"
KNOWN = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    logging.getLogger("pooch").setLevel(logging.ERROR)
    root = tmp_path_factory.mktemp("served")
    with HTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(root))) as httpd:
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        yield root, f"http://127.0.0.1:{httpd.server_port}/"
        httpd.shutdown()


def test_the_first_file_in_the_folder_is_taken(folder: Path) -> None:
    (folder / "second").write_bytes(CONTENT)
    first, second = PublishedFile("first"), PublishedFile("second", ("0" * 64, KNOWN))
    assert locate("data", first, second) == folder / "second"
    (folder / "first").write_bytes(b"anything: its checksum is unknown")
    assert locate("data", first, second) == folder / "first"


def test_an_altered_file_is_named_with_both_checksums(folder: Path) -> None:
    (folder / "file").write_bytes(CONTENT[:-1])
    actual = hashlib.sha256(CONTENT[:-1]).hexdigest()
    with pytest.raises(ValueError, match=rf"file is truncated or altered: .* {actual}, expected {KNOWN}; delete it"):
        locate("data", PublishedFile("file", (KNOWN,), origin="the archive"))


def test_a_missing_file_without_address_says_what_to_put_where(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choices = PublishedFile("a.tgz", origin="from the authors"), PublishedFile("a.npz", (KNOWN,))
    with pytest.raises(FileNotFoundError, match=rf"put a.tgz \(from the authors\) or a.npz .* folder {folder} "):
        locate("data", *choices)
    monkeypatch.delenv("DENIABLE_DATA")
    with pytest.raises(FileNotFoundError, match="into a folder and name it in DENIABLE_DATA"):
        locate("data", *choices)


def test_download_once_then_from_the_cache(folder: Path, server: tuple[Path, str]) -> None:
    root, address = server
    (root / "file").write_bytes(CONTENT)
    published = PublishedFile("file", (KNOWN,), address + "file")
    assert locate("data", published).read_bytes() == CONTENT
    (root / "file").unlink()
    assert locate("data", published).read_bytes() == CONTENT


def test_a_wrong_download_is_refused(folder: Path, server: tuple[Path, str]) -> None:
    root, address = server
    (root / "file").write_bytes(CONTENT + b"!")
    with pytest.raises(ValueError, match=f"(?s){KNOWN}.*{hashlib.sha256(CONTENT + b'!').hexdigest()}"):
        locate("data", PublishedFile("file", (KNOWN,), address + "file"))
    assert not list((folder / "cache").rglob("file"))


def test_offline_says_what_to_put_where(folder: Path, server: tuple[Path, str]) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot be fetched \(HTTPError\); data needs .* put gone "):
        locate("data", PublishedFile("gone", (KNOWN,), server[1] + "gone"))
    with pytest.raises(FileNotFoundError, match=r"cannot be fetched \(ConnectionError\); data needs .* put gone "):
        locate("data", PublishedFile("gone", (KNOWN,), "http://127.0.0.1:9/gone"))


class _Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    inside, bare = tmp_path / "inside.npz", tmp_path / "bare.npz"
    np.savez(inside, X=np.array([_Bomb()], dtype=object))
    bare.write_bytes(pickle.dumps(_Bomb()))
    for path in (inside, bare):
        with pytest.raises(ValueError, match=rf"{path.name} is not an .npz of plain arrays"):
            read_npz(path)


@pytest.mark.parametrize("keep", [0, 3, 200, 2000])
def test_a_truncated_npz_is_named(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).random(1000), y=np.arange(1000))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"cut.npz is (truncated or damaged|not an .npz)"):
        read_npz(path)


def test_a_flipped_byte_is_named(tmp_path: Path) -> None:
    path = tmp_path / "flipped.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).random(1000))
    content = bytearray(path.read_bytes())
    content[3000] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"flipped.npz is truncated or damaged"):
        read_npz(path)


def packed(path: Path, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def test_tables_in_archives(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tgz", table='"7",0,1\n"12",1,1\n', words="a,b\n", nothing="")
    assert read_tar_table(path, "table").tolist() == [[7, 0, 1], [12, 1, 1]]
    with pytest.raises(ValueError, match=r"words in .*a.tgz is truncated, or not a table"):
        read_tar_table(path, "words")
    with pytest.raises(ValueError, match=r"member 'nothing' of .* is empty"):
        read_tar_table(path, "nothing")
    with pytest.raises(ValueError, match="has no member 'other'"):
        read_tar_table(path, "other")
    big = packed(tmp_path / "big.tgz", table="".join(f"{i % 97},{i % 2}\n" for i in range(20_000)))
    big.write_bytes(big.read_bytes()[:-60])
    with pytest.raises(ValueError, match=r"big.tgz is truncated or damaged"):
        read_tar_table(big, "table")


def test_damaged_text_is_named(tmp_path: Path) -> None:
    for name, content in (("a.gz", b"\x1f\x8b\x08\x00broken"), ("b.gz", b"plain"), ("c.csv", b"\xff\xfe\x00")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name} is truncated or damaged"), open_text(tmp_path / name) as stream:
            stream.read()


def test_a_missing_extra_names_the_remedy() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'deniable\[train\]'"):
        files.extra("no_such_module")
