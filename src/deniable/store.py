"""Trials on disk: one SQLite file a campaign, one row a finished block, nothing that a crash could half write.

Guarantee: a block is in the file wholly or not at all, and `save` returns only when it is on the disk; so kill -9 or
a power cut loses at most the blocks that were still running. One process at a time: SQLite's exclusive lock is held
from opening to closing, and ends with the process however that ends.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole

__all__ = ["FILE", "Store", "StoreError", "canonical", "kept", "opened", "replace_file"]

FILE = "trials.sqlite"
Arrays = dict[str, NDArray[Any]]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS campaign (settings TEXT NOT NULL, sha256 TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS blocks (number INTEGER NOT NULL, name TEXT NOT NULL, npy BLOB NOT NULL, "
    "PRIMARY KEY (number, name))",
)


class StoreError(OSError):
    """The campaign's file cannot be used as asked; what it holds is unharmed."""


def canonical(settings: Mapping[str, Any]) -> str:
    """Settings as the one JSON text that equal settings have."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: after a crash it is the old or the new one, and on return it is on the disk."""
    draft = path.with_name(path.name + ".part")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)  # noqa: PTH105 (named for what it does)


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document for people and machines, whole or not at all."""
    replace_file(path, (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())


class Store:
    """The finished blocks of one campaign in `directory`; use it in a `with` statement.

    A directory that holds a campaign is continued with `resume` only, and only under the very same settings. They may
    be told later by `begin`, so that a directory in use is refused before the work of finding them.
    """

    def __init__(self, directory: Path | str, settings: Mapping[str, Any] | None = None, resume: bool = False) -> None:
        self.directory = Path(directory)
        self.path = self.directory / FILE
        with self._plainly():
            self.directory.mkdir(parents=True, exist_ok=True)
            # Autocommit: every transaction is written out below.
            self._database = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        try:
            self._claim(resume)
            if settings is not None:
                self.begin(settings)
        except BaseException:
            self._database.close()
            raise

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make the file this campaign's, or check that it is."""
        text = canonical(settings)
        held = self._held()
        if held is not None:
            self._agree(held[0], json.loads(text))
            return
        with self._plainly(), self._transaction():
            self._database.execute("INSERT INTO campaign VALUES (?, ?)", (text, _digest(text)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def finished(self) -> list[int]:
        """The numbers of the finished blocks, in ascending order."""
        with self._plainly():
            return [number for (number,) in self._database.execute("SELECT DISTINCT number FROM blocks ORDER BY 1")]

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add one finished block; on return it is on the disk."""
        rows = [(whole("number", number, low=0), name, _to_bytes(array)) for name, array in arrays.items()]
        with self._plainly(), self._transaction():
            self._database.executemany("INSERT INTO blocks VALUES (?, ?, ?)", rows)

    def load(self, number: int) -> Arrays:
        """The arrays of one finished block."""
        with self._plainly():
            rows = self._database.execute("SELECT name, npy FROM blocks WHERE number = ? ORDER BY name", (number,))
            return {name: _from_bytes(npy) for name, npy in rows}

    def _claim(self, resume: bool) -> None:
        """Lock the file; what it holds must be unharmed and to be continued."""
        with self._plainly():
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA synchronous = EXTRA")
            with self._transaction():
                for table in _TABLES:
                    self._database.execute(table)
        held = self._held()
        if held is not None and _digest(held[0]) != held[1]:
            raise StoreError(f"{self.path} is damaged: its settings do not match their checksum; use another directory")
        if held is not None and not resume:
            blocks = len(self.finished())
            raise StoreError(
                f"{self.directory} already holds a campaign ({blocks} blocks finished): go on with --resume, or name "
                "another directory"
            )

    def _held(self) -> tuple[str, str] | None:
        """Settings and their checksum, if a campaign was begun."""
        with self._plainly():
            row: tuple[str, str] | None = self._database.execute("SELECT settings, sha256 FROM campaign").fetchone()
            return row

    def _agree(self, text: str, settings: dict[str, Any]) -> None:
        changed = list(_differences(json.loads(text), settings))
        if changed:
            raise StoreError(
                f"{self.directory} was begun with other settings: {'; '.join(changed)}. Give the old ones to resume, "
                "or name another directory"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN EXCLUSIVE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Whatever the disk or SQLite refuses, in a sentence that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(_plain(self.directory, error)) from error
        except OSError as error:
            reason = f"{self.directory} cannot be made or written ({error.strerror or error})"
            raise StoreError(f"{reason}: name another directory") from error


def kept(directory: Path | str) -> tuple[dict[str, Any], list[Arrays]]:
    """A campaign's settings and its finished blocks in order, read without changing anything or waiting for anybody."""
    path = Path(directory) / FILE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=0, uri=True)) as database:
            if not _whole(database, path):
                raise StoreError(f"{path} is damaged: it ends too early, or its pages are not whole")
            settings = database.execute("SELECT settings, sha256 FROM campaign").fetchone()
            rows = database.execute("SELECT number, name, npy FROM blocks ORDER BY number, name").fetchall()
            blocks: dict[int, Arrays] = {}
            for number, name, npy in rows:
                blocks.setdefault(number, {})[name] = _from_bytes(npy)
    except sqlite3.Error as error:
        raise StoreError(_plain(path.parent, error)) from error
    except (ValueError, EOFError) as error:
        raise StoreError(f"{path} is damaged: a block cannot be read ({error})") from error
    if settings is None or _digest(settings[0]) != settings[1]:
        raise StoreError(f"{path} is damaged: its settings are missing or do not match their checksum")
    return json.loads(settings[0]), list(blocks.values())


def _whole(database: sqlite3.Connection, path: Path) -> bool:
    """Every page is there to its end, which SQLite itself does not ask of the last one, and none is damaged."""
    pages, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    checked: tuple[str] = database.execute("PRAGMA quick_check(1)").fetchone()
    return pages * size == path.stat().st_size and checked == ("ok",)


def opened(directory: Path | str | None, resume: bool = False) -> AbstractContextManager[Store | None]:
    """A campaign's store, or None without a directory: opened before planning, so that one in use is refused at once.

    The campaign's settings are told when they are known (`Store.begin`).
    """
    if directory is not None:
        return Store(directory, resume=resume)
    if resume:
        raise ValueError("resume needs out, the directory of the campaign to go on with")
    return nullcontext()


def _plain(directory: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without the details in the upper bits
    return {
        sqlite3.SQLITE_BUSY: f"another process is working in {directory}: wait for it, or name another directory",
        sqlite3.SQLITE_FULL: f"no space is left for {directory}: free some and resume, all finished blocks are kept",
        sqlite3.SQLITE_READONLY: f"{directory} cannot be written: make it writable, or name another directory",
        sqlite3.SQLITE_CANTOPEN: f"{directory} cannot be written: make it writable, or name another directory",
        sqlite3.SQLITE_NOTADB: f"{directory / FILE} is not a campaign's file: name another directory",
        sqlite3.SQLITE_CORRUPT: f"{directory / FILE} is damaged: name another directory",
    }.get(code, f"{directory / FILE} cannot be used ({error}): see the disk, then resume")


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            before, now = (json.dumps(settings.get(name)) for settings in (old, new))
            yield f"{name} was {before}, now {now}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _to_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _from_bytes(npy: bytes) -> NDArray[Any]:
    array: NDArray[Any] = np.load(io.BytesIO(npy), allow_pickle=False)
    return array
