"""A file of records, each under a checksum: a changed one is never used, and damage to one leaves the others readable.

A record is a head of 64 bytes (mark, number, length, SHA-256 of the body, checksum of the head) and a body. Written by
hand, since SQLite, which version 0.1.0 used, has checksums neither for its rows nor for its pages.
"""

from __future__ import annotations

import array
import errno
import io
import json
import os
import struct
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PAGE = 1024
"""Numbers that share an array; those of a campaign are dense, those of a damaged file need not be."""
_NOWHERE = -1


class Places(MutableMapping[int, int]):
    """From a record's number, which may be negative, to its place in the file; in ascending order of the numbers."""

    def __init__(self) -> None:
        self._pages: dict[int, array.array[int]] = {}
        self._count = 0

    def __getitem__(self, number: int) -> int:
        page = self._pages.get(number // _PAGE)
        place = _NOWHERE if page is None else page[number % _PAGE]
        if place == _NOWHERE:
            raise KeyError(number)
        return place

    def __setitem__(self, number: int, place: int) -> None:
        self._count += number not in self
        if number // _PAGE not in self._pages:
            self._pages[number // _PAGE] = array.array("q", [_NOWHERE]) * _PAGE
        self._pages[number // _PAGE][number % _PAGE] = place

    def __delitem__(self, number: int) -> None:
        self._count -= self[number] != _NOWHERE
        self._pages[number // _PAGE][number % _PAGE] = _NOWHERE

    def __iter__(self) -> Iterator[int]:
        for first in sorted(self._pages):
            yield from (first * _PAGE + at for at, place in enumerate(self._pages[first]) if place != _NOWHERE)

    def __len__(self) -> int:
        return self._count


FILE = "trials.blocks"
Arrays = dict[str, NDArray[Any]]
SETTINGS, VOID = -1, -2
"""Numbers of records that are not blocks; a void one covers bytes that were damaged."""
_SYNC_SECONDS = 0.05
"""Blocks that finish faster than this share one wait for the disk, which takes milliseconds."""
RESUME = "go on with --resume, which plays again what is damaged and keeps the rest"

_MARK = b"\x89DnBlk1\n"
_HEAD = struct.Struct("<8sqQ32s8s")


class StoreError(OSError):
    """The campaign's file cannot be used as asked; what it holds is unharmed."""


class Record(NamedTuple):
    """Where a record's body lies, and what its head says of it."""

    number: int
    start: int
    length: int
    digest: bytes

    @property
    def end(self) -> int:
        return self.start + self.length

    def is_head_of(self, body: bytes) -> bool:
        """Whether a body is the one that was written."""
        return len(body) == self.length and sha256(body).digest() == self.digest


@dataclass(frozen=True)
class Damage:
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


class RecordFile:
    """The records of one locked file; their `places` are found once, by reading and checking all of it."""

    def __init__(self, path: Path, write: bool, locked: bool = True) -> None:
        self.path = path
        self._synced, self._is_dirty = -_SYNC_SECONDS, False
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        self._file = open(os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666), "r+b" if write else "rb", 0)  # noqa: SIM115, PTH123
        try:
            if locked:
                _lock(self._file.fileno(), exclusive=write)
            self.places, self.damage = self._scan()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Wait for the disk, and unlock the file."""
        try:
            self._sync()
        finally:
            self._file.close()

    def record(self, number: int) -> Record:
        """What the head of one of the `places` says; StoreError where it is not as it was written."""
        place = self.places[number]
        record = self._record(place)
        if record is None or record.number != number:
            raise self._damage_error(Damage(place, place + _HEAD.size, number))
        return record

    def body(self, number: int) -> bytes:
        """The body of one of the `places`; StoreError names one that is not as it was written."""
        record = self.record(number)
        body = self._read(record.start, record.length)
        if not record.is_head_of(body):
            raise self._damage_error(Damage(record.start - _HEAD.size, record.end, number))
        return body

    def _damage_error(self, gap: Damage) -> StoreError:
        return StoreError(f"{self.path} is damaged {gap}: {RESUME}")

    def add(self, number: int, body: bytes, at_once: bool = True) -> None:
        """Add a record at the end; on return it is on the disk, and after an error the file is as before.

        If not `at_once`, records that follow each other quickly wait for the disk together: each survives the end of
        this process, and a power cut once the next one is added or the file is closed.
        """
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._write(end, seal(number, body), at_once)
        except BaseException:
            self._file.truncate(end)
            raise
        self.places[number] = end

    def mend(self) -> None:
        """Put a void record over damaged bytes, and cut off what was not written to its end."""
        for gap in self.damage:
            if gap.end == self._file.seek(0, os.SEEK_END):
                self._file.truncate(gap.start)
            elif gap.end - gap.start < _HEAD.size:
                raise StoreError(f"{self.path} is damaged {gap}, less than a record: name another directory")
            else:
                body = bytes(gap.end - gap.start - _HEAD.size)
                self._write(gap.start, seal(VOID, body))
        self.damage = []

    def _scan(self) -> tuple[Places, list[Damage]]:
        places, damage = Places(), list[Damage]()
        place, size = 0, self._file.seek(0, os.SEEK_END)
        while place < size:
            record = self._record(place)
            if record is not None and record.is_head_of(self._read(record.start, record.length)):
                places[record.number] = place
                place = record.end
                continue
            following = self._next_record(place + 1, size)
            damage.append(Damage(place, following, None if record is None else record.number))
            place = following
        places.pop(VOID, None)
        return places, damage

    def _record(self, place: int) -> Record | None:
        """What the head at `place` says, if it is one."""
        return _record_of(self._read(place, _HEAD.size), place)

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

    def _write(self, place: int, content: bytes, at_once: bool = True) -> None:
        self._file.seek(place)
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._is_dirty = True
        if at_once or monotonic() - self._synced >= _SYNC_SECONDS:
            self._sync()

    def _sync(self) -> None:
        if self._is_dirty:
            os.fsync(self._file.fileno())
            self._synced, self._is_dirty = monotonic(), False


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
def in_words(directory: Path) -> Iterator[None]:
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


def seal(number: int, body: bytes) -> bytes:
    """A record: head and body."""
    head = _HEAD.pack(_MARK, number, len(body), sha256(body).digest(), b"")[:-8]
    return head + sha256(head).digest()[:8] + body


def unseal(content: bytes) -> tuple[int, bytes]:
    """(number, body) of a record; ValueError where it is not as it was written."""
    record, body = _record_of(content[: _HEAD.size], 0), content[_HEAD.size :]
    if record is None or not record.is_head_of(body):
        raise ValueError("a byte was changed or is missing: its checksum differs")
    return record.number, body


def _record_of(head: bytes, place: int) -> Record | None:
    """What a head that stands at `place` says, if it is one."""
    if len(head) < _HEAD.size or not head.startswith(_MARK) or head[-8:] != sha256(head[:-8]).digest()[:8]:
        return None
    _, number, length, digest, _ = _HEAD.unpack(head)
    return Record(number, place + _HEAD.size, length, digest)


def numbers_in(path: Path) -> set[int]:
    """The blocks of a file that another process may be adding to, from their heads alone; none without a file."""
    numbers: set[int] = set()
    if not path.is_file():
        return numbers
    with path.open("rb") as file:
        size, place = os.fstat(file.fileno()).st_size, 0
        while (record := _record_of(file.read(_HEAD.size), place)) is not None and record.end <= size:
            numbers.add(record.number)
            place = file.seek(record.end)
    return {number for number in numbers if number >= 0}


def to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays' names as a line of JSON, then the arrays, each as NumPy writes it."""
    buffer = io.BytesIO()
    buffer.write(json.dumps(list(arrays)).encode() + b"\n")
    for values in arrays.values():
        np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def block_of(file: RecordFile, number: int, digest: bytes) -> Arrays:
    """The arrays of a block; StoreError where it is damaged, or was played under settings with another digest."""
    body = file.body(number)
    if not body.startswith(digest):
        raise StoreError(f"{file.path}: block {number} was played under other settings; name another directory")
    return from_bytes(body[len(digest) :])


def from_bytes(body: bytes) -> Arrays:
    buffer = io.BytesIO(body)
    names = json.loads(buffer.readline())
    return {name: np.load(buffer, allow_pickle=False) for name in names}
