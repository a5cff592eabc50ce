"""What the initial weights have of the records: their means or axes as rows, their classes' shares, their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from deniable.examination.recorded.gradients.class_counts import class_counts, labels_of

InitialFinding = Literal["", "rows", "shares", "labels"]
"""Rows that are a mean, a principal axis or one of the records; a bias that is the logarithm of the classes' shares;
a loss on the records that weights made without their labels do not have; "" for none of these."""
Rows = Callable[[Sequence[Any]], Tensor | None]
"""(records, numbers) of their features; None where these are no numbers of one shape."""
_ASKED_RECORDS = 32
"""Whose loss is computed."""
_KNOWS = 0.75
"""Of the loss of the same outputs with other records' labels, and of the best constant answer's: what guesses reach."""
_PARALLEL = 0.999
_LEAST_FEATURES = 8
"""So that random rows are never so parallel."""
_HELD_NUMBERS = 2**24
"""Of the records' features, and of cosines."""
_SAME = 1e-3


def what_weights_have(model: nn.Module, data: Any, read: Rows, asks: bool) -> InitialFinding:
    """Of a model before its first step; `asks`: whether it may be called with a batch of features."""
    counts = class_counts(data)
    if counts is not None and _has_shares(model, counts):
        return "shares"
    if _has_rows(model, data, read):
        return "rows"
    return "labels" if asks and counts is not None and _knows_labels(model, data, counts) else ""


def _has_shares(model: nn.Module, counts: Tensor) -> bool:
    """Whether a bias is the logarithm of the classes' shares, also with one more of each."""
    if len(counts) < 2 or int(counts.min()) == int(counts.max()):
        return False
    for p in model.parameters():
        if p.shape == counts.shape:
            for shares in (counts, counts + 1):
                wanted = shares.clamp(min=1).double().log()
                off = (p.detach().double().cpu() - wanted) - (p.detach().double().cpu() - wanted).mean()
                if float(off.abs().max()) < _SAME * float(wanted.max() - wanted.min()):
                    return True
    return False


def _has_rows(model: nn.Module, data: Any, read: Rows) -> bool:
    """Whether rows of a matrix are parallel to what is computed from the records."""
    first = read([data[0]]) if len(data) else None
    features = 0 if first is None else first.shape[1]
    tables = [p.detach().double().cpu() for p in model.parameters() if p.dim() == 2 and p.shape[1] == features]
    if features < _LEAST_FEATURES or not tables or len(data) * features > _HELD_NUMBERS:
        return False
    records = read([data[i] for i in range(len(data))])
    return records is not None and any(
        _are_parallel(table, made) for table in tables for made in _made_of(records, data)
    )


def _made_of(records: Tensor, data: Any) -> Iterator[Tensor]:
    """Rows: the records, their mean and those of classes, around zero and around the mean; principal axes."""
    mean, labels = records.mean(0), labels_of(data)
    groups = [] if labels is None else [records[labels == c].mean(0) for c in sorted(set(labels.tolist()))]
    means = torch.stack([mean, *groups])
    yield records
    yield means
    yield means[1:] - mean
    if records.shape[1] <= len(records) and records.shape[1] <= 256:
        yield torch.linalg.eigh((records - mean).T @ (records - mean)).eigenvectors.T


def _are_parallel(rows: Tensor, others: Tensor) -> bool:
    if not len(others) or len(rows) * len(others) > _HELD_NUMBERS:
        return False
    lengths = rows.norm(dim=1)[:, None] * others.norm(dim=1)
    cosines = (rows @ others.T).abs() / lengths.clamp(min=1e-12)
    return bool((cosines > _PARALLEL).any())


def _knows_labels(model: nn.Module, data: Any, counts: Tensor) -> bool:
    """Whether the loss on some records is well below that with exchanged labels, and that of the best constant."""
    some: Sequence[int] = torch.randperm(len(data), generator=_random())[:_ASKED_RECORDS].tolist()
    items = [data[i] for i in some]
    if not all(isinstance(item[0], Tensor) for item in items):
        return False
    inputs, targets = torch.stack([item[0] for item in items]), torch.tensor([int(item[1]) for item in items])
    device = next(model.parameters()).device
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        outputs = model(inputs.to(device)).cpu()
    if outputs.dim() != 2 or outputs.shape[1] < len(counts):
        return False
    own, others = (float(cross_entropy(rows, targets)) for rows in (outputs, outputs.roll(1, 0)))
    shares = counts[counts > 0].double() / counts.sum()
    return own < _KNOWS * min(others, float(-(shares * shares.log()).sum()))


def _random() -> torch.Generator:
    random = torch.Generator()
    random.seed()
    return random
