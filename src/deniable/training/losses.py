"""Losses of one example each, and their gradient with respect to the model's outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from deniable.training.models import named_function

__all__ = ["Loss", "cross_entropy", "loss_function", "output_gradient", "squared_error"]

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


def output_gradient(loss: Loss, outputs: Tensor, targets: Tensor) -> Tensor:
    """Each example's gradient of its loss in its outputs (trials, classes, examples); targets are (trials, examples).

    Cross-entropy has it in closed form, softmax minus the class; any other loss takes autograd.
    """
    if loss is cross_entropy:
        gradient = torch.softmax(outputs, 1)
        index = targets.expand(len(outputs), -1).unsqueeze(1)
        return gradient.scatter_add_(1, index, gradient.new_full((), -1.0).expand(index.shape))
    examples = outputs.detach().transpose(1, 2).reshape(-1, outputs.shape[1]).requires_grad_()
    flat = targets.expand(len(outputs), *targets.shape[1:]).reshape(len(examples), *targets.shape[2:])
    (gradient,) = torch.autograd.grad(loss(examples, flat).sum(), examples)
    return gradient.view(len(outputs), -1, outputs.shape[1]).transpose(1, 2)
