"""SGD and Adam on weights of many trials; both see the noisy gradient only, so they are post-processing."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from deniable.training.settings import Course

__all__ = ["Adam", "Sgd", "Updater", "updater"]


class Updater(ABC):
    """Applies noisy sums of gradients to the weights, in place."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    @abstractmethod
    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """One step along ``sums / count``, count the (expected) number of records in the batch."""


class Sgd(Updater):
    """weights - learning rate * gradient."""

    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """Algorithm 1, step 12."""
        for weight, total in zip(weights, sums, strict=True):
            weight.add_(total, alpha=-self.learning_rate / count)


class Adam(Updater):
    """Adam with its usual constants: decay .9 and .999, epsilon 1e-8, bias corrected."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__(learning_rate)
        self._step = 0
        self._moments: list[tuple[Tensor, Tensor, Tensor]] = []
        """Of each weight: both moments, and room for a root (new memory in every step cost more than the root)."""

    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """One Adam step on the noisy mean gradient."""
        self._moments = self._moments or [
            (torch.zeros_like(w), torch.zeros_like(w), torch.empty_like(w)) for w in weights
        ]
        self._step += 1
        first_left, second_left = 1 - 0.9**self._step, 1 - 0.999**self._step
        for weight, total, (first, second, room) in zip(weights, sums, self._moments, strict=True):
            first.mul_(0.9).add_(total, alpha=0.1 / count)
            second.mul_(0.999).addcmul_(total, total, value=0.001 / count**2)
            root = torch.div(second, second_left, out=room).sqrt_().add_(1e-8)
            weight.addcdiv_(first, root, value=-self.learning_rate / first_left)


def updater(settings: Course) -> Updater:
    """The settings' optimizer."""
    return {"sgd": Sgd, "adam": Adam}[settings.optimizer](settings.learning_rate)
