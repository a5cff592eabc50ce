"""Blocks that many processes finish beside each other, each in a file of its own: no locks, no order of writing.

A file is there whole or not at all, under its block's number: a block that two processes played counts once. Any file
system will do on which a file can be renamed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from numpy.typing import NDArray

from deniable.store.documents import canonical
from deniable.store.records import Arrays, StoreError, from_bytes, in_words, seal, to_bytes, unseal

PLACE, _SUFFIX = "blocks", ".block"
SETTINGS_FILE = "settings.json"
"""What the processes that share a directory say of their settings."""


def settings_digest(settings: Mapping[str, Any]) -> bytes:
    """What every block carries: under which settings it was played."""
    return sha256(canonical(settings).encode()).digest()


class SharedBlocks:
    """The finished blocks in `directory` that no store has taken in yet."""

    def __init__(self, directory: Path | str, digest: bytes) -> None:
        self.place = Path(directory) / PLACE
        self._digest = digest

    def finished_blocks(self) -> set[int]:
        """Their numbers."""
        try:
            names = os.listdir(self.place)  # noqa: PTH208 (a hundred thousand names: no object for each)
        except FileNotFoundError:
            return set()
        found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return {int(name) for name in found if name.isdecimal()}

    def __contains__(self, number: int) -> bool:
        return self._path(number).is_file()

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add one; on return it is on the disk."""
        draft = self.place / f"{uuid4().hex}.part"
        with in_words(self.place):
            self.place.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(seal(number, self._digest + to_bytes(arrays)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path(number))

    def load(self, number: int) -> Arrays:
        """The arrays of one; StoreError names one that is damaged or of another campaign."""
        body = self.body(number)
        if not body.startswith(self._digest):
            raise StoreError(f"{self._path(number)} was played under other settings: delete it")
        return from_bytes(body[len(self._digest) :])

    def body(self, number: int) -> bytes:
        """The settings' digest and the arrays of one, as bytes."""
        path = self._path(number)
        with in_words(self.place):
            content = path.read_bytes()
        try:
            held, body = unseal(content)
        except ValueError as error:
            raise StoreError(f"{path} is damaged, {error}: delete it, and the block is played again") from error
        if held != number:
            raise StoreError(f"{path} holds block {held}: delete it, and the block is played again")
        return body

    def _path(self, number: int) -> Path:
        return self.place / f"{number:07d}{_SUFFIX}"
