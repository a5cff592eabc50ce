"""Listeners to a training's steps: each hears a step once it has been yielded, before the training goes on."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from deniable.examination.trainer import AppliedStep, Records, Trainer, as_step


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
    if not isinstance(steps, Iterable):
        raise ValueError(f"trainer must yield an AppliedStep for each step, or return a list of them, got {steps!r}")
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


class LaterRecords:
    """Overwrites the records `given` to a training by `later` ones, when so many steps have been yielded.

    From then on only what was yielded may move the weights. If the next weights, the number of steps or the release
    change, the training looked at the records again, and no noise hides what it saw. A training that keeps copies of
    its records does not notice, so that nothing is shown.
    """

    def __init__(self, given: Records, later: Records, after: int) -> None:
        self._given, self._later, self._left = given, later, after

    def hear(self, _: AppliedStep) -> None:
        """Count a step."""
        self._left -= 1
        if self._left == 0:
            self._given.features.copy_(self._later.features)
            self._given.labels.copy_(self._later.labels)


class HandedGradients:
    """Keeps every step of the training that it hears first, and hands their gradients to those that it hears later.

    The later ones have the same seed and other records, and get the gradients in their own memory, before they apply
    them. If both take the same way, all that moves the weights, ends the training and makes the release is a function
    of the yielded gradients and the seed: by whatever rule, that is post-processing. If they part, nothing is shown:
    the second may have applied a copy that it kept.
    """

    def __init__(self) -> None:
        self._kept: list[AppliedStep] = []
        self._keeps, self._heard = True, 0

    def hand_over(self) -> HandedGradients:
        """Itself, for the next training."""
        self._keeps, self._heard = False, 0
        return self

    def hear(self, step: AppliedStep) -> None:
        """Keep a step, or hand its gradient over; raises IndexError where there is none."""
        if self._keeps:
            self._kept.append(step)
        else:
            step.take_gradient(self._kept[self._heard])
        self._heard += 1
