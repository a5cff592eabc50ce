"""Blocks over worker processes of this machine: one process of one thread a core, which beats threads on busy cores.

Ctrl-C does not reach the workers; they are ended at once where it is asked for.

"""

from __future__ import annotations

import os
import pickle
import platform
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from deniable.checks import whole
from deniable.engines.protocol import EngineError, Finished, Work, pack


class Workers(SpawnContext):
    """A context for `ProcessPoolExecutor` that knows the processes it made.

    A pool waits for the tasks under way, which may be minutes; who presses Ctrl-C has no use for them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """A process, as the pool asks for it."""
        self._made.append(_Worker(*arguments, **named))
        return self._made[-1]

    def end(self) -> None:
        """End all of them, whatever they are doing."""
        for process in self._made:
            if process.is_alive():
                process.terminate()


class _Worker(SpawnProcess):
    def start(self) -> None:
        # a terminal sends Ctrl-C to all processes; the parent ends its workers, also the one it is just starting
        with _handlers_put_off(), _interrupts_held_back():
            super().start()


@contextmanager
def _handlers_put_off() -> Iterator[None]:
    """What Python does on Ctrl-C and SIGTERM happens afterwards: a process that is half started cannot be ended."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    heard: list[int] = []
    if current_thread() is not main_thread():
        handlers = {}
    for number in handlers:
        signal.signal(number, lambda late, frame: heard.append(late))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in heard:
            handlers[signal.Signals(late)](late, None)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits; for a process that is started meanwhile, for ever."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


T = TypeVar("T")
_BLOCKS_A_WORKER = 2
"""Under way: one at work and one that waits."""


@dataclass(frozen=True)
class Local:
    """A pool of spawned processes; one works right here. No more are started than there are blocks.

    A script that uses more than one needs ``if __name__ == "__main__":``, and the work must be importable.
    """

    processes: int | None = None
    """Workers. Default: one a core."""

    def __post_init__(self) -> None:
        if self.processes is not None:
            whole("processes", self.processes)

    def nodes(self) -> dict[str, float]:
        """This machine."""
        return {platform.node(): float(self.processes or os.cpu_count() or 1)}

    def run(self, work: Work[T], blocks: Iterable[int]) -> Finished[T]:
        """(number, ``work(number)``) as they finish; every worker is handed `work` once."""
        rest, most = iter(blocks), self.processes or os.cpu_count() or 1
        first = list(islice(rest, most))
        if len(first) > 1:
            yield from _play_in_processes(work, first, rest)
            return
        for number in (*first, *rest):
            yield number, work(number)


def _play_in_processes(work: Work[T], first: list[int], rest: Iterator[int]) -> Finished[T]:
    context, most = Workers(), _BLOCKS_A_WORKER * len(first)
    pool = ProcessPoolExecutor(len(first), context, initializer=_prepare, initargs=(pack(work),))
    try:
        running = {pool.submit(_play, number): number for number in (*first, *islice(rest, most - len(first)))}
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), _result(future)
            running |= {pool.submit(_play, number): number for number in islice(rest, most - len(running))}
    except BaseException:  # an error, Ctrl-C, or a consumer that stops early: nobody waits for the work under way
        context.end()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[T]) -> T:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise EngineError(
            "a worker process died, most likely for lack of memory: take fewer processes, fewer records or a smaller "
            "model"
        ) from error


_work: Callable[[int], Any]


def _prepare(packed: bytes) -> None:
    global _work  # noqa: PLW0603 - the way a spawned worker is handed what all its blocks share
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        _work = pickle.loads(packed)
    except Exception as error:  # the user's modules are loaded here, so it may be anything
        _work = partial(_refuse, f"a worker process cannot load the work: {type(error).__name__}: {error}")


def _refuse(why: str, number: int) -> Any:
    raise EngineError(why)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play(number: int) -> Any:
    return _work(number)
