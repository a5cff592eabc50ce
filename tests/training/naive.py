"""The naive twin: one training, one example at a time, plain autograd, float64."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn


def example_gradients(model: nn.Module, loss, weights: list[Tensor], records: Tensor, labels: Tensor) -> Tensor:
    """Gradients (examples, parameters) of one trial."""
    twin = deepcopy(model).double()
    parameters = [p for p in twin.parameters() if p.requires_grad]
    with torch.no_grad():
        for parameter, value in zip(parameters, weights, strict=True):
            parameter.copy_(value)
    rows = []
    with torch.enable_grad():
        for record, label in zip(
            records.double(), labels.double() if labels.is_floating_point() else labels, strict=True
        ):
            gradients = torch.autograd.grad(loss(twin(record[None]), label[None]).sum(), parameters, allow_unused=True)
            pairs = zip(gradients, parameters, strict=True)
            rows.append(torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs]))
    return torch.stack(rows)


def clipped(gradients: Tensor, clip: float) -> Tensor:
    return torch.stack([g if g.norm() <= clip else g * (clip / g.norm()) for g in gradients])


def flat(tensors: list[Tensor], trial: int) -> Tensor:
    return torch.cat([t[trial].flatten() for t in tensors]).double()
