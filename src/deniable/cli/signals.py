"""Ctrl-C and SIGTERM end a command in the same way: with a sentence, and with finished work kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

__all__ = ["Stopped", "signals_raised"]


class Stopped(BaseException):
    """A person or the system ends the command; not a KeyboardInterrupt, which typer turns into a silent exit."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number
        self.kept = ""
        """What is kept, for the sentence."""

    def __str__(self) -> str:
        return f"stopped{self.kept}"


@contextmanager
def signals_raised() -> Iterator[None]:
    """Both signals are raised as `Stopped` meanwhile; one that is ignored, as Ctrl-C in the background, stays so."""
    heard = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    if current_thread() is not main_thread():
        heard = []
    before = {number: signal.signal(number, _stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)
