"""Answers from worker processes, remembered: the same question is computed once, also while it is being computed.

So many run at a time, and quick questions do not wait behind dear ones.

What nobody waits for any more is given up: it leaves the queue, and a worker that is at it stops. A refusal for its
cost is not remembered: a quieter machine may answer.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections import OrderedDict
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count

from deniable.web.work import PARTS, Answer, TooCostlyError, answer, get_ready, put_together, refusal


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


_MOST_WAITING = 512
_PATIENCE = 60.0  # seconds that a request may wait for its turn
_LATER = {"found": 1.0, "found-and-drawn": 1.0, "demands": 1.0}
"""Seconds by which what is dear lets later, quick questions go first."""


_SLOTS = 1024
"""Shared flags that tell a worker to give up; more than can be under way."""

Key = tuple[str, str]
"""The kind of a question, and its values as text."""


@dataclass
class _Pending:
    """A question that is being computed, and how many wait for it."""

    task: asyncio.Task[Answer]
    askers: int = 0


class Answers:
    """The server's memory and its workers; one event loop uses it."""

    remembered = 4096
    """Answers, of about 10 kB each."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or max(1, min(4, os.cpu_count() or 1))
        self._turns = Turns(self._workers + 1)  # one more, so that no worker waits for the event loop
        self._pool: ProcessPoolExecutor | None = None
        self._known: OrderedDict[Key, Answer] = OrderedDict()
        self._pending: dict[Key, _Pending] = {}
        self._given_up = multiprocessing.get_context("spawn").RawArray("B", _SLOTS)
        self._tickets = count()

    async def warm_up(self) -> None:
        """Start the workers before the first request."""
        empty = [self._submit("explain", f'{{"epsilon":{number}}}') for number in range(self._workers)]
        await asyncio.gather(*empty)

    async def ask(self, kind: str, text: str) -> Answer:
        """The answer to a request, whose values are a JSON object."""
        try:
            return await self._find_answer((kind, text))
        except TooCostlyError as refused:
            return 422, refusal(None, None, str(refused))

    async def _find_answer(self, key: Key) -> Answer:
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        if key not in self._pending:
            if len(self._pending) >= _MOST_WAITING:
                return 503, refusal(None, None, f"{_MOST_WAITING} requests are waiting already: ask again in a second")
            self._pending[key] = _Pending(asyncio.create_task(self._compute(key)))
        pending = self._pending[key]
        pending.askers += 1
        try:
            return await asyncio.shield(pending.task)
        finally:
            pending.askers -= 1
            if not pending.askers and not pending.task.done():  # the last one who asked has gone
                pending.task.cancel()
                del self._pending[key]

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    async def _compute(self, key: Key) -> Answer:
        try:
            found = await asyncio.wait_for(self._from_workers(*key), _PATIENCE)
        except BrokenProcessPool:
            self._pool = None
            return 503, refusal(None, None, "the worker of this request was ended: ask again")
        except TimeoutError:
            return 503, refusal(
                None, None, f"the machine did not get to this request within {_PATIENCE:g} s: ask again"
            )
        finally:
            if key in self._pending and self._pending[key].task is asyncio.current_task():
                del self._pending[key]
        if found[0] < 500:
            self._known[key] = found
            if len(self._known) > self.remembered:
                self._known.popitem(last=False)
        return found

    async def _from_workers(self, kind: str, text: str) -> Answer:
        """From one worker, or from several where the parts of the answer do not need each other."""
        if kind not in PARTS:
            async with self._turns.take(_LATER.get(kind, 0.0)):
                return await self._submit(kind, text)
        parts = await asyncio.gather(*(self._find_answer((part, text)) for part in PARTS[kind]))
        refused = [part for part in parts if part[0] != 200]
        return refused[0] if refused else (200, put_together(kind, text, [content for _, content in parts]))

    def _submit(self, kind: str, text: str) -> asyncio.Future[Answer]:
        if self._pool is None:
            for library in ("OPENBLAS", "OMP", "MKL"):  # every core has its worker: its small matrices need no threads
                os.environ.setdefault(f"{library}_NUM_THREADS", "1")
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=context, initializer=get_ready, initargs=(self._given_up,)
            )
        slot = next(self._tickets) % _SLOTS
        self._given_up[slot] = 0
        future = asyncio.get_running_loop().run_in_executor(self._pool, answer, kind, text, slot)
        future.add_done_callback(partial(self._give_up, slot))
        return future

    def _give_up(self, slot: int, future: asyncio.Future[Answer]) -> None:
        if future.cancelled():
            self._given_up[slot] = 1
