"""How many records of each class there are, and whether a loss weights classes by that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset, TensorDataset

from deniable.training.networks.losses import loss_function

_READ_RECORDS = 2000
"""Of larger data whose labels are not at hand, no counts are made."""
POWERS = (1.0, 0.5)
"""Usual weights of a class: one over its count, or over the root of it."""
_SAME = 2e-3
"""Relative: weights that agree so well with counts are made of them."""


def class_of(item: Any) -> int | None:
    """Of a pair (features, whole number)."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        return None
    target = item[1]
    if isinstance(target, Tensor):
        whole = target.numel() == 1 and not target.is_floating_point() and not target.is_complex()
        return int(target) if whole else None
    return target if isinstance(target, int) else None


def class_counts(data: Any) -> Tensor | None:
    """(classes,) of whole labels from 0 on; None where records have none, or these are not at hand."""
    labels = labels_of(data)
    if labels is None or not len(labels) or int(labels.min()) < 0 or int(labels.max()) > len(labels):
        return None
    return torch.bincount(labels)


def counts_of(items: Sequence[Any]) -> Tensor | None:
    """(classes,) of a batch's whole labels from 0 on; None where it has none, or other ones."""
    classes = [one for item in items if (one := class_of(item)) is not None and one >= 0]
    return torch.bincount(torch.tensor(classes)) if classes and len(classes) == len(items) else None


def labels_of(data: Any) -> Tensor | None:
    """(records,) whole labels; None where records have none, or these are not at hand."""
    if isinstance(data, Subset):
        whole = labels_of(data.dataset)
        return None if whole is None else whole[torch.as_tensor(list(data.indices))]
    found = data.tensors[-1] if isinstance(data, TensorDataset) else getattr(data, "targets", None)
    if found is not None:
        found = torch.as_tensor(found)
        return found.long().cpu() if found.dim() == 1 and not found.is_floating_point() else None
    if len(data) > _READ_RECORDS:
        return None
    classes = [class_of(data[i]) for i in range(len(data))]
    return None if any(one is None for one in classes) else torch.tensor(classes)


def weights_by_counts(counts: Tensor) -> list[Tensor]:
    """(classes,) each: by every one of `POWERS`, with a mean of one over classes, and over records."""
    there = counts > 0
    found = []
    for power in POWERS:
        weights = torch.where(there, counts.clamp(min=1).double() ** -power, 0.0)
        found += [weights / weights[there].mean(), weights * counts.sum() / (weights * counts).sum()]
    return found


def weights_of_loss(loss: Callable[[Tensor, Tensor], Tensor], classes: int) -> Tensor | None:
    """(classes,) what a loss gives each class where all outputs are alike; None where it takes no whole targets."""
    try:
        with torch.no_grad():
            return loss(torch.zeros(classes, classes), torch.arange(classes)).double().reshape(classes)
    except (RuntimeError, TypeError, ValueError, IndexError):  # a loss of something else
        return None


def weighs_by_counts(loss: str | Callable[[Tensor, Tensor], Tensor], counts: Tensor | None) -> bool:
    """Whether a loss of pairs (features, class) weights classes by how rare they are."""
    weights = None if counts is None else weights_of_loss(loss_function(loss), len(counts))
    return counts is not None and weights is not None and follow_counts(weights, counts)


def follow_counts(weights: Tensor, counts: Tensor) -> bool:
    """Whether unequal weights are a power of the classes' counts, which are unequal, too."""
    if len(weights) != len(counts) or bool((weights <= 0).any()) or bool((counts == 0).any()):
        return False
    if float(weights.max() / weights.min()) < 1 + 10 * _SAME:
        return False
    shares = [weights * counts.double() ** power for power in POWERS]
    return any(float(one.max() / one.min()) < 1 + _SAME for one in shares)
