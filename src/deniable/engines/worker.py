"""A worker on a shared disk: claims blocks of a planned campaign, plays them and keeps them, until all are there.

Any number of workers, on any machines, may begin, end or be killed at any time. Slurm arrays, Kubernetes jobs, GNU
parallel or two laptops start them with `deniable worker DIR`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import TypeVar

from deniable.engines.campaign import Campaign, Certain, arrays_of
from deniable.engines.claims import LEASE_SECONDS, Claims
from deniable.engines.players import Playing
from deniable.store import FILE, SharedBlocks, settings_digest
from deniable.store.records import numbers_in

__all__ = ["CERTAIN", "work_in"]

T = TypeVar("T")
CERTAIN = "certain"
"""The file that ends all workers: the answer is certain."""
_WATCH = 10**12
"""The claim on watching the evidence, which one worker does for all."""


def work_in(
    directory: Path | str,
    campaign: Campaign[T],
    *,
    lease_seconds: float = LEASE_SECONDS,
    tell: Callable[[int], None] | None = None,
    certain: Certain[T] | None = None,
) -> int:
    """Play blocks of the campaign in `directory` until all are there, or the answer is certain; how many were played.

    Guarantee: every block that is kept equals ``campaign.work(number)``; a block whose worker died is played by
    another one after a lease. An error in a block is raised, and its claim given back. `tell` hears the number of each
    block that was played.
    """
    place = Path(directory)
    shared = SharedBlocks(place, settings_digest(campaign.settings))
    playing = Playing(place, campaign.blocks)
    known, played = numbers_in(place / FILE), 0
    with closing(Claims(place, playing.name, lease_seconds)) as claims, closing(playing):
        watch = None if certain is None else _WorkerWatch(place, campaign, shared, claims, certain)
        while not (place / CERTAIN).exists():
            known |= shared.finished()
            missing = [number for number in range(campaign.blocks) if number not in known]
            if not missing or (watch is not None and watch.is_certain(known)):
                break
            number = claims.claim(missing)
            if number is None:
                sleep(min(lease_seconds / 4, 2.0))
                continue
            if number not in shared.finished():  # finished between the two looks
                shared.save(number, arrays_of(campaign.work(number)))
                played += 1
                playing.add()
                if tell is not None:
                    tell(number)
            claims.finish(number)
    return played


class _WorkerWatch:
    """One worker's look at the evidence for all: the blocks in the order of their numbers, as far as they are there."""

    def __init__(
        self, place: Path, campaign: Campaign[T], shared: SharedBlocks, claims: Claims, certain: Certain[T]
    ) -> None:
        self._place, self._campaign, self._shared, self._claims = place, campaign, shared, claims
        self._certain, self._heard, self._is_mine = certain, 0, False

    def is_certain(self, finished: set[int]) -> bool:
        """Look, if it is this worker's turn; whoever finds the answer certain ends all."""
        self._is_mine = self._is_mine or self._claims.claim([_WATCH]) is not None
        while self._is_mine and self._heard in finished:
            block = self._campaign.kind(**self._shared.load(self._heard))
            self._heard += 1
            if self._certain(block):
                (self._place / CERTAIN).touch()
                return True
        return False
