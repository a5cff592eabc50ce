"""Memory that is used again in every step."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

__all__ = ["Buffers"]


class Buffers:
    """Named memory; without it, freed tensors would go back to the system and be faulted in again at every step."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def get(self, name: str, *shape: int) -> Tensor:
        """The buffer of this name, grown if it is too small; its content is undefined."""
        held, size = self._held.get(name), prod(shape)
        if held is None or held.numel() < size:
            held = self._held[name] = torch.empty(size)
        return held[:size].view(shape)
