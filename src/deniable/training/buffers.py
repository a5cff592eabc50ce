"""Memory that is used again in every step."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor


def split_like(flat: Tensor, like: list[Tensor]) -> list[Tensor]:
    """Parts of `flat`, in order, each of the shape of one of `like`: views."""
    parts = torch.split(flat, [values.numel() for values in like])
    return [part.view_as(values) for part, values in zip(parts, like, strict=True)]


class Buffers:
    """Named memory; without it, freed tensors would go back to the system and be faulted in again at every step."""

    def __init__(self) -> None:
        self._memory: dict[str, Tensor] = {}
        self._latest: dict[str, Tensor] = {}

    def get(self, name: str, *shape: int) -> Tensor:
        """The buffer of this name, grown if it is too small; single precision, and its content is undefined."""
        latest = self._latest.get(name)
        if latest is None or latest.shape != shape:
            latest = self._latest[name] = self._part(name, prod(shape)).view(shape)
        return latest

    def _part(self, name: str, size: int) -> Tensor:
        memory = self._memory.get(name)
        if memory is None or memory.numel() < size:
            memory = self._memory[name] = torch.empty(size, dtype=torch.float32)
        return memory[:size]
