"""The noise beside the size of the gradient's numbers: is it small where these are small?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch
from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import shorten

_QUARTER = 4
"""Parts of a parameter's numbers, by their size in the clipped sum."""


class NoiseBySize(msgspec.Struct, frozen=True, array_like=True):
    """Mean squares in the quarter of each parameter's numbers that are smallest in the clipped sum, and largest.

    Of the noise without what it has along the parameter's clipped sum, and of that sum; where neither that nor what is
    applied is zero.
    """

    small_noise: float
    large_noise: float
    small: float
    large: float
    numbers: int
    """In each of the two."""


def noise_by_size(applied: Sequence[Tensor], clean: Sequence[Tensor]) -> NoiseBySize | None:
    """Of an applied sum and the clipped one, parameter by parameter, flat; None where too few numbers tell."""
    parts = [_quarters(a.double(), c.double()) for a, c in zip(applied, clean, strict=True)]
    found = torch.cat(parts, dim=1)
    if not found.shape[1]:
        return None
    small_noise, small, large_noise, large = (shorten(one) for one in found.square().mean(1))
    return NoiseBySize(small_noise, large_noise, small, large, found.shape[1])


def _quarters(applied: Tensor, clean: Tensor) -> Tensor:
    """(4, numbers): noise and clipped sum of the smallest quarter, and of the largest."""
    there = (clean != 0) & (applied != 0)
    clean, applied = clean[there], applied[there]
    noise = applied - clean * (applied @ clean) / clean.square().sum().clamp(min=1e-300)
    order, some = clean.abs().argsort(), len(clean) // _QUARTER
    first, last = order[:some], order[len(order) - some :]
    return torch.stack([noise[first], clean[first], noise[last], clean[last]])
