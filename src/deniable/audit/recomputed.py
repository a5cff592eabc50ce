"""The clean clipped sums of somebody else's training, recomputed at the weights it passed through."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deniable.audit.claim import Claim
from deniable.audit.trainer import Seen
from deniable.training.gradients import ExampleGradients, trainable
from deniable.training.losses import Loss
from deniable.training.settings import Columns
from deniable.training.stack import example_gradients

__all__ = ["Recomputed", "Recomputer", "flat"]

AT_ONCE = 2**27
"""Numbers of gradients that may be held at once: steps are taken in groups of so many."""
WATCHED = 2**26
"""Numbers of gradients of single records that may be held at once: with large models not every record is watched."""


@dataclass(frozen=True)
class Recomputed:
    """Of every step (rows): sums as flat vectors, and what the observer needs."""

    include: Tensor
    """(steps, columns) how often each record was in the batch."""
    residual: Tensor
    """Applied minus clean, in claimed standard deviations."""
    clean: Tensor
    """The clipped sum of the batch."""
    whole: Tensor
    """The same without clipping."""
    everybody: Tensor
    """The clipped sum of all records of the data set, in the batch or not."""
    onto: Tensor
    """(steps, watched columns) inner products of the residual with each record's clipped gradient."""
    norms: Tensor
    """(steps, columns) of the gradients before clipping."""
    gram: Tensor
    """Inner products of the differing records' clipped gradients."""


class Recomputer:
    """Recomputes trainings on D or D'; the columns are the records of both, the differing ones last."""

    def __init__(self, claim: Claim, model: nn.Module, loss: Loss, columns: Columns) -> None:
        self.claim, self.model, self.loss, self.columns = claim, model, loss, columns
        self.parameters = trainable(model)
        size = sum(p.numel() for p in self.parameters.values())
        self.watched = min(len(columns.records), max(columns.differing, WATCHED // size))
        self._group = max(1, AT_ONCE // (len(columns.records) * size))

    def recompute(self, seen: Seen, members: NDArray[np.int64]) -> Recomputed:
        """`members` are the columns that were trained on, in the order of the trainer's records."""
        include = self._included(seen, members)
        everybody = torch.zeros(len(self.columns.records))
        everybody[members] = 1
        starts = range(0, len(seen), self._group)
        parts = [self._part(seen, include, everybody, slice(start, start + self._group)) for start in starts]
        joined = {f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(Recomputed)}
        return Recomputed(**joined)

    def _included(self, seen: Seen, members: NDArray[np.int64]) -> Tensor:
        include = torch.zeros(len(seen), len(self.columns.records))
        for step, batch in enumerate(seen.batches):
            if batch is None:
                include[step, members] = 1
            elif len(batch):
                if not 0 <= batch.min() <= batch.max() < len(members):
                    wrong = batch.min() if batch.min() < 0 else batch.max()
                    raise ValueError(f"batch of step {step + 1} must hold indices 0 to {len(members) - 1}, got {wrong}")
                include[step, members] = torch.from_numpy(np.bincount(batch, minlength=len(members))).float()
        return include

    def _part(self, seen: Seen, include: Tensor, everybody: Tensor, group: slice) -> Recomputed:
        claim, include = self.claim, include[group]
        weights = [values[group] for values in seen.weights]
        single, pair = self._gradients(weights, self.watched), self._gradients(weights, self.columns.differing)
        whole, _ = _sum(pair, weights, include, inf)
        all_of_them = everybody.expand_as(include)
        total = _sum(pair, weights, all_of_them, claim.clip)[0] if claim.rate < 1 else None
        _sum(pair, weights, include, claim.clip)
        clean, norms = _sum(single, weights, include, claim.clip)
        residual = [(a[group] - c) / claim.sigma for a, c in zip(seen.sums, clean, strict=True)]
        return Recomputed(
            include=include,
            residual=flat(residual),
            clean=flat(clean),
            whole=flat(whole),
            everybody=flat(total if total is not None else clean),
            onto=single.project(residual),
            norms=norms.clone(),
            gram=pair.gram(),
        )

    def _gradients(self, weights: list[Tensor], kept: int) -> ExampleGradients:
        records, labels, _ = self.columns
        gradients = example_gradients(self.model, self.loss, weights, records[0], differing=kept, shared=True)
        gradients.load(records[None], labels[None])
        return gradients


def _sum(
    gradients: ExampleGradients, weights: list[Tensor], include: Tensor, clip: float
) -> tuple[list[Tensor], Tensor]:
    sums = [torch.empty_like(w) for w in weights]
    norms = gradients.clipped_sum(include, clip, sums)
    return sums, norms


def flat(values: list[Tensor]) -> Tensor:
    """All parameters of a step in one row."""
    return torch.cat([v.flatten(1) for v in values], 1)
