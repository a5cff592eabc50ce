"""This process as one of many that play a campaign in one directory, without a driver.

Each claims blocks, plays them and keeps them, and takes what the others finish; each comes to the whole answer. So the
same script or command, started as often as one likes and wherever the directory is seen, is a distributed campaign.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from deniable.checks import positive
from deniable.engines.claims import LEASE_SECONDS, Claims
from deniable.engines.protocol import Engine, Finished, Work
from deniable.store import CampaignStore, SharedStore, Store, open_local_store

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
