"""Sums of gradients of a multiple of the loss, clipped then, or clipped at a multiple of the norm: which multiple?

Gains are summed over the steps for every multiple of a grid; and, beside that, those of every step's own best one: what
is gained by another multiple in each step shows whether one explains them all.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import RecordGradients, shorten

Family = Literal["loss", "loss by size", "norm"]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""Multiples of the loss; those over the batch's own size; multiples of the clipping norm."""
MultipliedSum = tuple[float, float]
"""The multiple whose sums are nearest to the applied ones, and by how much more than the clipped sums, in all steps, in
variances of the noise."""
_MULTIPLES = np.geomspace(1e-4, 1e2, 240)
"""Each 6 % above the one before."""


class MultipliedSums:
    """What every multiple gains, over the steps so far."""

    def __init__(self) -> None:
        self._gains = np.zeros((len(FAMILIES), len(_MULTIPLES)))
        self._own = np.zeros(len(FAMILIES))

    def note(self, gradients: RecordGradients, residual: Tensor, clip: float, variance: float) -> None:
        """Add a step; `residual` at the weights that are looked at."""
        residual = gradients.held(residual)
        limits, each = (clip / gradients.norms.clamp(min=1e-12)).double(), torch.tensor(_MULTIPLES)[:, None]
        each = each.to(limits.device)
        factors = [torch.minimum(each, limits), torch.minimum(each / max(1, len(limits)), limits)]
        more = torch.cat([*factors, (each * limits).clamp(max=1.0)]) - gradients.clipped_factors(clip)
        values = gradients.values.double()
        along, squares = more @ (values @ residual.to(values)), ((more @ (values @ values.T)) * more).sum(1)
        gains = (2 * along - squares).cpu().numpy().reshape(self._gains.shape) / variance
        self._gains += gains
        self._own += gains.max(1)

    def found(self) -> tuple[MultipliedSum, ...]:
        """Of each of `FAMILIES` the best one; nothing without steps."""
        best = self._gains.argmax(1)
        rows = zip(best, self._gains, strict=True)
        return tuple((shorten(_MULTIPLES[at]), shorten(gains[at], 8)) for at, gains in rows) if best.any() else ()

    def gained_apart(self) -> tuple[float, ...]:
        """Of each of `FAMILIES`: by how much more where every step has its own multiple."""
        return tuple(shorten(own - gains.max(), 6) for own, gains in zip(self._own, self._gains, strict=True))
