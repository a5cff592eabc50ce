"""Where randomness comes from: a seed for audits, the operating system for released models."""

from __future__ import annotations

import os
from ctypes import c_float, c_long
from typing import Protocol

import numpy as np
import torch
from numpy.random import MT19937, SeedSequence
from torch import Tensor

from deniable.checks import whole
from deniable.training import kernels

MANY_DRAWS = 2048
"""From so many draws on, the kernel is worth the two copies of the generator's state."""


class RandomSource(Protocol):
    """Fills tensors with independent draws."""

    def normal_(self, tensor: Tensor) -> Tensor:
        """Standard normal, in place."""

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1)."""

    def below(self, rate: float, count: int) -> Tensor:
        """Which of `count` uniform draws are below the rate: a Poisson sample's places."""


class SeededSource:
    """Reproducible draws, for audits only: who knows the seed can subtract the noise.

    torch keeps 32 bits of a manual seed, too few for many blocks to differ for certain, so the generator's whole
    state is taken from NumPy's `SeedSequence` of (seed, block, stream).
    """

    def __init__(self, seed: int, block: int, stream: int = 0) -> None:
        sequence = SeedSequence(whole("seed", seed, low=0), spawn_key=(whole("block", block, low=0), stream))
        self.generator = _generator(MT19937(sequence))

    def normal_(self, tensor: Tensor) -> Tensor:
        """A billion draws a second and a core by our kernel (`_noise.c`), 250 million by torch; the same draws."""
        suited = tensor.dtype == torch.float32 and tensor.is_contiguous() and tensor.numel() >= MANY_DRAWS
        if kernels.KERNELS is None or not suited:
            return tensor.normal_(generator=self.generator)
        state = self.generator.get_state()
        kernels.call("normal", tensor, c_long(tensor.numel()), state)
        self.generator.set_state(state)
        return tensor

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1)."""
        return torch.rand(*shape, generator=self.generator)

    def below(self, rate: float, count: int) -> Tensor:
        """As of `uniform`, in a fourth of the time."""
        if kernels.KERNELS is None or count < MANY_DRAWS:
            return (self.uniform(count) < rate).nonzero().squeeze(1)
        drawn, found = torch.empty(count + 1, dtype=torch.int64), torch.empty(1, dtype=torch.int64)
        state = self.generator.get_state()
        kernels.call("draw_below", drawn, found, c_long(count), c_float(rate), state)
        self.generator.set_state(state)
        return drawn[: int(found)]


def _generator(twister: MT19937) -> torch.Generator:
    """A torch generator in the state of NumPy's Mersenne twister (torch's serial form: one 64-bit word a number)."""
    generator = torch.Generator()
    words = generator.manual_seed(0).get_state().numpy().copy().view(np.uint64)
    words[3 : 3 + 624] = twister.state["state"]["key"]
    generator.set_state(torch.from_numpy(words.view(np.uint8)))
    return generator


class SystemSource:
    """Draws from the operating system's entropy, for models that are released; nobody can repeat them.

    Every draw uses 53 fresh random bits (Box-Muller in float64). Attacks on the rounding of floating-point noise
    are outside what this protects from.
    """

    def normal_(self, tensor: Tensor) -> Tensor:
        """Standard normal, in place."""
        half = (tensor.numel() + 1) // 2
        radius = np.sqrt(-2 * np.log1p(-_system_uniform(half)))
        angle = 2 * np.pi * _system_uniform(half)
        draws = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[: tensor.numel()]
        return tensor.copy_(torch.from_numpy(draws).view(tensor.shape))

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1)."""
        return torch.from_numpy(_system_uniform(int(np.prod(shape)))).view(shape)

    def below(self, rate: float, count: int) -> Tensor:
        """As of `uniform`."""
        return (self.uniform(count) < rate).nonzero().squeeze(1)


def _system_uniform(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
