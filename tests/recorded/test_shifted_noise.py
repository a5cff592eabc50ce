"""Noise that comes again at other places is found, whatever the places are; fresh noise is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from deniable.examination.recorded.noise.noise_pools import ShiftedNoise
from tests.recorded.test_run_mutations import CLIP, Run, Sums, check_told


class Wide(Run):
    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 80), nn.Tanh(), nn.Linear(80, 3))


class Pool(Wide):
    """Slices of numbers that were drawn once."""

    def noise(self) -> Sums:
        if self.step == 0:
            self.pool = CLIP * torch.randn(4000, generator=self.random)
        parts = {name: p.shape for name, p in self.model.named_parameters()}
        sizes = [shape.numel() for shape in parts.values()]
        start = int(torch.randint(0, len(self.pool) - 1000, (), generator=self.random))
        found = self.pool[start : start + sum(sizes)].split(sizes)
        return {name: part.view(shape) for (name, shape), part in zip(parts.items(), found, strict=True)}


class Tiles(Wide):
    """A tile of numbers for all weights."""

    def noise(self) -> Sums:
        tile = CLIP * torch.randn(300, generator=self.random)
        return {name: tile.repeat(4)[: p.numel()].view(p.shape) for name, p in self.model.named_parameters()}


@pytest.mark.parametrize(
    ("mutation", "verdict", "words"),
    [
        (Pool, "violated", "the same numbers of noise are used again at other places"),
        (Tiles, "violated", "the same number"),
        (Wide, "consistent", "not examined"),
    ],
)
def test_noise_of_one_pool_is_named(mutation: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(mutation(), verdict, words)


def test_copies_are_counted_at_every_shift() -> None:
    random = torch.Generator().manual_seed(0)
    pool = torch.randn(6000, generator=random)
    for shift in (1, 37, 500, 700):
        for first, second in ((pool[:1000], pool[shift : shift + 1000]), (pool[shift : shift + 1000], -pool[:1000])):
            noise = ShiftedNoise()
            assert noise.compare(first) == 0
            assert noise.compare(second) >= (1000 - shift) // 64 * 64


def test_fresh_noise_has_no_copies() -> None:
    random, noise = torch.Generator().manual_seed(1), ShiftedNoise()
    assert all(noise.compare(torch.randn(1000, generator=random)) == 0 for _ in range(60))
