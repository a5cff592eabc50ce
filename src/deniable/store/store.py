"""Trials on disk: one file a campaign, to which every finished block is added with its checksum."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from hashlib import sha256
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from deniable.checks import whole
from deniable.store.documents import canonical
from deniable.store.records import (
    FILE,
    RESUME,
    SETTINGS,
    Arrays,
    RecordFile,
    StoreError,
    block_of,
    from_bytes,
    in_words,
    to_bytes,
)
from deniable.store.shared_blocks import SETTINGS_FILE, SharedBlocks, settings_digest

OLD_FILE = "trials.sqlite"
"""Of version 0.1.0, whose blocks have no checksums."""
_DIGEST_BYTES = 32

_log = logging.getLogger(__name__)


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
        with in_words(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            _refuse_old(self.directory)
            self._file = RecordFile(self.path, write=True)
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
        return not self._file.places and not self._file.damage

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make the file this campaign's, or check that it is."""
        text = canonical(settings)
        self._settings_digest = settings_digest(settings)
        held = SETTINGS in self._file.places
        if held:
            refuse_other_settings(self.directory, json.loads(self._file.body(SETTINGS)), settings)
        self._refuse_foreign_blocks()
        with in_words(self.directory):
            if self._file.damage:
                self._tell_damage()
                self._file.mend()
            if not held:
                self._file.add(SETTINGS, text.encode())
        self._take_in(SharedBlocks(self.directory, self._settings_digest))

    def _take_in(self, shared: SharedBlocks) -> None:
        """What workers finished in this directory; a damaged block is told to the log, and played again."""
        for number in sorted(shared.finished_blocks() - self._file.places.keys()):
            try:
                arrays = shared.load(number)
            except StoreError as error:
                _log.warning("%s", error)
                continue
            self.save(number, arrays, at_once=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with in_words(self.directory):
            self._file.close()

    def finished_blocks(self) -> list[int]:
        """The numbers of the finished blocks, in ascending order."""
        return list(_numbers(self._file))

    def __contains__(self, number: int) -> bool:
        return number in self._file.places

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]], at_once: bool = True) -> None:
        """Add one finished block; on return it is on the disk.

        If not `at_once`, blocks that finish quickly wait for the disk together (see `RecordFile.add`).
        """
        if whole("number", number, low=0) in self._file.places:
            raise StoreError(f"{self.path} holds block {number} already: a block is saved once")
        body = self._settings_digest + to_bytes(arrays)
        with in_words(self.directory):
            self._file.add(number, body, at_once)

    def load(self, number: int) -> Arrays:
        """The arrays of one finished block; StoreError names one that was damaged since the file was opened."""
        if number not in self._file.places:
            raise StoreError(f"{self.path} holds no block {number}")
        with in_words(self.directory):
            return from_bytes(self._file.body(number)[_DIGEST_BYTES:])

    def _claim(self, resume: bool) -> None:
        """What the file holds must be to be continued."""
        if self.is_new:
            return
        if not self._file.places:
            raise _damage_error(self.path, self._file)
        if not resume:
            raise StoreError(
                f"{self.directory} already holds a campaign ({len(self.finished_blocks())} blocks finished): go on "
                "with --resume, or name another directory"
            )

    def _refuse_foreign_blocks(self) -> None:
        """Blocks tell the settings that they were played under, also where the settings themselves are damaged."""
        for number in self.finished_blocks():
            with in_words(self.directory):
                under = self._file.body(number)[:_DIGEST_BYTES]
            if under != self._settings_digest:
                raise StoreError(
                    f"{self.directory} was begun with other settings: block {number} of {self.path} was played under "
                    "others. Give the old ones to resume, or name another directory"
                )

    def _tell_damage(self) -> None:
        for gap in self._file.damage:
            again = "they are written again" if gap.number == SETTINGS else "it is played again"
            _log.warning("%s is damaged %s: %s, all other blocks are kept", self.path, gap, again)


def _numbers(file: RecordFile) -> Iterator[int]:
    """Of the finished blocks, in ascending order."""
    return (number for number in file.places if number >= 0)


def kept(directory: Path | str) -> tuple[dict[str, Any], list[Arrays]]:
    """A campaign's settings and its finished blocks in order, read without changing anything or waiting for anybody.

    StoreError names damage anywhere in the file.
    """
    with _reading(directory) as (settings, blocks):
        return settings, [arrays for _, arrays in blocks]


def read_settings(directory: Path | str) -> dict[str, Any]:
    """A campaign's settings."""
    with _reading(directory) as (settings, _):
        return settings


def read_blocks(directory: Path | str) -> Iterator[tuple[int, Arrays]]:
    """(number, arrays) of a campaign's finished blocks, in order and one after another."""
    with _reading(directory) as (_, blocks):
        yield from blocks


def look_at_settings(directory: Path | str) -> dict[str, Any] | None:
    """A campaign's settings, without a lock; None where they are not there, or damaged."""
    path, told = Path(directory) / FILE, Path(directory) / SETTINGS_FILE
    if not path.is_file():
        found: dict[str, Any] | None = json.loads(told.read_bytes()) if told.is_file() else None
        return found
    with closing(RecordFile(path, write=False, locked=False)) as file:
        return json.loads(file.body(SETTINGS)) if SETTINGS in file.places else None


def look_at_blocks(directory: Path | str) -> Iterator[tuple[int, Arrays]]:
    """(number, arrays) of the finished blocks of a campaign that others may be playing, as long as none is missing.

    Nothing is locked, and what is damaged counts as missing.
    """
    path, shared = Path(directory) / FILE, SharedBlocks(directory, b"")
    with ExitStack() as stack:
        file = stack.enter_context(closing(RecordFile(path, write=False, locked=False))) if path.is_file() else None
        for number in count():
            if file is not None and number in file.places:
                body = file.body(number)
            elif number in shared:
                body = shared.body(number)
            else:
                return
            yield number, from_bytes(body[_DIGEST_BYTES:])


@contextmanager
def _reading(directory: Path | str) -> Iterator[tuple[dict[str, Any], Iterator[tuple[int, Arrays]]]]:
    path = Path(directory) / FILE
    with in_words(path.parent):
        _refuse_old(path.parent)
        with closing(RecordFile(path, write=False)) as file:
            if file.damage:
                raise _damage_error(path, file)
            if SETTINGS not in file.places:
                raise StoreError(f"{path} is empty: its campaign was not begun; go on with --resume")
            text = file.body(SETTINGS)
            yield json.loads(text), _blocks(file, sha256(text).digest())


def _blocks(file: RecordFile, digest: bytes) -> Iterator[tuple[int, Arrays]]:
    return ((number, block_of(file, number, digest)) for number in _numbers(file))


def open_local_store(directory: Path | str | None, resume: bool = False) -> AbstractContextManager[Store | None]:
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


def _damage_error(path: Path, file: RecordFile) -> StoreError:
    if not file.places:
        return StoreError(f"{path} is not a campaign's file, or damaged throughout: name another directory")
    said = "; ".join(map(str, file.damage[:5])) + ("; ..." if len(file.damage) > 5 else "")
    return StoreError(f"{path} is damaged {said}: {RESUME}")


def _refuse_old(directory: Path) -> None:
    if (directory / OLD_FILE).exists() and not (directory / FILE).exists():
        raise StoreError(
            f"{directory / OLD_FILE} was written by deniable 0.1.0, without checksums, and is not read any more: "
            "play the campaign again in another directory"
        )


def refuse_other_settings(directory: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """StoreError says what differs between the settings that a directory was begun with and those asked for."""
    changed = list(differences(old, json.loads(canonical(new))))
    if changed:
        raise StoreError(
            f"{directory} was begun with other settings: {'; '.join(changed)}. Give the old ones to resume, or name "
            "another directory"
        )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What settings say otherwise, in words."""
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            before, now = (json.dumps(settings.get(name)) for settings in (old, new))
            yield f"{name} was {before}, now {now}"
