"""Who is next: so many at a time, and quick questions do not wait behind dear ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count


class Turns:
    """`places` turns at the same time; of those that wait, the one next whose coming plus `later` was first.

    So what is dear lets quick questions of the next `later` seconds pass, and no more: nobody waits for ever.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    @asynccontextmanager
    async def take(self, later: float = 0.0) -> AsyncIterator[None]:
        """Wait for a turn and have it."""
        await self._turn(later)
        try:
            yield
        finally:
            self._next()

    async def _turn(self, later: float) -> None:
        if self._free > 0:
            self._free -= 1
            return
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        heappush(self._waiting, (loop.time() + later, next(self._numbers), mine))
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():  # it was given in the very moment of giving up
                self._next()
            raise

    def _next(self) -> None:
        while self._waiting:
            waiting = heappop(self._waiting)[2]
            if not waiting.done():
                waiting.set_result(None)
                return
        self._free += 1
