"""How many trials make a block: many of a small model, few of a large one."""

from __future__ import annotations

import torch
from torch import nn

from deniable.training.gradients import trainable
from deniable.training.settings import Neighbours
from deniable.training.stack import activations

__all__ = ["usual_block"]

SIZES = (100, 50, 20, 10, 5, 2, 1)
VALUES = 2**26
"""Numbers that a block may hold or compute in a step, about: bounds its memory and the work that a crash loses."""
COPIES = 5
"""Of the weights: themselves, their sums, the noise, and Adam's two moments."""


def usual_block(model: nn.Module, neighbours: Neighbours, rate: float) -> int:
    """Trials in a block; depends on the model, the data and the rate alone, so that it is the same on every machine."""
    records, record = len(neighbours.records), neighbours.records[0]
    weights = COPIES * sum(value.numel() for value in trainable(model).values())
    with torch.no_grad():
        batch = rate * records * (record.numel() + activations(model, record))
    return next((size for size in SIZES if size * (weights + batch) <= VALUES), 1)
