"""Are a step's gradients taken at the weights that it moves? Sharpness-aware training moves them before, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.record_shares import shorten
from deniable.examination.recorded.weights.weight_moves import WatchedWeights, cosine

OtherWeightsOfGradients = tuple[int, float]
"""In how many steps the last forward pass with gradients has other weights, and the median cosine of the departure with
the batch's gradient; 0 where that was not known."""
_TENSORS, _NUMBERS = 4, 16
"""So many are looked at in every pass, until they are seen to depart."""
_DEPARTS = 1e-3
"""Relative to the weights: less is decay by hand, or rounding."""
_PARALLEL = 0.99


class ForwardWeights:
    """Notes the weights of the last forward pass with gradients."""

    def __init__(self, model: nn.Module, weights: WatchedWeights) -> None:
        self._weights = weights
        chosen = np.linspace(0, len(weights.parameters) - 1, min(_TENSORS, len(weights.parameters))).astype(int)
        self._few = [weights.parameters[at] for at in chosen]
        self._noted: Tensor | None = None
        self._departs, self._steps = False, 0
        self._cosines: list[float] = []
        self._off: Tensor | None = None
        self._hook = model.register_forward_pre_hook(lambda *_: self._note())

    def close(self) -> None:
        """Look no further."""
        self._hook.remove()

    def _note(self) -> None:
        if torch.is_grad_enabled():
            self._noted = self._now()

    def _now(self) -> Tensor:
        """The few numbers, or all that are watched once these were seen to depart."""
        if self._departs:
            return self._weights.take([p.detach() for p in self._weights.parameters])
        return torch.cat([p.detach().flatten()[:_NUMBERS].clone() for p in self._few])

    def start_step(self) -> None:
        """Compare what was noted with the weights that the step moves."""
        noted, self._noted, self._off = self._noted, None, None
        if noted is None:
            return
        now = self._now()
        off, length = noted - now, float(now.norm())
        if len(off) != len(now) or float(off.norm()) <= _DEPARTS * length or abs(cosine(off, now)) > _PARALLEL:
            return
        self._steps += 1
        self._off = off.double() if self._departs else None
        self._departs = True

    def compare(self, sums: Sequence[Sequence[Tensor]]) -> None:
        """With the batch's own sums of gradients, clipped and not, over all weights."""
        if self._off is not None:
            self._cosines.append(max(abs(cosine(self._off, self._weights.take(one))) for one in sums))

    def found(self) -> OtherWeightsOfGradients | None:
        """None where gradients are taken at the weights that are moved."""
        if not self._steps:
            return None
        return self._steps, shorten(float(np.median(self._cosines))) if self._cosines else 0.0
