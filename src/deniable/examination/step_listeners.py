"""Listeners to a training's steps: each hears a step once it has been yielded, before the training goes on."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from deniable.examination.trainer import AppliedStep, Records, Trainer, as_step

__all__ = ["LISTENERS", "Listener", "train_and_listen"]


class Listener(Protocol):
    """Hears every step of a training."""

    def hear(self, step: AppliedStep) -> None:
        """One more step was yielded."""


LISTENERS: ContextVar[Sequence[Listener]] = ContextVar("LISTENERS", default=())
"""Of a loop that runs to its end before its steps are returned (`adapters`)."""


def train_and_listen(trainer: Trainer, given: Records, seed: int, listeners: Sequence[Listener]) -> Iterable[Any]:
    """Train on `given`; `listeners` hear every step."""
    outer = LISTENERS.set(listeners)
    try:
        steps = trainer(given, seed)
    finally:
        LISTENERS.reset(outer)
    return _listen(steps, listeners) if isinstance(steps, Generator) else steps


def _listen(steps: Generator[Any, None, Any], listeners: Sequence[Listener]) -> Generator[Any, None, Any]:
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        shown = as_step(step)
        yield shown
        if isinstance(shown, AppliedStep):
            for listener in listeners:
                listener.hear(shown)
