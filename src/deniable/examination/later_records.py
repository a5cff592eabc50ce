"""Records that change in a training's own memory while it runs.

Once a step has been yielded, only what it shows may move the weights. If the records are overwritten at that moment and
the next weights, the number of steps or the release change, the training looked at the records again, and no noise
hides what it saw. A training that keeps copies of its records does not notice, so that nothing is shown.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextvars import ContextVar
from typing import Any

from deniable.examination.trainer import Records, Trainer

__all__ = ["WATCHED_STEP", "train_with_later_records"]


class _Overwriting:
    """Counts steps, and after some of them overwrites the records that the training was given."""

    def __init__(self, given: Records, later: Records, after: int) -> None:
        self._given, self._later, self._left = given, later, after

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._given.features.copy_(self._later.features)
            self._given.labels.copy_(self._later.labels)


WATCHED_STEP: ContextVar[_Overwriting | None] = ContextVar("WATCHED_STEP", default=None)
"""Counts the steps of a loop that runs to its end before its steps are returned (`adapters`)."""


def train_with_later_records(trainer: Trainer, given: Records, seed: int, later: Records, after: int) -> Iterable[Any]:
    """Train on `given`, which becomes `later` when so many steps have been yielded."""
    counter = _Overwriting(given, later, after)
    outer = WATCHED_STEP.set(counter)
    try:
        steps = trainer(given, seed)
    finally:
        WATCHED_STEP.reset(outer)
    return _count_steps(steps, counter) if isinstance(steps, Generator) else steps


def _count_steps(steps: Generator[Any, None, Any], counter: _Overwriting) -> Generator[Any, None, Any]:
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        yield step
        counter.count()
