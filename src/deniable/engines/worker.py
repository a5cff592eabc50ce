"""A worker on a shared disk: claims blocks of a planned campaign, plays them and keeps them, until all are there.

Any number of workers, on any machines, may begin, end or be killed at any time. Slurm arrays, Kubernetes jobs, GNU
parallel or two laptops start them with `deniable worker DIR`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Generic, TypeVar
from uuid import uuid4

from deniable.engines.beside import LEASE_SECONDS, Claims, Shared
from deniable.engines.blocks import Campaign, Certain, arrays_of
from deniable.engines.players import Playing
from deniable.store import SharedStore

T = TypeVar("T")
CERTAIN = "certain"
"""The file that ends all workers on a campaign: its answer is certain."""
WATCH_CLAIM = 10**12
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
    another one after a lease. An error in a block is raised, and its claim given up. `tell` hears the number of each
    block that was played.
    """
    place, played = Path(directory), 0
    with ExitStack() as stack:
        store = stack.enter_context(SharedStore(place))
        store.begin(campaign.settings)
        playing = stack.enter_context(closing(Playing(place, campaign.blocks)))
        end = stack.enter_context(closing(_End(store, campaign, lease_seconds, certain)))
        missing = (number for number in campaign.numbers if number not in store)
        for number, result in Shared(lease_seconds).run_in(store, campaign.work, missing, end.has_come):
            if result is not None:
                store.save(number, arrays_of(result))
                played += 1
                playing.add()
                if tell is not None:
                    tell(number)
    return played


class _End(Generic[T]):
    """Whether all workers may end. One of them looks at the evidence for all: at the blocks in the order of their
    numbers, as far as they are there."""

    def __init__(
        self, store: SharedStore, campaign: Campaign[T], lease_seconds: float, certain: Certain[T] | None
    ) -> None:
        self._store, self._campaign, self._certain = store, campaign, certain
        self._claims = None if certain is None else Claims(store.directory, f"watch-{uuid4().hex}", lease_seconds)
        self._heard, self._is_mine = campaign.first, False
        name = CERTAIN if campaign.first == 0 else f"{CERTAIN}-{campaign.first}"
        self._answered = store.directory / name

    def has_come(self) -> bool:
        """Look, if it is this worker's turn; whoever finds the answer certain ends all."""
        if self._claims is not None and self._certain is not None:
            self._is_mine = self._is_mine or self._claims.claim([WATCH_CLAIM]) is not None
            self._watch(self._certain)
        return self._answered.exists()

    def _watch(self, certain: Certain[T]) -> None:
        while self._is_mine and self._heard in self._store:
            block = self._campaign.kind(**self._store.load(self._heard))
            self._heard += 1
            if certain(block):
                self._answered.touch()
                return

    def close(self) -> None:
        """Another worker may look."""
        if self._claims is not None:
            self._claims.close()
