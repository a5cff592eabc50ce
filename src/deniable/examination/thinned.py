"""A training as some of its weights show it: rules that move all weights alike are told from a few thousand of them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from deniable.examination.recomputation import RecomputedSteps
from deniable.examination.trainer import WatchedTraining

MOST_A_LAYER, MOST_IN_ALL, ENOUGH = 4096, 2**16, 1024
"""Weights of a layer that are looked at, and of all; of many layers, so many of each are enough."""


@lru_cache(maxsize=8)
def _chosen(sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The numbers of the kept weights of each layer, at random, the same in every training; smaller ones whole."""
    drawn, most = torch.Generator().manual_seed(0), min(MOST_A_LAYER, max(ENOUGH, MOST_IN_ALL // len(sizes)))
    return tuple(torch.randperm(size, generator=drawn)[:most].sort().values for size in sizes)


def _sizes(seen: WatchedTraining) -> tuple[int, ...]:
    return tuple(w[0].numel() for w in seen.weights)


def thin(seen: WatchedTraining) -> WatchedTraining:
    """The same steps of the kept weights; itself where no layer is larger."""
    if max(_sizes(seen)) <= MOST_A_LAYER:
        return seen
    chosen = _chosen(_sizes(seen))

    def kept(values: list[Tensor], first: int) -> list[Tensor]:
        return [v.flatten(first)[..., at] for v, at in zip(values, chosen, strict=True)]

    return replace(
        seen,
        weights=kept(seen.weights, 1),
        sums=kept(seen.sums, 1),
        shown=None if seen.shown is None else kept(seen.shown, 1),
        final=None if seen.final is None else kept(seen.final, 0),
    )


def thin_vector(values: Tensor, seen: WatchedTraining) -> Tensor:
    """(..., weights) of all layers, as flat as they are: those of the kept weights."""
    sizes = _sizes(seen)
    if max(sizes) <= MOST_A_LAYER:
        return values
    parts = zip(torch.split(values, list(sizes), -1), _chosen(sizes), strict=True)
    return torch.cat([part[..., at] for part, at in parts], -1)


def thin_steps(found: RecomputedSteps, seen: WatchedTraining) -> RecomputedSteps:
    """The recomputed sums of the kept weights."""
    names = ("residual", "clean", "whole", "everybody")
    return replace(found, **{name: thin_vector(getattr(found, name), seen) for name in names})
