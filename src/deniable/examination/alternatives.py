"""Other gradients that a training may have summed in place of the clipped ones; `explanations` asks which of them fits.

For finding the cause only, so for a few trials: every record's gradient is materialised (`torch.func`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.recomputation import RecomputedSteps, Recomputer, flat
from deniable.examination.trainer import WatchedTraining

STEPS = 10
"""How many of a trial's steps are looked at."""
CLIPS = (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Clipping norms that are tried, as multiples of the claimed one."""
MICROBATCH_SIZES, MICROBATCH_KINDS = (2, 3, 4, 5, 8, 10, 16), ("sum", "mean", "mean multiplied")
MICROBATCHES = tuple(product(MICROBATCH_SIZES, MICROBATCH_KINDS))
"""Sizes of groups that may have been clipped as one, and what of each group."""
AT_ONCE = 2**24
"""Numbers of gradients that are held at once."""
MOMENTA = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Decays that are tried, of the clean sums before this step's."""
ADAM = "direction by Adam"
"""Of the clean sums up to this step's, with Adam's usual decays."""
AFTER = "weights after"
"""The one vector that is not known before the step's noise is drawn."""

LOSSES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)
"""Multiples of the loss that are tried."""
VALUES = (1.0, 0.5, 0.25, 0.1)
"""Limits of single numbers that are tried, as multiples of the claimed norm."""
COUNTED = {
    "norm without the first": slice(1, None),
    "norm without the first two": slice(2, None),
    "norm without the last": slice(None, -1),
    "norm without the last two": slice(None, -2),
}
"""Norms of some parameters that are tried for the norm of all."""
FLAT = "clipped at 1 x"
"""The usual clipping, whatever kind is claimed."""
GAMMA = 0.01
"""AUTO-S's usual one."""

_BY_FACTORS = (
    *(f"clipped at {c:g} x" for c in CLIPS),
    "normalised",
    "squared norm",
    "matrices only",
    *COUNTED,
    "absolute norm",
    "largest number",
    "loss averaged",
    "loss averaged, expected size",
    "loss multiplied",
    "auto-s",
    "median norm",
    "mean norm",
    *(f"loss x {factor:g}" for factor in LOSSES),
)
VECTORS = (
    "applied",
    "clean",
    "whole",
    "mean clipped",
    "mean clipped, not multiplied",
    "mean clipped, expected size",
    "sum clipped",
    "sum clipped, multiplied",
    "mean",
    "per layer",
    "per layer, equal part",
    "layers scaled",
    "layers scaled, equal part",
    *(f"by value {share:g}" for share in VALUES),
    "biases whole",
    "first layer whole",
    "last layer whole",
    "all records",
    "previous gradient",
    "previous clean",
    "older weights",
    *(f"momentum {decay:g}" for decay in MOMENTA),
    ADAM,
    "weights",
    AFTER,
    *_BY_FACTORS,
    *(f"{what} of {size}" for size, what in MICROBATCHES),
)
"""What was applied, and everything that it may be made of; (steps, vectors, vectors) inner products are kept."""


class LookedTrial(NamedTuple):
    """What one trial shows of other explanations."""

    products: NDArray[np.float64]
    """(first steps, vectors, vectors) inner products of `VECTORS`, in claimed variances."""
    free: NDArray[np.float64]
    """(first steps, 2) noise outside the span of all gradients, see `free_noise`."""

    @classmethod
    def of(cls, recomputer: Recomputer, seen: WatchedTraining, members: NDArray[np.int64]) -> LookedTrial:
        """Of a watched training on these members."""
        found = recomputer.recompute(seen, members)
        return cls(products(recomputer, seen, found, members), free_noise(recomputer, seen, found))


def products(
    recomputer: Recomputer, seen: WatchedTraining, found: RecomputedSteps, members: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Inner products of `VECTORS` in claimed variances, for the first steps of one training."""
    return np.concatenate([np.asarray(v @ v.mT) for v in vectors(recomputer, seen, found, members)])


def vectors(
    recomputer: Recomputer, seen: WatchedTraining, found: RecomputedSteps, members: NDArray[np.int64]
) -> Iterator[Tensor]:
    """`VECTORS` in claimed standard deviations, (some steps, vectors, weights), float64: the first `STEPS` steps."""
    steps = range(min(STEPS, len(seen)))
    group = max(1, AT_ONCE // (len(recomputer.columns.records) * found.clean.shape[1]))
    for start in steps[::group]:
        yield _vectors(recomputer, seen, found, members, steps[start : start + group])


def _vectors(
    recomputer: Recomputer, seen: WatchedTraining, found: RecomputedSteps, members: NDArray[np.int64], steps: range
) -> Tensor:
    gradients = recomputer.every([w[steps.start : steps.stop] for w in seen.weights])
    expected = recomputer.claim.rate * (len(recomputer.columns.records) - recomputer.columns.differing + 1)
    rows = []
    for place, step in enumerate(steps):
        drawn, own = seen.batches[step], [g[place] for g in gradients]
        order, clip = torch.from_numpy(members if drawn is None else members[drawn]), float(found.clip[step])
        named = _known(seen, found, step, clip, expected)
        named |= _by_record(own, found.include[step], order, clip, expected)
        rows.append(torch.stack([named[name] for name in VECTORS]).double() / float(found.sigma[step]))
    return torch.stack(rows)


def free_noise(recomputer: Recomputer, seen: WatchedTraining, found: RecomputedSteps) -> NDArray[np.float64]:
    """(first steps, 2) squared length of the residual outside the span of all records' gradients, layer by layer, and
    its dimension. Whatever multiples of the gradients, or of their layers, are summed: what is left is noise.
    """
    steps, rows = range(min(STEPS, len(seen))), []
    gradients = recomputer.every([w[: len(steps)] for w in seen.weights])
    parts = torch.split(found.residual, [g[0, 0].numel() for g in gradients], 1)
    for step in steps:
        total = np.zeros(2)
        for g, part in zip(gradients, parts, strict=True):
            each, rest = g[step].flatten(1).double(), part[step].double()
            if each.shape[1] > 1.2 * len(each):
                _, sizes, basis = torch.linalg.svd(each, full_matrices=False)
                basis = basis[sizes > 1e-6 * sizes.max().clamp(min=1e-12)]
                rest = rest - basis.T @ (basis @ rest)
                total += [float(rest.square().sum()), each.shape[1] - len(basis)]
        rows.append(total)
    return np.array(rows)


def _by_record(
    gradients: list[Tensor], include: Tensor, order: Tensor, clip: float, expected: float
) -> dict[str, Tensor]:
    """What needs every record's own gradient."""
    every = torch.cat([g.flatten(1) for g in gradients], 1)
    return {
        **_by_layer(gradients, include, clip),
        **_by_factors(gradients, every, include, clip, expected),
        **_by_microbatch(every[order], clip),
    }


def _known(seen: WatchedTraining, found: RecomputedSteps, step: int, clip: float, expected: float) -> dict[str, Tensor]:
    """What needs no single record's gradient."""
    applied, clean, whole = flat(seen.sums), found.clean, found.whole[step]
    nothing = torch.zeros_like(whole)
    size = max(1.0, float(found.include[step].sum()))
    return {
        "applied": applied[step],
        "clean": clean[step],
        "whole": whole,
        "mean clipped": _shorten(whole / size, clip) * size,
        "mean clipped, not multiplied": _shorten(whole / size, clip),
        "mean clipped, expected size": _shorten(whole / size, clip) * expected,
        "sum clipped": _shorten(whole, clip),
        "sum clipped, multiplied": _shorten(whole, clip) * size,
        "mean": clean[step] / size,
        "all records": found.everybody[step],
        "previous gradient": applied[step - 1] if step else nothing,
        "previous clean": clean[step - 1] if step else nothing,
        "older weights": clean[max(step - 1, 0)],
        **{f"momentum {m:g}": sum((m ** (step - k) * clean[k] for k in range(step)), nothing) for m in MOMENTA},
        ADAM: _adam_direction(clean[: step + 1]),
        # many trainings seed the first weights and the noise alike, so that the two resemble: no weights in step 1
        "weights": torch.cat([w[step].flatten() for w in seen.weights]) if step else nothing,
        AFTER: clean[min(step + 1, len(clean) - 1)],
    }


def _adam_direction(sums: Tensor) -> Tensor:
    """The last step's, corrected for the start; the sums' scale is without effect."""
    first, second = torch.zeros_like(sums[0]), torch.zeros_like(sums[0])
    for one in sums:
        first, second = 0.9 * first + 0.1 * one, 0.999 * second + 0.001 * one.square()
    steps = len(sums)
    root = (second / (1 - 0.999**steps)).sqrt()
    return first / (1 - 0.9**steps) / root.clamp(min=1e-12 * max(float(root.max()), 1e-30))


def _by_layer(gradients: list[Tensor], include: Tensor, clip: float) -> dict[str, Tensor]:
    layers = [g.flatten(1) for g in gradients]
    whole, together = include, _factors(torch.cat(layers, 1).norm(dim=1), clip)

    def add_layers(norm: float, most: float = 1.0) -> Tensor:
        return torch.cat([(include * _factors(g.norm(dim=1), norm, most)) @ g for g in layers])

    equal = clip / len(layers) ** 0.5

    return {
        "per layer": add_layers(clip),
        "per layer, equal part": add_layers(equal),
        "layers scaled": add_layers(clip, inf),
        "layers scaled, equal part": add_layers(equal, inf),
        **{f"by value {v:g}": torch.cat([include @ g.clamp(-v * clip, v * clip) for g in layers]) for v in VALUES},
        "biases whole": torch.cat([(whole if g.dim() < 3 else include * together) @ g.flatten(1) for g in gradients]),
        "first layer whole": torch.cat([(whole if i < 2 else include * together) @ g for i, g in enumerate(layers)]),
        "last layer whole": torch.cat(
            [(whole if i >= len(layers) - 2 else include * together) @ g for i, g in enumerate(layers)]
        ),
    }


def _by_factors(
    gradients: list[Tensor], every: Tensor, include: Tensor, clip: float, expected: float
) -> dict[str, Tensor]:
    """Sums in which every record's gradient is only made longer or shorter."""
    norms, size = every.norm(dim=1), max(1.0, float(include.sum()))
    drawn = norms[include > 0] if bool((include > 0).any()) else norms
    matrices = [g.flatten(1) for g in gradients if g.dim() > 2] or [every]
    lengths = torch.stack([g.flatten(1).norm(dim=1) for g in gradients])
    factors = [
        *(_factors(norms, c * clip) for c in CLIPS),
        _factors(norms, clip, inf),
        _factors(norms.square(), clip),
        _factors(torch.cat(matrices, 1).norm(dim=1), clip),
        *(_factors(lengths[part].norm(dim=0) if len(lengths[part]) else norms, clip) for part in COUNTED.values()),
        _factors(every.abs().sum(1), clip),
        _factors(every.abs().amax(1), clip),
        _factors(norms / size, clip) / size,
        _factors(norms / expected, clip) / expected,
        _factors(norms * size, clip) * size,
        clip / (norms + GAMMA),
        _factors(norms, float(drawn.median())),
        _factors(norms, float(drawn.mean())),
        *(_factors(norms * factor, clip) * factor for factor in LOSSES),
    ]
    sums = (torch.stack(factors) * include) @ every
    return dict(zip(_BY_FACTORS, sums, strict=True))


def _by_microbatch(batch: Tensor, clip: float) -> dict[str, Tensor]:
    """Groups of the batch, in its order, clipped as one."""
    found: dict[str, Tensor] = {}
    for size in MICROBATCH_SIZES:
        group = torch.arange(len(batch)) // size
        numbers = torch.bincount(group, minlength=1).clamp(min=1).float()
        sums = batch.new_zeros(len(numbers), batch.shape[1]).index_add_(0, group, batch)
        norms = sums.norm(dim=1)
        shorter = _factors(norms / numbers, clip) / numbers
        factors = {"sum": _factors(norms, clip), "mean": shorter, "mean multiplied": shorter * numbers}
        found |= {f"{what} of {size}": factors[what] @ sums for what in MICROBATCH_KINDS}
    return found


def _shorten(vector: Tensor, clip: float) -> Tensor:
    return vector * min(1.0, clip / max(float(vector.norm()), 1e-12))


def _factors(norms: Tensor, clip: float, most: float = 1.0) -> Tensor:
    """That make gradients of these norms as long as `clip`, or at most so many times longer."""
    return (clip / norms.clamp(min=1e-12)).clamp(max=most)
