"""Gradients of one training that are handed to another, in its own memory, before it applies them.

Two trainings with the same seed and other records, of which the second is handed the gradients that the first yielded:
if both take the same way, all that moves the weights, ends the training and makes the release is a function of the
yielded gradients and the seed. By whatever rule, that is post-processing. If they part, nothing is shown: the second
may have applied a copy that it kept.
"""

from __future__ import annotations

from deniable.examination.trainer import AppliedStep

__all__ = ["HandedGradients"]


class HandedGradients:
    """Keeps every step of the training that it hears first, and hands their gradients to those that it hears later."""

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
