"""Other gradients that a training may have summed in place of the clipped ones: which of them fits what was applied?

For finding the cause only, so for a few trials: every record's gradient is materialised (`torch.func`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.audit.recomputed import Recomputed, Recomputer, flat
from deniable.audit.trainer import Seen
from deniable.training.gradients import GenericGradients, clip_factors

__all__ = ["ALIKE", "ALTERNATIVES", "distances"]

STEPS = 10
"""How many of a trial's steps are looked at."""

_MEAN_CLIPPED = (
    "the batch's mean gradient is clipped, not each example's, so one example's influence is bounded by nothing: clip "
    "every example's gradient before summing"
)
_SUM_CLIPPED = (
    "the batch's summed gradient is clipped, not each example's: clip every example's gradient before summing"
)
_ACCUMULATED = (
    "the previous step's gradient is still in it (gradients accumulate, or momentum is added before the gradient is "
    "yielded): set gradients to zero before each step, and yield the gradient that the optimizer is given"
)
ALTERNATIVES = {
    "as claimed": "",
    "not clipped": "the gradients are not clipped at all: clip every example's gradient before summing",
    "mean clipped": _MEAN_CLIPPED,
    "mean clipped, not multiplied": _MEAN_CLIPPED,
    "loss averaged before clipping": (
        "each example's loss is divided by the batch size before clipping, so that hardly any gradient reaches the "
        "clipping norm: clip the gradients of the examples' own losses"
    ),
    "loss multiplied before clipping": "each example's loss is multiplied by the batch size before clipping",
    "clipped per layer": (
        "every layer is clipped on its own to the whole norm, so an example's gradient has a norm of up to clip x "
        "sqrt(layers): clip the norm over all layers, or divide the clipping norm among them"
    ),
    "clipped per layer to an equal part": (
        "every layer is clipped on its own to clip / sqrt(layers): the norm is bounded as claimed, the gradient is "
        "another one; audit it with its own clipping"
    ),
    "clipped at twice the norm": "the gradients are clipped at twice the claimed norm: one example counts double",
    "clipped at half the norm": "the gradients are clipped at half the claimed norm",
    "normalised": "every gradient is scaled to the clipping norm, also those that are shorter",
    "mean in place of the sum": (
        "what is yielded is the mean over the batch: yield its divisor, too (AppliedStep(..., divisor=...))"
    ),
    "sum clipped": _SUM_CLIPPED,
    "sum clipped, multiplied": _SUM_CLIPPED,
    "all records": "all records are used in every step, not the batch alone: use the batch that was drawn",
    "previous gradient added": _ACCUMULATED,
    "previous gradient added, 0.9 x": _ACCUMULATED,
    "previous gradient added, 0.5 x": _ACCUMULATED,
    "previous clean sum added": (
        "the previous step's clean gradient is added again: set gradients to zero before each step"
    ),
    "weights after the step": (
        "the gradient belongs to other weights than those yielded: yield the weights before the step"
    ),
}
"""What may have been summed, and the sentence that says so."""
ALIKE = {
    ("not clipped", "mean clipped"): (
        "the gradients are not clipped example by example: either the batch's mean gradient is clipped in place of "
        "each example's, or nothing is (in these trainings that is the same, since the mean was short): clip every "
        "example's gradient before summing"
    ),
    ("mean clipped, not multiplied", "loss averaged before clipping"): (
        "the batch's mean gradient is clipped, not each example's, or each example's loss is divided by the batch size "
        "before clipping (in these trainings that is the same, since the mean was short): clip the gradients of the "
        "examples' own losses before summing"
    ),
}
"""Sentences for pairs that a training may not tell apart."""


def distances(recomputer: Recomputer, seen: Seen, found: Recomputed) -> NDArray[np.float64]:
    """(steps, alternatives) squared distances of what was applied to each alternative, in claimed variances."""
    steps = min(STEPS, len(seen))
    rows = [_step_distances(recomputer, seen, found, step) for step in range(steps)]
    return np.array(rows)


def _step_distances(recomputer: Recomputer, seen: Seen, found: Recomputed, step: int) -> list[float]:
    claim, applied = recomputer.claim, flat(seen.sums)
    sums = _candidates(_gradients(recomputer, seen, step), found, applied, step, clip=claim.clip)
    return [float((applied[step] - sums[name]).double().square().sum()) / claim.sigma**2 for name in ALTERNATIVES]


def _gradients(recomputer: Recomputer, seen: Seen, step: int) -> list[Tensor]:
    records, labels, _ = recomputer.columns
    weights = [w[step : step + 1] for w in seen.weights]
    generic = GenericGradients(recomputer.model, recomputer.loss, weights, differing=0)
    generic.load(records[None], labels[None])
    return [g[0].flatten(1) for g in generic.gradients_of(slice(0, len(records)))]


def _candidates(
    gradients: list[Tensor], found: Recomputed, applied: Tensor, step: int, *, clip: float
) -> dict[str, Tensor]:
    include = found.include[step]
    size, clean, whole = max(1.0, float(include.sum())), found.clean[step], found.whole[step]
    nothing = torch.zeros_like(clean)
    last, last_clean = (applied[step - 1], found.clean[step - 1]) if step else (nothing, nothing)
    after = min(step + 1, len(applied) - 1)
    every = torch.cat(gradients, 1)

    def clipped(values: list[Tensor], norm: float, least: float = 1.0) -> Tensor:
        return torch.cat([_factors(v, norm, least) * v for v in values], 1)

    def total(values: Tensor) -> Tensor:
        return include @ values

    def shortened(vector: Tensor) -> Tensor:
        shorter: Tensor = _factors(vector[None], clip, 1.0)[0] * vector
        return shorter

    part = clip / len(gradients) ** 0.5
    candidates: dict[str, Callable[[], Tensor]] = {
        "as claimed": lambda: clean,
        "not clipped": lambda: whole,
        "mean clipped": lambda: shortened(whole / size) * size,
        "mean clipped, not multiplied": lambda: shortened(whole / size),
        "sum clipped": lambda: shortened(whole),
        "sum clipped, multiplied": lambda: shortened(whole) * size,
        "clipped per layer": lambda: total(clipped(gradients, clip)),
        "clipped per layer to an equal part": lambda: total(clipped(gradients, part)),
        "clipped at twice the norm": lambda: total(clipped([every], 2 * clip)),
        "clipped at half the norm": lambda: total(clipped([every], clip / 2)),
        "normalised": lambda: total(clipped([every], clip, inf)),
        "loss averaged before clipping": lambda: total(clipped([every / size], clip)),
        "loss multiplied before clipping": lambda: total(clipped([every * size], clip)),
        "mean in place of the sum": lambda: clean / size,
        "all records": lambda: found.everybody[step],
        "previous gradient added": lambda: clean + last,
        "previous gradient added, 0.9 x": lambda: clean + 0.9 * last,
        "previous gradient added, 0.5 x": lambda: clean + 0.5 * last,
        "previous clean sum added": lambda: clean + last_clean,
        "weights after the step": lambda: found.clean[after],
    }
    return {name: make() for name, make in candidates.items()}


def _factors(gradients: Tensor, clip: float, most: float) -> Tensor:
    norms = gradients.norm(dim=1, keepdim=True)
    if most == inf:
        longer: Tensor = clip / norms.clamp(min=1e-12)
        return longer
    factors = torch.empty_like(norms)
    clip_factors(norms, clip, factors)
    return factors
