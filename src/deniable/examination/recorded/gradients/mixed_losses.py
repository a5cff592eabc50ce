"""Losses that mix the records of a batch: is the batch's loss made of its records' own, and is its gradient applied?

A loss over pairs of a batch (its other records as negatives), or a model that looks at the whole batch, has a gradient
that no weights of the records' own gradients give. What is left of it across these is a direction that is known before
the noise is drawn: the residual has no more along it than noise has, unless that loss was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import (
    BatchSums,
    Places,
    RecordLoss,
    loss_of_batch,
    run_forward,
)
from deniable.examination.recorded.gradients.record_shares import shorten

MixedProducts = tuple[float, float, float]
"""Of the batch's gradient across its records' own: product with the residual, and squared length; that of all of it."""
_SAME = 1e-3
"""Relative: losses that differ by less are the same."""
_LOOKS, _ASKED = 4, 8
"""So many steps are looked at in any case, then rarely; and so many records of each."""


class MixedLosses:
    """Whether the loss mixes records is asked in some steps; once it does, its gradient is compared in all."""

    def __init__(self, loss: RecordLoss) -> None:
        self._loss = loss
        self._mixes, self._looks = False, 0
        self.layer = ""
        """The module that mixes them, if the loss does not; empty for none that is seen."""

    def compare(
        self, model: nn.Module, items: Sequence[Any], places: Places, sums: BatchSums, residual: Tensor
    ) -> MixedProducts | None:
        """None where the loss does not mix records, or that is not known; `residual` where gradients are held."""
        self._looks += 1
        often = self._looks <= _LOOKS or not self._looks & (self._looks - 1)
        if len(items) < 2 or not (self._mixes or often):
            return None
        if not self._mixes and self._differs(model, items, sums):
            self._mixes, self.layer = True, mixing_layer(model, items[:_ASKED], self._loss)
        found = loss_of_batch(model, items, self._loss, places) if self._mixes else None
        if found is None:
            return None
        whole = sums.gradients.held(torch.cat([part.flatten() for part in found[1]])).double().cpu()
        across = _across(sums.gradients.values.double().cpu(), whole)
        return shorten(across @ residual.cpu()), shorten(across @ across), shorten(whole @ whole)

    def _differs(self, model: nn.Module, items: Sequence[Any], sums: BatchSums) -> bool:
        """Whether the batch's loss is neither the sum nor the mean of its records' losses."""
        found = loss_of_batch(model, items[:_ASKED], self._loss, None)
        if found is None or sums.gradients.losses is None:
            return False
        losses, value = sums.gradients.losses[:_ASKED].double(), found[0]
        near = _SAME * (float(losses.abs().mean()) + abs(value) / len(losses)) + 1e-6
        return abs(value - float(losses.sum())) > near * len(losses) and abs(value - float(losses.mean())) > near


def mixing_layer(model: nn.Module, items: Sequence[Any], loss: RecordLoss) -> str:
    """The first module whose output for a record is another in a batch than alone, and its input is not, in words."""
    kinds = {name: type(module).__name__ for name, module in getattr(model, "_module", model).named_modules()}
    whole, alone = dict[str, Tensor](), [dict[str, Tensor]() for _ in items]
    with torch.no_grad():
        if not run_forward(model, items, loss, whole, inputs_of=kinds):
            return ""
        for item, seen in zip(items, alone, strict=True):
            run_forward(model, [item], loss, seen, inputs_of=kinds)
    other = [place for place, values in whole.items() if _differ(values, [seen.get(place) for seen in alone])]
    for name in other:  # in the order in which they are done: parts before what holds them
        if name in kinds and f"input of {name}" not in other:
            return f"the layer {name} ({kinds[name]})" if name else f"the model's forward pass ({kinds[name]})"
    return ""


def _differ(values: Tensor, alone: Sequence[Tensor | None]) -> bool:
    """Whether (records, ...) of a batch are not those of the records alone, of the same shape."""
    own = [one for one in alone if one is not None and one.shape == (1, *values.shape[1:])]
    if values.dim() < 1 or not len(own) == len(alone) == len(values):
        return False
    together = torch.cat(own)
    return float((together - values).norm()) > _SAME * float(values.norm() + together.norm())


def _across(values: Tensor, whole: Tensor) -> Tensor:
    """What is left of a vector across the rows."""
    lengths = values.norm(dim=1)
    rows = values[lengths > 1e-9 * max(float(lengths.max()), float(whole.norm()))]
    if not len(rows):
        return whole
    found = torch.linalg.lstsq(rows.T, whole[:, None], driver="gelsd").solution
    left: Tensor = whole - (rows.T @ found).flatten()
    return left
