"""Losses of one example each, and their gradient with respect to the model's outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from deniable.training.columns import softmax_minus_class
from deniable.training.networks.usual_models import named_function

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Softmax cross-entropy of outputs (examples, classes) against class numbers."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the squared distance of outputs (examples, values) to targets (examples,) or (examples, values)."""
    return 0.5 * (outputs - targets.reshape(len(outputs), -1)).square().sum(1)


LOSSES: dict[str, Loss] = {"cross-entropy": cross_entropy, "squared-error": squared_error}


def loss_function(loss: str | Loss) -> Loss:
    """The loss behind a name, a ``"module:function"`` or a function."""
    if not isinstance(loss, str):
        return loss
    if loss in LOSSES:
        return LOSSES[loss]
    if ":" not in loss:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)} or 'module:function', got {loss!r}")
    return named_function("loss", loss)


class OutputGradient(ABC):
    """Each example's gradient of its loss in its outputs (trials, classes, examples)."""

    @abstractmethod
    def load(self, labels: Tensor, classes: int) -> None:
        """The labels (1 or trials, examples, ...); 1 where all trials share them."""

    @abstractmethod
    def __call__(self, outputs: Tensor, trials: slice) -> Tensor:
        """The gradient for these trials' outputs, which may be overwritten by it."""


def check_classes(labels: Tensor, classes: int) -> None:
    """Refuse labels that are no class numbers: a kernel would write beyond the outputs."""
    if labels.dtype != torch.int64 or int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise ValueError(f"labels must be class numbers, 0 to {classes - 1}, got {labels.min()} to {labels.max()}")


class _CrossEntropyGradient(OutputGradient):
    """Softmax minus the class, in closed form; overwrites the outputs."""

    def load(self, labels: Tensor, classes: int) -> None:
        check_classes(labels, classes)
        self._labels = labels.contiguous()

    def __call__(self, outputs: Tensor, trials: slice) -> Tensor:
        return softmax_minus_class(outputs, self._labels if len(self._labels) == 1 else self._labels[trials])


class _SquaredErrorGradient(OutputGradient):
    """Output minus target; overwrites the outputs."""

    def load(self, labels: Tensor, classes: int) -> None:
        self._targets = labels.reshape(*labels.shape[:2], classes).transpose(1, 2).float()

    def __call__(self, outputs: Tensor, trials: slice) -> Tensor:
        return outputs.sub_(self._targets if len(self._targets) == 1 else self._targets[trials])


class _AutogradGradient(OutputGradient):
    """Any loss."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    def load(self, labels: Tensor, classes: int) -> None:
        self._labels = labels

    def __call__(self, outputs: Tensor, trials: slice) -> Tensor:
        labels = (
            self._labels[trials]
            if len(self._labels) > 1
            else self._labels.expand(len(outputs), *self._labels.shape[1:])
        )
        examples = outputs.detach().transpose(1, 2).flatten(0, 1).requires_grad_()
        with torch.enable_grad():
            total = self._loss(examples, labels.flatten(0, 1)).sum()
        (gradient,) = torch.autograd.grad(total, examples)
        return gradient.view(len(outputs), -1, outputs.shape[1]).transpose(1, 2).contiguous()


def output_gradient(loss: Loss) -> OutputGradient:
    """The fastest way to a loss's gradient."""
    if loss is cross_entropy:
        return _CrossEntropyGradient()
    return _SquaredErrorGradient() if loss is squared_error else _AutogradGradient(loss)
