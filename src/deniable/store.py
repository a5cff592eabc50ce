"""Trials on disk: one file a campaign, to which every finished block is added with its checksum.

Guarantee: a block counts only if every byte of it is as it was written; a changed one is never used. `save` returns
only when the block is on the disk, so kill -9 or a power cut loses at most the blocks that were still running. Damage
is named with the file and the block, and resuming plays just that block again. One process at a time: the file is
locked from opening to closing, and the lock ends with the process however that ends.

The file is a row of records, each a head of 64 bytes (mark, number, length, SHA-256 of the body, checksum of the head)
and a body. Record -1 holds the settings; record n holds block n: the settings' SHA-256 and the arrays. Every byte is
under a checksum, and each record begins with the mark, so damage to one leaves the others readable. Hand-written for
that: SQLite, which version 0.1.0 used, has checksums neither for its rows nor for its pages.

A campaign's answer (audit.json and its like) lies beside the blocks, with a checksum of its own (`write_document`).
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole

__all__ = [
    "FILE",
    "Store",
    "StoreError",
    "canonical",
    "kept",
    "opened",
    "read_document",
    "replace_file",
    "verified",
    "write_document",
]

FILE = "trials.blocks"
OLD_FILE = "trials.sqlite"
"""Of version 0.1.0, whose blocks have no checksums."""
Arrays = dict[str, NDArray[Any]]

_MARK = b"\x89DnBlk1\n"
_HEAD = struct.Struct("<8sqQ32s8s")
_SETTINGS, _VOID = -1, -2
"""Numbers of records that are not blocks; a void one covers bytes that were damaged."""
_DIGEST_BYTES = 32
_RESUME = "go on with --resume, which plays again what is damaged and keeps the rest"
_LARGEST_DOCUMENT_BYTES = 256 * 2**20
_CHECKSUM = "checksum"
"""The last member of a document on disk: the SHA-256 of all others in their canonical text."""

_log = logging.getLogger(__name__)


class StoreError(OSError):
    """The campaign's file cannot be used as asked; what it holds is unharmed."""


def canonical(settings: Mapping[str, Any]) -> str:
    """Settings as the one JSON text that equal settings have."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: after a crash it is the old or the new one, and on return it is on the disk.

    OSError names the path.
    """
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)  # noqa: PTH105 (named for what it does)
    except OSError as error:
        raise type(error)(error.errno, f"cannot be written ({error.strerror})", str(path)) from error


def write_document(path: Path, document: Mapping[str, Any], indent: int = 2) -> None:
    """Write a JSON document for people and machines, whole or not at all, with its checksum as the last member."""
    plain = json.loads(json.dumps(document, allow_nan=False))  # as it will be read
    sealed = {**plain, _CHECKSUM: _checksum(plain)}
    replace_file(path, (json.dumps(sealed, indent=indent) + "\n").encode())


def verified(document: dict[str, Any]) -> dict[str, Any]:
    """A document that was read, without its checksum; ValueError where it is not as it was written.

    One without a checksum (printed with --json, or of version 0.1.0) is taken as it is. Its text may be laid out anew:
    the checksum is of the values.
    """
    plain = {name: value for name, value in document.items() if name != _CHECKSUM}
    if _CHECKSUM in document and document[_CHECKSUM] != _checksum(plain):
        raise ValueError("a value was changed since it was written: its checksum differs")
    return plain


def _checksum(document: Mapping[str, Any]) -> str:
    return sha256(canonical(document).encode()).hexdigest()


def read_document(path: Path, *needed: str) -> dict[str, Any]:
    """A JSON object from a file; ValueError says what is wrong with one that is damaged or lacks a `needed` key."""
    if path.stat().st_size > _LARGEST_DOCUMENT_BYTES:
        raise ValueError(f"{path} is too large for a document: {path.stat().st_size:,} bytes")
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, it is not JSON ({error}): delete it, or write it again") from error
    lacking = [key for key in needed if not isinstance(document, dict) or key not in document]
    if lacking or not isinstance(document, dict):
        what = f"it has no {lacking[0]!r}" if lacking else "it is no JSON object"
        raise ValueError(f"{path} is damaged or of another kind, {what}: delete it, or write it again")
    try:
        return verified(document)
    except ValueError as error:
        raise ValueError(f"{path} is damaged, {error}: delete it, or write it again") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


class _Record(NamedTuple):
    """Where a record's body lies, and what its head says of it."""

    number: int
    start: int
    length: int
    digest: bytes

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True)
class _Damage:
    """Bytes from `start` to `end` that are no record; `number` is the block, where the head still tells it."""

    start: int
    end: int
    number: int | None

    def __str__(self) -> str:
        match self.number:
            case None:
                what = "in a block whose number is lost"
            case -1:
                what = "in the settings"
            case -2:
                what = "outside its blocks"
            case number:
                what = f"in block {number}"
        return f"{what} (bytes {self.start:,} to {self.end - 1:,})"


class _File:
    """The records of one locked file, in an index that is made once by reading, and checking, all of it."""

    def __init__(self, path: Path, write: bool) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        self._file = open(os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666), "r+b" if write else "rb", 0)  # noqa: SIM115, PTH123
        try:
            _lock(self._file.fileno(), exclusive=write)
            self.records, self.damage = self._scan()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def body(self, record: _Record) -> bytes:
        """A record's body; StoreError names one that is not as it was written."""
        body = self._read(record.start, record.length)
        if len(body) < record.length or sha256(body).digest() != record.digest:
            gap = _Damage(record.start - _HEAD.size, record.end, record.number)
            raise StoreError(f"{self.path} is damaged {gap}: {_RESUME}")
        return body

    def add(self, number: int, body: bytes) -> _Record:
        """Add a record at the end; on return it is on the disk, and after an error the file is as before."""
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._write(end, _head(number, body) + body)
        except BaseException:
            self._file.truncate(end)
            raise
        record = _Record(number, end + _HEAD.size, len(body), sha256(body).digest())
        self.records[number] = record
        return record

    def mend(self) -> None:
        """Put a void record over damaged bytes, and cut off what was not written to its end."""
        for gap in self.damage:
            if gap.end == self._file.seek(0, os.SEEK_END):
                self._file.truncate(gap.start)
            elif gap.end - gap.start < _HEAD.size:
                raise StoreError(f"{self.path} is damaged {gap}, less than a record: name another directory")
            else:
                body = bytes(gap.end - gap.start - _HEAD.size)
                self._write(gap.start, _head(_VOID, body) + body)
        self.damage = []

    def _scan(self) -> tuple[dict[int, _Record], list[_Damage]]:
        records: dict[int, _Record] = {}
        damage: list[_Damage] = []
        place, size = 0, self._file.seek(0, os.SEEK_END)
        while place < size:
            record = self._record(place)
            if record is not None and self._is_whole(record):
                records[record.number] = record
                place = record.end
                continue
            following = self._next_record(place + 1, size)
            damage.append(_Damage(place, following, None if record is None else record.number))
            place = following
        records.pop(_VOID, None)
        return records, damage

    def _record(self, place: int) -> _Record | None:
        """What the head at `place` says, if it is one."""
        head = self._read(place, _HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(_MARK) or head[-8:] != sha256(head[:-8]).digest()[:8]:
            return None
        _, number, length, digest, _ = _HEAD.unpack(head)
        return _Record(number, place + _HEAD.size, length, digest)

    def _is_whole(self, record: _Record) -> bool:
        try:
            self.body(record)
        except StoreError:
            return False
        return True

    def _next_record(self, place: int, size: int) -> int:
        """Where the next whole head begins, from `place` on; the file's end if there is none."""
        rest = self._read(place, size - place)
        at = rest.find(_MARK)
        while at >= 0 and self._record(place + at) is None:
            at = rest.find(_MARK, at + 1)
        return size if at < 0 else place + at

    def _read(self, place: int, length: int) -> bytes:
        self._file.seek(place)
        return self._file.read(min(length, max(0, os.fstat(self._file.fileno()).st_size - place)))

    def _write(self, place: int, content: bytes) -> None:
        self._file.seek(place)
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())


class Store:
    """The finished blocks of one campaign in `directory`; use it in a `with` statement.

    A directory that holds a campaign is continued with `resume` only, and only under the very same settings. They may
    be told later by `begin`, so that a directory in use is refused before the work of finding them. Damaged blocks are
    told to the log (which prints on standard error) and count as not yet played.
    """

    def __init__(self, directory: Path | str, settings: Mapping[str, Any] | None = None, resume: bool = False) -> None:
        self.directory = Path(directory)
        self.path = self.directory / FILE
        self._settings_digest = bytes(_DIGEST_BYTES)
        with _plainly(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            _refuse_old(self.directory)
            self._file = _File(self.path, write=True)
        try:
            self._claim(resume)
            if settings is not None:
                self.begin(settings)
        except BaseException:
            self._file.close()
            raise

    @property
    def is_new(self) -> bool:
        """Whether no campaign was begun here."""
        return not self._file.records and not self._file.damage

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make the file this campaign's, or check that it is."""
        text = canonical(settings)
        self._settings_digest = sha256(text.encode()).digest()
        held = self._file.records.get(_SETTINGS)
        if held is not None:
            self._agree(self._file.body(held).decode(), json.loads(text))
        self._refuse_foreign_blocks()
        with _plainly(self.directory):
            if self._file.damage:
                self._tell_damage()
                self._file.mend()
            if held is None:
                self._file.add(_SETTINGS, text.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def finished(self) -> list[int]:
        """The numbers of the finished blocks, in ascending order."""
        return sorted(number for number in self._file.records if number >= 0)

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add one finished block; on return it is on the disk."""
        if whole("number", number, low=0) in self._file.records:
            raise StoreError(f"{self.path} holds block {number} already: a block is saved once")
        body = self._settings_digest + _to_bytes(arrays)
        with _plainly(self.directory):
            self._file.add(number, body)

    def load(self, number: int) -> Arrays:
        """The arrays of one finished block; StoreError names one that was damaged since the file was opened."""
        if number not in self._file.records:
            raise StoreError(f"{self.path} holds no block {number}")
        with _plainly(self.directory):
            return _from_bytes(self._file.body(self._file.records[number])[_DIGEST_BYTES:])

    def _claim(self, resume: bool) -> None:
        """What the file holds must be to be continued."""
        if self.is_new:
            return
        if not self._file.records:
            raise _damaged(self.path, self._file)
        if not resume:
            raise StoreError(
                f"{self.directory} already holds a campaign ({len(self.finished())} blocks finished): go on with "
                "--resume, or name another directory"
            )

    def _agree(self, text: str, settings: dict[str, Any]) -> None:
        changed = list(_differences(json.loads(text), settings))
        if changed:
            raise StoreError(
                f"{self.directory} was begun with other settings: {'; '.join(changed)}. Give the old ones to resume, "
                "or name another directory"
            )

    def _refuse_foreign_blocks(self) -> None:
        """Blocks tell the settings that they were played under, also where the settings themselves are damaged."""
        for number in self.finished():
            with _plainly(self.directory):
                under = self._file.body(self._file.records[number])[:_DIGEST_BYTES]
            if under != self._settings_digest:
                raise StoreError(
                    f"{self.directory} was begun with other settings: block {number} of {self.path} was played under "
                    "others. Give the old ones to resume, or name another directory"
                )

    def _tell_damage(self) -> None:
        for gap in self._file.damage:
            again = "they are written again" if gap.number == _SETTINGS else "it is played again"
            _log.warning("%s is damaged %s: %s, all other blocks are kept", self.path, gap, again)


def kept(directory: Path | str) -> tuple[dict[str, Any], list[Arrays]]:
    """A campaign's settings and its finished blocks in order, read without changing anything or waiting for anybody.

    StoreError names damage anywhere in the file.
    """
    path = Path(directory) / FILE
    with _plainly(path.parent):
        _refuse_old(path.parent)
        file = _File(path, write=False)
        try:
            if file.damage:
                raise _damaged(path, file)
            if _SETTINGS not in file.records:
                raise StoreError(f"{path} is empty: its campaign was not begun; go on with --resume")
            bodies = {number: file.body(record) for number, record in sorted(file.records.items())}
        finally:
            file.close()
    text = bodies.pop(_SETTINGS)
    digest = sha256(text).digest()
    foreign = next((number for number, body in bodies.items() if not body.startswith(digest)), None)
    if foreign is not None:
        raise StoreError(f"{path}: block {foreign} was played under other settings; name another directory")
    return json.loads(text), [_from_bytes(body[_DIGEST_BYTES:]) for body in bodies.values()]


def opened(directory: Path | str | None, resume: bool = False) -> AbstractContextManager[Store | None]:
    """A campaign's store, or None without a directory: opened before planning, so that one in use is refused at once.

    The campaign's settings are told when they are known (`Store.begin`). That there is nothing to resume is logged.
    """
    if directory is not None:
        store = Store(directory, resume=resume)
        if resume and store.is_new:
            _log.warning("%s holds nothing to resume: the campaign starts anew", directory)
        return store
    if resume:
        raise ValueError("resume needs out, the directory of the campaign to go on with")
    return nullcontext()


def _damaged(path: Path, file: _File) -> StoreError:
    if not file.records:
        return StoreError(f"{path} is not a campaign's file, or damaged throughout: name another directory")
    said = "; ".join(map(str, file.damage[:5])) + ("; ..." if len(file.damage) > 5 else "")
    return StoreError(f"{path} is damaged {said}: {_RESUME}")


def _refuse_old(directory: Path) -> None:
    if (directory / OLD_FILE).exists() and not (directory / FILE).exists():
        raise StoreError(
            f"{directory / OLD_FILE} was written by deniable 0.1.0, without checksums, and is not read any more: "
            "play the campaign again in another directory"
        )


def _lock(descriptor: int, exclusive: bool) -> None:
    """Lock the file against other processes, or raise BlockingIOError where one holds it."""
    try:
        import fcntl  # noqa: PLC0415 (there is none on Windows)
    except ModuleNotFoundError:
        _lock_on_windows(descriptor)
    else:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)


def _lock_on_windows(descriptor: int) -> None:
    import msvcrt  # noqa: PLC0415

    try:
        os.lseek(descriptor, 2**40, os.SEEK_SET)  # one byte far behind the end, since locked bytes cannot be read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except OSError as error:
        raise BlockingIOError(*error.args) from error


@contextmanager
def _plainly(directory: Path) -> Iterator[None]:
    """Whatever the disk refuses, in a sentence that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(_plain(directory, error)) from error


def _plain(directory: Path, error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return f"another process is working in {directory}: wait for it, or name another directory"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no space is left for {directory}: free some and resume, all finished blocks are kept"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR):
        return f"{directory} cannot be written ({error.strerror}): make it writable, or name another directory"
    if error.errno == errno.EIO:
        return f"{directory / FILE} cannot be read or written ({error.strerror}): see the disk, then resume"
    return f"{directory} cannot be made or written ({error.strerror or error}): name another directory"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            before, now = (json.dumps(settings.get(name)) for settings in (old, new))
            yield f"{name} was {before}, now {now}"


def _head(number: int, body: bytes) -> bytes:
    head = _HEAD.pack(_MARK, number, len(body), sha256(body).digest(), b"")[:-8]
    return head + sha256(head).digest()[:8]


def _to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays' names as a line of JSON, then the arrays, each as NumPy writes it."""
    buffer = io.BytesIO()
    buffer.write(json.dumps(list(arrays)).encode() + b"\n")
    for array in arrays.values():
        np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _from_bytes(body: bytes) -> Arrays:
    buffer = io.BytesIO(body)
    names = json.loads(buffer.readline())
    return {name: np.load(buffer, allow_pickle=False) for name in names}
