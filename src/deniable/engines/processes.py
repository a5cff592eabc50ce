"""Worker processes that Ctrl-C does not reach, and that can be ended at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import current_thread, main_thread
from typing import Any


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
