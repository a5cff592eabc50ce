"""How long an examination takes: told before it starts, and ended, with a sentence, where a training would never end.

Twins and small sets of records may make a loop endless (one that draws again until its batch is large enough, or
trains until its loss is small). CPU time decides, not the clock, so that a busy machine changes nothing.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import inf
from time import perf_counter, process_time, sleep

OTHER_TRAININGS = 90
"""Trainings beside the trials, about so many: twins, small sets of records, trials once more for a fault's cause."""
STARTING_SECONDS = 30.0
"""A trial that takes less is played twice: the first time, modules are loaded and memory is made."""
_log = logging.getLogger("deniable")


class Forecast:
    """Plays and times a trial before all others; `words` are empty until then."""

    def __init__(self, workers: float) -> None:
        self.workers, self.words = max(1.0, workers), ""

    def time_trial(self, play: Callable[[], object], trials: int) -> None:
        """`play` plays a trial, of which `trials` are to come."""
        each = _seconds(play)
        if each < STARTING_SECONDS:
            each = min(each, _seconds(play))
        most, others = each * trials / self.workers, each * OTHER_TRAININGS
        about = f"about {_duration(most)} for {trials:,} trials, fewer where a leak is certain"
        self.words = f"{about}, and up to {_duration(others)} for twins and causes"
        _log.info("examination: %s", self.words)
        if sys.stderr.isatty():  # a bar goes when it is done, this line stays
            print(f"Examination: {self.words}.", file=sys.stderr)

    def words_of_bar(self) -> str:
        """What a bar says while the trials are played."""
        return f"Trials ({self.words})" if self.words else "Trials"


def _seconds(play: Callable[[], object]) -> float:
    started = perf_counter()
    play()
    return perf_counter() - started


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(1.0, seconds):.0f} s"


LEAST_SECONDS, TIMES = 4.0, 20.0
"""A training may take so many seconds of CPU time, or so many times that of the longest before it, if that is more."""
LOOK_SECONDS = 0.2
"""So often it is looked how long a training has taken."""


class EndlessTrainingError(RuntimeError):
    """A training takes far longer than the ones before it."""

    def __init__(self) -> None:
        super().__init__(
            f"the training did not end: it took more than {TIMES:g} x the CPU time of those before it. A loop that "
            "draws or trains until something holds may never end on other records; take a fixed number of steps"
        )


@dataclass
class Patience:
    """How long the longest training took that has ended; those after it may take `TIMES` as long."""

    longest_seconds: float = inf

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Raises `EndlessTrainingError` in this thread where the block, a training, takes too long; never the first."""
        started = process_time()
        limit = max(LEAST_SECONDS, TIMES * self.longest_seconds)
        with _ended_after(limit) if limit < inf else nullcontext():
            yield
        taken = process_time() - started
        self.longest_seconds = taken if self.longest_seconds == inf else max(taken, self.longest_seconds)


@dataclass(eq=False)
class _Limit:
    """Of a training under way: its thread, the CPU time that it may not pass, and whether it was told to end."""

    thread: int
    cpu_seconds: float
    passed: bool = False


@dataclass
class _Limits:
    """Of all trainings under way. One thread looks at them; it ends when it finds none, and is started again."""

    under_way: set[_Limit] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    looking: bool = False

    def add(self, limit: _Limit) -> None:
        with self.lock:
            self.under_way.add(limit)
            if not self.looking:
                self.looking = True
                threading.Thread(target=self._look, daemon=True).start()

    def remove(self, limit: _Limit) -> None:
        with self.lock:
            self.under_way.discard(limit)

    def _look(self) -> None:
        while self._end_passed():
            sleep(LOOK_SECONDS)

    def _end_passed(self) -> bool:
        """Ends the trainings that take too long; whether any is under way."""
        with self.lock:
            for limit in self.under_way:
                if not limit.passed and process_time() > limit.cpu_seconds:
                    limit.passed = True
                    _raise_in(limit.thread, EndlessTrainingError)
            self.looking = bool(self.under_way)
            return self.looking


_LIMITS = _Limits()


@contextmanager
def _ended_after(cpu_seconds: float) -> Iterator[None]:
    limit = _Limit(threading.get_ident(), process_time() + cpu_seconds)
    _LIMITS.add(limit)
    try:
        yield
    finally:
        _LIMITS.remove(limit)
        if limit.passed:  # one that comes too late is taken back; without one, Python 3.11 hangs here when traced
            _raise_in(limit.thread, None)


def _raise_in(thread: int, error: type[Exception] | None) -> None:
    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)
