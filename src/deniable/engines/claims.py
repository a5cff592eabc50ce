"""Who plays which block on a shared disk: claims by atomic creation, with leases that need no common clock.

A claim on block n is the file n.0, created only if it is not there. Its owner changes what it says from time to time.
Another worker takes over where it saw the same words for a whole lease *by its own steady clock*: it creates n.1, and
so on; the highest number owns the block. No time is ever compared between machines, and the date may jump. A claim that
is lost too early only costs work: a block played twice has the same bytes and counts once. Who finds a block free looks
once more whether it is finished.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic

from deniable.checks import positive

LEASE_SECONDS = 60.0
PLACE = "claims"
_RENEWALS_A_LEASE = 5
_NEXT = 32
"""A worker whose first choice is taken claims one of the next so many: thousands do not all ask for the same one."""
_WATCHED = 32
"""Claims that a worker without work keeps an eye on."""


class Claims:
    """The claims of one worker in `directory`; `close` ends their renewal."""

    def __init__(self, directory: Path | str, worker: str, lease_seconds: float = LEASE_SECONDS) -> None:
        self._place = Path(directory) / PLACE
        self._place.mkdir(parents=True, exist_ok=True)
        self._worker, self._lease = worker, positive("lease", lease_seconds)
        self._held: dict[int, Path] = {}
        self._seen: dict[Path, tuple[bytes, float]] = {}
        self._lock, self._closed, self._renewals = Lock(), Event(), 0
        self._draw = random.Random(worker)
        Thread(target=self._renew_until_closed, daemon=True).start()

    def claim(self, wanted: Sequence[int]) -> int | None:
        """One of the wanted blocks (in ascending order) that nobody plays; None if others are at work on all.

        It may have been finished since the caller looked.
        """
        generations = _read_generations(self._place)
        free = list(islice((number for number in wanted if number not in generations), _NEXT))
        others = free[1:]
        self._draw.shuffle(others)
        for number in free[:1] + others:
            if self._create(number, 0):
                return number
        for number in [number for number in wanted if number in generations and number not in self._held][:_WATCHED]:
            generation = generations[number]
            if self._is_abandoned(self._path(number, generation)) and self._create(number, generation + 1):
                return number
        return None

    def finish(self, number: int) -> None:
        """Give up a claim: its block is there, or somebody else may play it."""
        with self._lock:
            path = self._held.pop(number, None)
        if path is not None:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give back what is held."""
        self._closed.set()
        for number in list(self._held):
            self.finish(number)

    def _path(self, number: int, generation: int) -> Path:
        return self._place / f"{number}.{generation}"

    def _create(self, number: int, generation: int) -> bool:
        path = self._path(number, generation)
        try:
            with path.open("xb") as file:
                file.write(self._words())
        except FileExistsError:
            return False
        with self._lock:
            self._held[number] = path
        return True

    def _is_abandoned(self, path: Path) -> bool:
        """Whether a claim has said the same for a whole lease while this worker looked."""
        try:
            words = path.read_bytes()
        except FileNotFoundError:
            return False
        seen = self._seen.get(path)
        if seen is None or seen[0] != words:
            self._seen[path] = words, monotonic()
            return False
        return monotonic() - seen[1] >= self._lease

    def _renew_until_closed(self) -> None:
        while not self._closed.wait(self._lease / _RENEWALS_A_LEASE):
            self._renewals += 1
            with self._lock:
                for path in self._held.values():
                    with suppress(OSError):  # a disk that is away for a moment: the next renewal may succeed
                        if path.exists():
                            path.write_bytes(self._words())

    def _words(self) -> bytes:
        return f"{self._worker} {self._renewals}\n".encode()


def find_claimed(directory: Path | str) -> set[int]:
    """Blocks that workers have claimed in `directory`."""
    place = Path(directory) / PLACE
    return set(_read_generations(place)) if place.is_dir() else set()


def _read_generations(place: Path) -> dict[int, int]:
    """The latest claim on each block; NFS and others put files of their own beside."""
    found: dict[int, int] = {}
    for name in os.listdir(place):  # noqa: PTH208 (many names: no object for each)
        number, _, generation = name.partition(".")
        if number.isdecimal() and generation.isdecimal():
            found[int(number)] = max(int(generation), found.get(int(number), 0))
    return found
