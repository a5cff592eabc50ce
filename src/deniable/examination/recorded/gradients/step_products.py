"""Inner products of one step's vectors: all that is kept of its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from deniable.examination.recorded.gradients.batch_gradients import CLIPPINGS, BatchSums, Places
from deniable.examination.recorded.gradients.record_shares import shorten
from deniable.examination.recorded.run_record import MOMENTUM, VECTORS
from deniable.examination.recorded.weights.weight_moves import WatchedWeights


def looked_at(values: Tensor, places: Tensor | None) -> Tensor:
    """The flat numbers at some places; all without."""
    flat = values.detach().flatten()
    return flat if places is None else flat[places.to(flat.device)]


_EXAMINED_WEIGHTS = 2**20
"""Of a larger model about so many are looked at: the noise's size is known to .1 % after one step."""
_LEAST_EXAMINED = 64
"""Of each parameter, if it has them."""


def sample_places(parameters: Sequence[Tensor]) -> list[Tensor | None]:
    """Which weights are looked at: all, or of a large model a random sample, drawn by the operating system."""
    total = sum(p.numel() for p in parameters)
    if total <= _EXAMINED_WEIGHTS:
        return [None] * len(parameters)
    random = torch.Generator()
    random.seed()
    counts = [max(min(p.numel(), _LEAST_EXAMINED), p.numel() * _EXAMINED_WEIGHTS // total) for p in parameters]
    return [
        None if count == p.numel() else torch.randint(p.numel(), (count,), generator=random).unique()  # type: ignore[no-untyped-call]
        for p, count in zip(parameters, counts, strict=True)
    ]


@dataclass(frozen=True)
class StepBefore:
    """What a step leaves for the next one: its clipped and applied sums, at the places that are looked at."""

    number: int = -1
    clean: list[Tensor] = field(default_factory=list)
    momentum: list[Tensor] = field(default_factory=list)
    """Clipped sums of all steps so far, each step `MOMENTUM` times what was before."""
    applied: list[Tensor] = field(default_factory=list)
    every: list[Tensor] = field(default_factory=list)
    """The mean clipped gradient of all records, or of a sample; empty where none was computed."""
    unclipped: list[Tensor] = field(default_factory=list)
    whole: bool = False
    """Whether these are all weights."""

    def then(
        self,
        number: int,
        gradients: Sequence[Tensor],
        places: Places,
        divisor: float,
        *,
        sums: BatchSums,
        every: list[Tensor],
    ) -> StepBefore:
        """What an examined step leaves, of which this was the one before."""
        applied = [looked_at(g, at).clone() * divisor for g, at in zip(gradients, places, strict=True)]
        clean = [c.flatten() for c in sums.clean]
        earlier = self.of(number).momentum or [torch.zeros_like(c) for c in clean]
        momentum = [MOMENTUM * before + now for before, now in zip(earlier, clean, strict=True)]
        unclipped = [part.flatten() for part in sums.whole]
        return StepBefore(number, clean, momentum, applied, every, unclipped, all(at is None for at in places))

    def of(self, number: int) -> StepBefore:
        """Itself if it is the step just before; else nothing."""
        return self if self.number == number - 1 else StepBefore()

    def watched_sums(self, number: int, weights: WatchedWeights) -> tuple[Tensor, ...]:
        """Its noise, its clipped sum, that of all records, and its own without clipping, on the watched weights.

        Nothing if it is not the step just before, or not all weights were looked at.
        """
        if self.number != number - 1 or not self.whole:
            return ()
        noise = [a - c for a, c in zip(self.applied, self.clean, strict=True)]
        every = self.every or [torch.zeros_like(part) for part in self.clean]
        return tuple(weights.take(part) for part in (noise, self.clean, every, self.unclipped))


class StepProducts(TypedDict):
    """Fields of `ExaminedStep` that `inner_products` finds."""

    residual: tuple[float, ...]
    sizes: tuple[int, ...]
    gram: tuple[float, ...]
    by_parameter: tuple[tuple[float, ...], ...]
    fourth: float
    total: float


def inner_products(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    places: Places,
    divisor: float,
    *,
    sums: BatchSums,
    before: StepBefore,
    every: Sequence[Tensor] = (),
) -> StepProducts:
    """Fields of `ExaminedStep`, parameter by parameter, so that no more than one is held in full.

    `every`: the mean clipped gradient of all records, flat, where it was computed.
    """
    gram, fourth, total, by_parameter, residuals = np.zeros((len(VECTORS), len(VECTORS))), 0.0, 0.0, [], []
    for place, (p, g, at) in enumerate(zip(parameters, gradients, places, strict=True)):
        clean = sums.clean[place].flatten().double()
        nothing = torch.zeros_like(clean)
        rows = torch.stack(
            [
                looked_at(g, at).double() * divisor - clean,
                clean,
                sums.whole[place].flatten().double() - clean,
                *(sums.others[kind][place].flatten().double() - clean for kind in CLIPPINGS),
                looked_at(p, at).double(),
                before.clean[place].double() if before.clean else nothing,
                before.momentum[place].double() if before.momentum else nothing,
                every[place].double() if every else nothing,
                before.applied[place].double() if before.applied else nothing,
            ]
        )
        part = (rows @ rows.T).cpu().numpy()
        gram += part
        residuals.append(shorten(part[0, 0], 8))
        by_parameter.append(tuple(shorten(part[i, j]) for i, j in ((0, 2), (2, 2), (0, 1), (1, 1))))
        fourth += float(rows[0].pow(4).sum())
        total += float(rows[0].sum())
    return {
        "residual": tuple(residuals),
        "sizes": tuple(c.numel() for c in sums.clean),
        "gram": tuple(shorten(value, 8) for value in gram[np.triu_indices(len(VECTORS))]),
        "by_parameter": tuple(by_parameter),
        "fourth": shorten(fourth, 6),
        "total": shorten(total),
    }
