"""Counts of single numbers of an applied gradient that noise never makes by chance: none added, cut off, left out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch
from torch import Tensor

_ROUNDING = 1e-5
"""Relative to the largest number: below this two numbers are the same. Normal numbers agree so well once in 10^5."""

_FLOAT = 2e-7
"""The rounding of one float32 number."""
_COMPARED = 1000
"""So many are compared with each other: of more, some agree by chance."""
_DENSE = 0.05
"""Root mean squares that as many numbers as are compared may cover: of normal ones 2 % agree then by chance."""
_TURN = 16
"""So many of a parameter at once."""


class NumberCounts(msgspec.Struct, frozen=True, array_like=True):
    """Of one step's numbers that are looked at, where the clipped sum is not zero."""

    numbers: int
    bare: int
    """Applied as they are in the clipped sum, without noise."""
    residual_edge: int
    """As large as the largest residual, to rounding: more than one where the noise is cut off."""
    repeated: int
    """Of the first residuals of every parameter that are not bare, those that come again, to rounding."""
    applied_edge: int
    """As large as the largest applied number: more than one where the noisy sum is cut off."""
    zeros: int
    """Left out of what is applied."""
    kept_by_clean: bool
    """Whether those left out are the smallest of the clipped sum, of all numbers or of each parameter."""
    centred: bool = False
    """Whether every row of the applied matrices sums to zero."""
    agreeing: int = 0
    """Residuals that have the sign of the clipped sum; about half of them where noise is drawn by itself."""
    untouched: int = 0
    """Where the clipped sum is zero, in parameters in which it is not: numbers that are applied as zero."""


def count_numbers(applied: Sequence[Tensor], clean: Sequence[Tensor], centred: bool = False) -> NumberCounts:
    """Of an applied sum and the clipped one, parameter by parameter, flat; `centred` is told by `are_centred`."""
    pairs = [(a.double(), c.double()) for a, c in zip(applied, clean, strict=True)]
    untouched = sum(int(((a == 0) & (c == 0)).sum()) for a, c in pairs if bool((c != 0).any()))
    pairs = [(a[c != 0], c[c != 0]) for a, c in pairs]
    a, c = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    largest = float(torch.maximum(a.abs(), c.abs()).max()) if len(a) else 0.0
    near = _ROUNDING * largest
    return NumberCounts(
        numbers=len(a),
        bare=int(((a - c).abs() <= near).sum()),
        residual_edge=_edge((a - c).abs(), near),
        repeated=_count_repeats(_first_numbers([x - y for x, y in pairs]), _near_of_noise(a - c, largest)),
        applied_edge=_edge(a.abs(), near),
        zeros=int((a == 0).sum()),
        kept_by_clean=_is_sorted(a, c) or (any(bool((x == 0).any()) for x, _ in pairs) and _each_sorted(pairs)),
        centred=centred,
        agreeing=int(((a - c) * c > 0).sum()),
        untouched=untouched,
    )


def are_centred(gradients: Sequence[Tensor]) -> bool:
    """Whether the rows of all matrices sum to zero, to rounding (gradient centralization); False without matrices."""
    tables = [g.detach().flatten(1) for g in gradients if g.dim() > 1 and g[0].numel() > 2]
    return bool(tables) and all(bool((t.sum(1).abs() <= 1e-4 * t.abs().sum(1)).all()) for t in tables)


def _near_of_noise(residual: Tensor, largest: float) -> float:
    """Relative to the largest residual, but never below the rounding of the applied numbers."""
    return max(_ROUNDING * float(residual.abs().max()), _FLOAT * largest) if len(residual) else 0.0


def _first_numbers(parts: Sequence[Tensor]) -> Tensor:
    """`_COMPARED` of them, by turns from each part: noise of one seed is alike where parameters begin."""
    heads = [part[:_COMPARED] for part in parts]
    turns = torch.cat([torch.arange(len(head)) // _TURN for head in heads])
    return torch.cat(heads).cpu()[turns.argsort(stable=True)[:_COMPARED]]


def _edge(sizes: Tensor, near: float) -> int:
    return int((sizes >= sizes.max() - near).sum()) if len(sizes) else 0


def _count_repeats(values: Tensor, near: float) -> int:
    """0 where so many numbers agree by chance, since little of the noise is left above the rounding of gradients."""
    if len(values) * near > _DENSE * float(values.square().mean().sqrt()):
        return 0
    return int((values[values.abs() > near].sort().values.diff() <= near).sum())


def _each_sorted(pairs: Sequence[tuple[Tensor, Tensor]]) -> bool:
    return all(_is_sorted(a, c) for a, c in pairs if bool((a == 0).any()) and bool((a != 0).any()))


def _is_sorted(applied: Tensor, clean: Tensor) -> bool:
    """Whether zeros are exactly where the clean sum is smallest; False without zeros, or with nothing else."""
    left_out = applied == 0
    if not bool(left_out.any()) or bool(left_out.all()):
        return False
    return bool(clean[left_out].abs().max() <= clean[~left_out].abs().min())
