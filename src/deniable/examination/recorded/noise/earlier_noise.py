"""The noise of each examined step beside that of earlier ones: what is used again, or common to all, is no noise."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import shorten
from deniable.examination.recorded.noise.noise_pools import ShiftedNoise

EARLIER_STEPS = 512
"""With which a step's noise is compared."""
_ROUNDING = 1e-5
"""Relative to what was applied."""


class EarlierNoise:
    """Keeps it on as many weights as are watched, and its sum on all that are looked at."""

    def __init__(self, watched: int) -> None:
        self._watched = watched
        self._units: deque[Tensor] = deque(maxlen=EARLIER_STEPS)
        self._sum: Tensor | None = None
        self.shifts = ShiftedNoise()

    def cosine(
        self, known: NDArray[np.float64], applied: list[Tensor], clean: list[Tensor], whole: list[Tensor]
    ) -> float | None:
        """The largest cosine with earlier noise, on as many weights as are watched: what is used again has one of 1.

        Noise is the residual without its parts along the clean sum and what is cut, `known`, which may be common to
        all steps. A step without any is not compared: what rounding leaves is alike in different steps.
        """
        count = sum(part.numel() for part in clean)
        places = torch.linspace(0, count - 1, self._watched, dtype=torch.float64).long()
        at_applied, at_clean, at_whole = (_pick(values, places) for values in (applied, clean, whole))
        along_clean, along_cut = known
        noise = at_applied - at_clean - along_clean * at_clean - along_cut * (at_whole - at_clean)
        if float(noise.norm()) <= _ROUNDING * float(at_applied.norm()):
            return None
        unit = noise / noise.norm().clamp(min=1e-30)
        cosines = torch.stack(list(self._units)) @ unit if self._units else None
        self._units.append(unit)
        return None if cosines is None else round(float(cosines[cosines.abs().argmax()]), 9)

    def along_sum(self, residual: Tensor) -> tuple[float, float]:
        """The residual's product with the sum of earlier ones, and that sum's squared length; then it is added."""
        earlier = torch.zeros_like(residual, dtype=torch.float32) if self._sum is None else self._sum
        found = shorten(earlier.double() @ residual), shorten(earlier.double().square().sum())
        self._sum = earlier + residual.float()
        return found


def _pick(values: Sequence[Tensor], places: Tensor) -> Tensor:
    return torch.cat([v.detach().flatten().cpu() for v in values])[places].double()
