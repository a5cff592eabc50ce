"""SGD and Adam on weights of many trials; both see the noisy gradient only, so they are post-processing."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from math import sqrt

import torch
from torch import Tensor

from deniable.training import kernels
from deniable.training.settings import Course


class Updater(ABC):
    """Applies noisy sums of gradients to the weights, in place."""

    def __init__(self, learning_rate: float | Tensor) -> None:
        self.learning_rate = learning_rate

    def move(self, weight: Tensor, direction: Tensor, share: float) -> None:
        """Take ``learning rate * share`` of the direction from the weight, each trial at its own rate."""
        if isinstance(self.learning_rate, Tensor):
            rates = self.learning_rate.view(-1, *[1] * (weight.ndim - 1))
            weight.addcmul_(direction, rates, value=-share)
        else:
            weight.add_(direction, alpha=-self.learning_rate * share)

    @abstractmethod
    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """One step along ``sums / count``, count the (expected) number of records in the batch."""


class Sgd(Updater):
    """weights - learning rate * gradient."""

    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """Algorithm 1, step 12."""
        for weight, total in zip(weights, sums, strict=True):
            self.move(weight, total, 1 / count)


class Adam(Updater):
    """Adam with its usual constants: decay .9 and .999, epsilon 1e-8, bias corrected."""

    def __init__(self, learning_rate: float | Tensor) -> None:
        super().__init__(learning_rate)
        self._step = 0
        self._moments: list[tuple[Tensor, Tensor]] = []
        self._scratch: list[Tensor] = []

    def apply(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        """One Adam step on the noisy mean gradient."""
        self._moments = self._moments or [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
        self._step += 1
        if kernels.KERNELS is not None and kernels.suit(*weights, *sums):
            self._apply_compiled(weights, sums, count)
        else:
            self._apply_torch(weights, sums, count)

    def _apply_compiled(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        left = (ctypes.c_float * 3)(1 / count, 1 - 0.9**self._step, 1 - 0.999**self._step)
        rates = torch.as_tensor(self.learning_rate, dtype=torch.float32).reshape(-1).contiguous()
        for weight, total, moments in zip(weights, sums, self._moments, strict=True):
            shape = kernels.sizes(len(rates), weight.numel() // len(rates))
            kernels.call("adam", weight, total, *moments, rates, shape, left)

    def _apply_torch(self, weights: list[Tensor], sums: list[Tensor], count: float) -> None:
        first_left, second_left = 1 - 0.9**self._step, 1 - 0.999**self._step
        self._scratch = self._scratch or [torch.empty_like(w) for w in weights]
        for place, (weight, total, (first, second)) in enumerate(zip(weights, sums, self._moments, strict=True)):
            first.mul_(0.9).add_(total, alpha=0.1 / count)
            second.mul_(0.999).addcmul_(total, total, value=0.001 / count**2)
            if isinstance(self.learning_rate, Tensor):
                # the same in fewer passes over memory: both corrections are numbers of the step
                root = torch.sqrt(second, out=self._scratch[place]).add_(1e-8 * sqrt(second_left))
                self.move(weight, torch.div(first, root, out=root), sqrt(second_left) / first_left)
            else:
                root = torch.div(second, second_left, out=self._scratch[place]).sqrt_().add_(1e-8)
                weight.addcdiv_(first, root, value=-self.learning_rate / first_left)


def updater(settings: Course) -> Updater:
    """The settings' optimizer."""
    return {"sgd": Sgd, "adam": Adam}[settings.optimizer](settings.learning_rate)
