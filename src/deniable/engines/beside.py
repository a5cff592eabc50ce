"""This process as one of many that play a campaign in one directory, without a driver.

Blocks are claimed by atomic creation, with leases that need no common clock. A claim on block n is the file n.0,
created only if it is not there. Its owner changes what it says from time to time. Another worker takes over where it
saw the same words for a whole lease *by its own steady clock*: it creates n.1, and so on; the highest number owns the
block. No time is ever compared between machines, and the date may jump. A claim that is lost too early only costs work:
a block played twice has the same bytes and counts once. Who finds a block free looks once more whether it is finished.

Each process claims blocks, plays them and keeps them, and takes what the others finish; each comes to the whole answer.
So the same script or command, started as often as one likes and wherever the directory is seen, is a distributed
campaign.
"""

from __future__ import annotations

import os
import platform
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import TypeVar

from deniable.checks import positive
from deniable.engines.protocol import Engine, Finished, Work
from deniable.store import CampaignStore, SharedStore, Store, open_local_store

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


T = TypeVar("T")
_LISTING_SHARE = 0.05
"""Of the time, at most, goes into looking at what the others have finished, while there is work."""
_LONGEST_SLEEP_SECONDS = 2.0
_NOTHING_TO_SHARE = "engine shared needs out, the directory that the processes share"


@dataclass(frozen=True)
class Shared:
    """One of many processes that share the campaign's directory; blocks are played right here."""

    lease_seconds: float = LEASE_SECONDS
    """A block is taken over whose process showed no life for so long."""

    def __post_init__(self) -> None:
        positive("lease_seconds", self.lease_seconds)

    def nodes(self) -> dict[str, float]:
        """This machine."""
        return {platform.node(): 1.0}

    def run(self, work: Work[T], blocks: Iterable[int]) -> Finished[T]:
        """Refused: without a directory there is nothing to share."""
        raise ValueError(_NOTHING_TO_SHARE)

    def run_in(
        self, store: SharedStore, work: Work[T], blocks: Iterable[int], is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, T | None]]:
        """(number, result) of every block, each once: of those that others finished without the result.

        The caller saves a result before it asks for the next one. Ends when all are there, or `is_over` says so.
        """
        missing = _Missing(store, blocks)
        with closing(self._claims(store.directory)) as claims:
            while not is_over():
                yield from ((number, None) for number in missing.find_finished())
                if not missing.numbers:
                    return
                number = claims.claim(missing.numbers)
                if number is None:
                    sleep(self._pause)
                    missing.look_again()
                    continue
                if store.has_now(number):  # finished between the two looks
                    missing.look_again()
                else:
                    yield number, work(number)
                    missing.remove(number)
                claims.finish(number)

    def do_once(self, place: Path, is_done: Callable[[], bool], work: Callable[[], None]) -> None:
        """Do work that cannot be divided, unless another process does it; on return it is done."""
        with closing(self._claims(place)) as claims:
            while not is_done():
                if claims.claim([0]) is None:
                    sleep(self._pause)
                elif not is_done():
                    work()

    @property
    def _pause(self) -> float:
        return min(self.lease_seconds / 4, _LONGEST_SLEEP_SECONDS)

    def _claims(self, place: Path) -> Claims:
        return Claims(place, f"{platform.node()}-{os.getpid()}", self.lease_seconds)


class _Missing:
    """Blocks that are not finished, as far as this process has seen."""

    def __init__(self, store: SharedStore, blocks: Iterable[int]) -> None:
        self._store, self._next_look = store, 0.0
        self.numbers = sorted(blocks)

    def find_finished(self) -> list[int]:
        """Those that others finished since the last look; without a look where it is too early for one."""
        began = monotonic()
        if began < self._next_look:
            return []
        self._store.find_new()
        found = [number for number in self.numbers if number in self._store]
        if found:
            self.numbers = [number for number in self.numbers if number not in self._store]
        ended = monotonic()
        self._next_look = ended + (ended - began) / _LISTING_SHARE
        return found

    def look_again(self) -> None:
        """At the next chance."""
        self._next_look = 0.0

    def remove(self, number: int) -> None:
        self.numbers.remove(number)


def open_store(
    engine: Engine, directory: Path | str | None, resume: bool = False
) -> AbstractContextManager[CampaignStore | None]:
    """What keeps a campaign's blocks: the store of a driver, or of one of many processes; None without a directory."""
    if not isinstance(engine, Shared):
        return open_local_store(directory, resume)
    if directory is None:
        raise ValueError(_NOTHING_TO_SHARE)
    return SharedStore(directory)


def resume_store(engine: Engine, directory: Path | str) -> CampaignStore:
    """The same, of a directory in which one goes on with whatever is there."""
    return SharedStore(directory) if isinstance(engine, Shared) else Store(directory, resume=True)
