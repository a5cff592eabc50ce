"""The blocks of one campaign that many processes play in one directory, seen by each of them as its store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from deniable.store.documents import canonical, replace_file
from deniable.store.records import FILE, SETTINGS, Arrays, RecordFile, block_of, in_words
from deniable.store.shared_blocks import SETTINGS_FILE, SharedBlocks, settings_digest
from deniable.store.store import refuse_other_settings


class SharedStore:
    """A `Store` without a lock: what any process finishes in `directory` is finished for all.

    What a store in this directory holds (`trials.blocks`) counts, too, as it was when this one was begun.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.path = self.directory / FILE
        self._known, self._digest = set[int](), b""
        self._shared = SharedBlocks(directory, b"")
        with in_words(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._file = RecordFile(self.path, write=False, locked=False) if self.path.is_file() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def is_new(self) -> bool:
        """Whether nothing is finished yet."""
        return not self.finished_blocks()

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make the directory this campaign's, or refuse where it is another's."""
        place = self.directory / SETTINGS_FILE
        with in_words(self.directory):
            if self._file is not None and SETTINGS in self._file.places:
                refuse_other_settings(self.directory, json.loads(self._file.body(SETTINGS)), settings)
            if place.is_file():
                refuse_other_settings(self.directory, json.loads(place.read_bytes()), settings)
            else:
                replace_file(place, canonical(settings).encode())
        self._digest = settings_digest(settings)
        self._shared = SharedBlocks(self.directory, self._digest)
        if self._file is not None:
            self._known |= {number for number in self._file.places if number >= 0}

    def find_new(self) -> None:
        """Look at what all processes have finished by now."""
        self._known |= self._shared.finished_blocks()

    def finished_blocks(self) -> list[int]:
        """The numbers of the finished blocks, in ascending order."""
        self.find_new()
        return sorted(self._known)

    def __contains__(self, number: int) -> bool:
        return number in self._known

    def has_now(self, number: int) -> bool:
        """Whether a block is finished, whoever finished it."""
        return number in self._known or number in self._shared

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]], at_once: bool = True) -> None:
        """Add one finished block; on return it is on the disk. One that another process added has the same bytes."""
        self._shared.save(number, arrays)
        self._known.add(number)

    def load(self, number: int) -> Arrays:
        """The arrays of one finished block; StoreError names one that is damaged."""
        if self._file is None or number not in self._file.places:
            return self._shared.load(number)
        with in_words(self.directory):
            return block_of(self._file, number, self._digest)
