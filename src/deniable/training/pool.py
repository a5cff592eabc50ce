"""Blocks over worker processes: one process of one thread a core, which beats threads on busy cores."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from multiprocessing import parent_process
from threading import Thread
from typing import Any, TypeVar

from deniable.checks import whole
from deniable.training.engine import BlockResult, run_block
from deniable.training.settings import Neighbours, TrainingSettings
from deniable.training.workers import Workers

__all__ = ["run_blocks", "spread"]

T = TypeVar("T")
Progress = Callable[[int], None]


def run_blocks(
    settings: TrainingSettings,
    neighbours: Neighbours,
    seed: int,
    blocks: Iterable[int],
    *,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[int, BlockResult]]:
    """(block number, result) of the given blocks as they finish, on `processes` workers (default: one a core).

    Each result equals ``run_block(settings, neighbours, seed, number)``, whatever the order. `progress` hears the
    number of trials of each block that finishes. At most two blocks a worker are under way, so memory does not grow
    with their number. Workers are spawned: a script that calls this needs ``if __name__ == "__main__":``, and a model
    or loss given as a function must be importable.
    """
    for number, result in spread(partial(run_block, settings, neighbours, seed), blocks, processes):
        if progress is not None:
            progress(settings.trials_per_block)
        yield number, result


def spread(work: Callable[[int], T], numbers: Iterable[int], processes: int | None = None) -> Iterator[tuple[int, T]]:
    """(number, ``work(number)``) as they finish, on `processes` workers (default: one a core); one works right here.

    `work` must be importable, with picklable arguments; every worker is handed it once.
    """
    workers = whole("processes", processes if processes is not None else os.cpu_count() or 1)
    if workers > 1:
        yield from _spawned(work, iter(numbers), workers)
        return
    for number in numbers:
        yield number, work(number)


def _spawned(work: Callable[[int], T], numbers: Iterator[int], workers: int) -> Iterator[tuple[int, T]]:
    packed = pickle.dumps(work)
    context = Workers()
    pool = ProcessPoolExecutor(workers, context, initializer=_prepare, initargs=(packed,))
    try:
        running = {pool.submit(_done, number): number for number in islice(numbers, 2 * workers)}
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), _result(future)
            room = islice(numbers, 2 * workers - len(running))
            running |= {pool.submit(_done, number): number for number in room}
    except BaseException:  # an error, Ctrl-C, or a consumer that stops early: nobody waits for the work under way
        context.end()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[T]) -> T:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process died, most likely for lack of memory: take fewer processes, fewer records or a smaller "
            "model"
        ) from error


_work: Callable[[int], Any]


def _prepare(packed: bytes) -> None:
    global _work  # noqa: PLW0603 - the way a spawned worker is handed what all its blocks share
    Thread(target=_end_with_parent, daemon=True).start()
    _work = pickle.loads(packed)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _done(number: int) -> Any:
    return _work(number)
