"""Statistics of a batch, of the shape of a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from deniable.examination.recorded.gradients.batch_gradients import BatchSums
from deniable.examination.recorded.gradients.class_counts import class_of

Target = tuple[str, Tensor]
OF_STEPS = ("loss", "right", "mean norm", "median norm", "longest", "clipped length")
"""Of all records of a step; those of features are compared with the same of other records."""
_CLASSES = 3
"""Of fewer, counts are like much else."""


def statistics_of(values: Tensor, shape: torch.Size) -> Iterator[Target]:
    """Of (records, ..., features) or (records, channels, ...), by feature, channel or number; or of all numbers."""
    if values.dim() < 2 or not len(values):
        return
    numbers = shape.numel()
    tables = {
        "by feature": values.flatten(0, -2),
        "by channel": values.movedim(1, -1).flatten(0, -2),
        "by number": values.flatten(1),
        "of all": values.reshape(-1, 1),
    }
    for name, table in tables.items():
        if table.shape[1] == numbers:
            for key, value in _columns(table):
                yield f"{key} {name}", value.reshape(shape)


def _columns(table: Tensor) -> Iterator[Target]:
    yield "mean", table.mean(0)
    yield "sum", table.sum(0)
    yield "mean square", table.square().mean(0)
    yield "sum of squares", table.square().sum(0)
    yield "least", table.min(0).values
    yield "largest", table.max(0).values
    yield "largest size", table.abs().max(0).values
    if len(table) > 1:
        for correction in (0, 1):
            yield f"variance {correction}", table.var(0, correction=correction)
            yield f"spread {correction}", table.std(0, correction=correction)


def statistics_of_step(sums: BatchSums) -> Iterator[Target]:
    """Single numbers: loss and norms of the records."""
    norms = sums.gradients.norms
    if len(norms):
        values = (
            torch.tensor(sums.loss / len(norms)),
            torch.tensor(sums.right / len(norms)),
            norms.mean(),
            norms.median(),
            norms.max(),
            torch.stack([part.norm() for part in sums.clean]).norm(),
        )
        yield from zip(OF_STEPS, values, strict=True)


def class_means(values: Tensor, items: Sequence[Any], old: Tensor) -> Iterator[Target]:
    """(classes, features) means and sums of each class; where a class is absent what is there."""
    classes = [class_of(item) for item in items]
    if old.dim() != 2 or values.dim() != 2 or values.shape[1] != old.shape[1] or len(values) != len(items):
        return
    if any(one is None or not 0 <= one < len(old) for one in classes):
        return
    means = old.clone()
    for one in {c for c in classes if c is not None}:
        means[one] = values[[c == one for c in classes]].mean(0)
    yield "mean of class", means


def statistics_of_classes(counts: Tensor, old: Tensor) -> Iterator[Target]:
    """Counts and shares of classes, for a buffer with a number of each."""
    there = int((counts > 0).sum())
    if old.dim() != 1 or len(counts) > len(old) or there < min(_CLASSES, max(2, len(old))):
        return
    padded = torch.zeros_like(old)
    padded[: len(counts)] = counts.to(old)
    yield "counts of classes", padded
    yield "shares of classes", padded / padded.sum()
    if len(counts) == len(old) and int(counts.min()) > 0:
        yield "logarithms of classes' shares", (padded / padded.sum()).log()
