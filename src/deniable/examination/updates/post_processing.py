"""What a training does to its noisy sum before it yields it, where that can be undone.

A part that is left out (layers that are not trained, the mean of every row, numbers under a mask) is completed by what
a training as claimed would have there: the clean sum and fresh noise of the auditor. Layers that are scaled are scaled
back. If the result is as claimed, what was yielded is a function of it, so that it is as private (post-processing).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from deniable.examination.recomputation import RecomputedSteps, flat
from deniable.examination.trainer import WatchedTraining

Pair = tuple[WatchedTraining, RecomputedSteps, WatchedTraining, RecomputedSteps]
"""Twins, each with its clean sums."""
SAME = 1e-6
"""Numbers whose sizes differ by this share are the same."""
FEWEST_CUT = 3
"""So many numbers of one size, the largest, are no chance."""
OWN_NUMBERS = 0.5
"""The share of numbers that hardly any other equals where they are not rounded."""
FEWEST_MASKED = 6
"""Zeros of a layer from which on chance does not put them in the same places."""
MEAN_OF_TWO = 0.51
"""A smaller multiple of a sum may be a mean."""
NOTHING, THERE = 1e-5, 1e-3
"""The share of a vector below which a part of it is left out, and above which it is there."""
PARTS = ("layer", "rows", "columns", "mean")
"""What may be left out: the whole layer, the mean of each row, of each column, of all numbers."""
_WORDS = {
    "layer": "is zero",
    "rows": "has rows of mean zero",
    "columns": "has columns of mean zero",
    "mean": "has mean zero",
}


ACCUMULATED = (
    "the previous step's gradient is still in it, noise included (gradients accumulate, or momentum is added before "
    "the gradient is yielded), which is safe as long as every step has fresh noise: yield the gradient without the "
    "earlier ones"
)
YIELDED_MEAN = (
    "what is yielded is the mean over the batch, noise included: yield its divisor, too (AppliedStep(..., divisor=...))"
)
_YIELDED_MULTIPLE = (
    "what is yielded is {:.3g} x the noisy sum (another divisor, or gradients that are all clipped at so many times "
    "the claimed norm), which is safe: yield its divisor (AppliedStep(..., divisor=...)), or claim that norm"
)
WEIGHTS_ADDED = (
    "a multiple of the weights is in it (weight decay, or a penalty on the weights), which is safe: yield the "
    "gradient before that is added"
)
SUMS = ("clean", "whole")
"""Fields of `RecomputedSteps` to which the noise may have been added: clipped gradients, or whole ones."""


@dataclass(frozen=True)
class NoisySum:
    """One of `SUMS`, and a multiple of the claimed noise."""

    name: str
    multiple: float
    scale: float | None = None
    """If what is yielded is so many times the noisy sum, and `memory` times what was yielded before."""
    memory: float = 0.0
    decay: float = 0.0
    """And so many times the weights."""

    @property
    def is_unchanged(self) -> bool:
        """Whether it is yielded as it is, whichever sum it is."""
        unscaled = self.scale is not None and abs(self.scale - 1) <= THERE
        return unscaled and abs(self.memory) <= THERE and not self.decay

    def sentence(self) -> str:
        """What is made of it, in words."""
        if abs(self.memory) > THERE:
            return ACCUMULATED
        if self.scale is not None and THERE < self.scale < 1 - THERE:
            return YIELDED_MEAN if self.scale < MEAN_OF_TWO else _YIELDED_MULTIPLE.format(self.scale)
        if self.decay:
            return WEIGHTS_ADDED
        return (
            "the noisy sum is changed after its noise, by a function of the noisy sums and of nothing else, which is "
            "safe (post-processing): yield it before that"
        )


@dataclass(frozen=True)
class PostProcessing:
    """Of each layer: the part that is left out ("" for none), and the factor of the rest."""

    left_out: tuple[str, ...]
    scales: tuple[float, ...]
    masked: bool = False
    """Whether numbers are zero in places that do not depend on the records."""
    bound: float | None = None
    """The size of the noisy sum's numbers above which they are cut off."""
    noisy_sum: NoisySum | None = None
    """Of what everything is a function, whatever function it is."""

    @property
    def does_nothing(self) -> bool:
        """Whether what is yielded is the claimed sum with noise, as far as the noise lets it be seen."""
        return self.changes_nothing and self.noisy_sum is not None and self.noisy_sum.name == SUMS[0]

    @property
    def changes_nothing(self) -> bool:
        """Whether a sum, the claimed one or another, is yielded with its noise as it is."""
        done = any(self.left_out) or self.masked or self.bound is not None
        return not done and self.noisy_sum is not None and self.noisy_sum.is_unchanged

    @classmethod
    def of_layers(cls, number: int, *, masked: bool = False, bound: float | None = None) -> PostProcessing:
        """Of so many layers, none of which is scaled."""
        return cls(("",) * number, (1.0,) * number, masked, bound)

    def sentence(self, layers: tuple[str, ...]) -> str:
        """What was done, in words."""
        if self.masked:
            return (
                "numbers of the noisy gradient are set to zero, the same ones whatever the records, which is safe "
                "(post-processing): yield it before that"
            )
        if self.bound is not None:
            return (
                f"numbers of the noisy sum are cut off at {self.bound:.3g}, which is safe (post-processing): yield it "
                "before that"
            )
        done = self._described_layers(layers)
        if not done and self.noisy_sum is not None:
            return self.noisy_sum.sentence()
        about = f"the noisy gradient is changed after its noise ({', '.join(done[:6])})"
        return f"{about}, which is safe (post-processing): yield it before that"

    def _described_layers(self, layers: tuple[str, ...]) -> list[str]:
        return [
            f"{layer} {_WORDS[part] if part else f'is scaled by {scale:.3g}'}"
            for layer, part, scale in zip(layers, self.left_out, self.scales, strict=True)
            if part or abs(scale - 1) > THERE
        ]


def find_post_processing(pairs: list[Pair], others: list[Pair]) -> PostProcessing | None:
    """What was done to the sums of some pairs of twins; `others` have no record in common; None: nothing known."""
    if not pairs:
        return None
    if others and all(_is_masked(one, mine, two) for one, mine, two, _ in others):
        return PostProcessing.of_layers(len(pairs[0][0].sums), masked=True)
    if (bound := _cut_off(pairs)) is not None:
        return PostProcessing.of_layers(len(pairs[0][0].sums), bound=bound)
    first, found = pairs[0][:2]
    clean = torch.split(found.clean, [s[0].numel() for s in first.sums], 1)
    layers = [(s.double(), c.view_as(s).double()) for s, c in zip(first.sums, clean, strict=True)]
    certain = {part for part in PARTS for s, c in layers if _is_out(s, part) and not _is_out(c, part, THERE)}
    certain |= {"mean"} if certain & {"rows", "columns"} else set()
    left_out = tuple(_left_out(s, c, certain) for s, c in layers)
    if any(left_out):
        return PostProcessing(left_out, (1.0,) * len(left_out))
    scales = _scales(pairs)
    return None if scales is None else PostProcessing(left_out, scales)


def _is_masked(one: WatchedTraining, mine: RecomputedSteps, two: WatchedTraining) -> bool:
    """Whether some numbers, but no layer alone, are zero in the same places whatever the records."""
    steps = min(len(one), len(two))
    zeros = [s[:steps].flatten(1) == 0 for s in one.sums]
    clean = torch.split(mine.clean[:steps], [z.shape[1] for z in zeros], 1)
    told = [int((z & (c != 0)).sum()) for z, c in zip(zeros, clean, strict=True) if not bool(z.all())]
    return max(told, default=0) >= FEWEST_MASKED and all(
        torch.equal(z, t[:steps].flatten(1) == 0) for z, t in zip(zeros, two.sums, strict=True)
    )


def _cut_off(pairs: list[Pair]) -> float | None:
    """The largest size of a number, if several have it whose clean sums differ; None where numbers are not cut off.

    Cut-off noise has one size in these places, and so the sum has several.
    """
    both = [row for one, mine, two, other in pairs for row in ((one, mine), (two, other))]
    sums = torch.cat([flat(seen.sums).double().flatten() for seen, _ in both])
    clean = torch.cat([found.clean.double().flatten() for _, found in both])
    largest = float(sums.abs().max())
    there = sums.abs() >= (1 - SAME) * largest
    below = sums[~there & (sums != 0)]
    if len(torch.unique(below)) <= OWN_NUMBERS * len(below):
        return None  # a sign, or rounded
    apart = torch.unique((clean * sums.sign())[there])
    return largest if len(apart) >= FEWEST_CUT and float(apart.max() - apart.min()) > THERE * largest else None


def _left_out(shown: Tensor, clean: Tensor, certain: set[str]) -> str:
    """The largest part that is left out; a whole layer only if its gradient is not zero by itself."""
    fitting = [part for part in PARTS if part in certain and _is_out(shown, part)]
    return next((part for part in fitting if part != "layer" or not _is_out(clean, part, THERE)), "")


def _is_out(values: Tensor, part: str, most: float = NOTHING) -> bool:
    """Whether a part of a layer (steps, ...) is zero; biases have no rows and columns."""
    if part == "layer":
        return not bool(values.any())
    return (part == "mean" or values.dim() > 2) and bool(_component(values, part).norm() <= most * values.norm())


def _component(values: Tensor, part: str) -> Tensor:
    """(steps, ...) the part of a layer's values that may be left out."""
    if part == "layer":
        return values
    if part == "mean":
        every = tuple(range(1, values.dim()))
        return values.mean(every, keepdim=True).expand_as(values)
    axes = tuple(range(2, values.dim())) if part == "rows" else (1,)
    return values.mean(axes, keepdim=True).expand_as(values)


def _scales(pairs: list[Pair]) -> tuple[float, ...] | None:
    """The factor of each layer, if twins differ in each by one multiple of the claimed difference, not alike in all."""
    sizes = [s[0].numel() for s in pairs[0][0].sums]
    rows: list[list[Tensor]] = [[], []]
    for one, mine, two, other in pairs:
        steps = min(len(one), len(two))
        rows[0].append((flat(one.sums)[:steps] - flat(two.sums)[:steps]).double())
        rows[1].append((mine.clean[:steps] - other.clean[:steps]).double())
    shown, claimed = (torch.split(torch.cat(each), sizes, 1) for each in rows)
    scales = [float((s * c).sum() / c.square().sum().clamp(min=1e-300)) for s, c in zip(shown, claimed, strict=True)]
    apart = max(scales) - min(scales) > THERE * max(scales)
    fitting = all(bool((s - f * c).norm() <= THERE * s.norm()) for s, c, f in zip(shown, claimed, scales, strict=True))
    return tuple(scales) if apart and fitting and min(scales) > THERE else None


def undo(
    post: PostProcessing,
    seen: WatchedTraining,
    found: RecomputedSteps,
    own: torch.Generator,
    drawn: Tensor | None = None,
) -> WatchedTraining:
    """The training as it would be without: `own` draws the noise of what was left out, `drawn` is the training's own.

    Where everything is a function of the noisy sums, `drawn` is (steps, weights) in standard deviations.
    """
    sizes = [s[0].numel() for s in seen.sums]
    if post.noisy_sum is not None:
        if drawn is None:
            return seen
        noise = post.noisy_sum.multiple * drawn * found.sigma.unsqueeze(1).float()
        noisy = getattr(found, post.noisy_sum.name) + noise
        parts = torch.split(noisy.float(), sizes, 1)
        return replace(seen, sums=[w.view_as(s) for w, s in zip(parts, seen.sums, strict=True)], shown=seen.sums)
    fresh = torch.stack([torch.randn(found.clean.shape[1], generator=own) for _ in range(len(seen))])
    noise = fresh * found.sigma.unsqueeze(1)
    whole = torch.split((found.clean + noise).float(), sizes, 1)
    if post.bound is not None:
        uniform = torch.special.ndtr(fresh.double())
        beyond = torch.split(_beyond(post.bound, flat(seen.sums), found, uniform), sizes, 1)
        cut = [
            torch.where(s.abs() >= (1 - SAME) * post.bound, w.view_as(s), s)
            for s, w in zip(seen.sums, beyond, strict=True)
        ]
        return replace(seen, sums=cut, shown=seen.sums)
    if post.masked:
        filled = [torch.where(s == 0, w.view_as(s), s) for s, w in zip(seen.sums, whole, strict=True)]
        return replace(seen, sums=filled, shown=seen.sums)
    sums = [
        s / scale + (_component(w.view_as(s), part) if part else 0.0)
        for s, w, part, scale in zip(seen.sums, whole, post.left_out, post.scales, strict=True)
    ]
    return replace(seen, sums=sums, shown=seen.sums)


def _beyond(bound: float, sums: Tensor, found: RecomputedSteps, uniform: Tensor) -> Tensor:
    """(steps, weights) clean sum and claimed noise, drawn where together they are beyond the bound."""
    sign, sigma = sums.sign().double(), found.sigma.unsqueeze(1).double().clamp(min=1e-300)
    tail = torch.special.ndtr((sign * found.clean.double() - bound) / sigma).clamp(min=1e-300)
    noise: Tensor = -torch.special.ndtri((uniform * tail).clamp(min=1e-300))
    return (found.clean.double() + sign * noise * sigma).float()
