"""Numbers of records in the weights: in their last digits, or added to them after a step.

Digits of a weight that a noisy gradient has moved are random. A stretch of weights as long as a record, whose digits or
unexplained moves are along one record's numbers, holds that record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log

import torch
from torch import Tensor

from deniable.examination.recorded.weights.weight_moves import WatchedWeights

WrittenRecords = tuple[tuple[int, ...], int]
"""The parameters that hold records, and after how many steps they were seen to."""
_BITS, _DECIMALS = 16, 5
"""The most of them that are looked at."""
_FINE, _ROUNDING = 1e-4, 5e-7
"""Steps of moves, at most; and of single precision."""
_LOOKS = 64
"""Steps after which records are looked for."""
_ALONG = 0.9
"""The share of digits that a record explains."""
_EXACT = 0.7
"""The power of the odds of numbers that a few others are as near as."""
_CHANCE = 1e-14
"""Of one comparison, among millions."""
_HELD_NUMBERS = 2**24
"""Of records that are compared at once."""


class RecordsInWeights:
    """Looks for the records of a step in the weights after it."""

    def __init__(self, weights: WatchedWeights) -> None:
        self._weights = weights
        self._rows: Tensor | None = None
        self._moved = set[int]()
        self._times, self._looks = 0, 0

    def keep(self, rows: Tensor | None) -> None:
        """(records, numbers) of the step that is taken now; None where they are no numbers."""
        self._rows = rows

    def look(self, off: Tensor | None) -> None:
        """For the records of the step before, which leaves `off` of the weights' move unexplained."""
        self._looks += self._rows is not None
        if self._looks <= _LOOKS:
            self.look_for(self._rows, off)
        self._rows = None

    def look_for(self, rows: Tensor | None, off: Tensor | None) -> None:
        """For these records in the present weights."""
        if rows is None or not len(rows) or rows.numel() > _HELD_NUMBERS:
            return
        moved = [None] * len(self._weights.places) if off is None else self._weights.parts(off)
        found = {
            at
            for at, (values, move) in enumerate(zip(self._weights.now(), moved, strict=True))
            if _holds(self._weights.places[at], values, move, rows)
        }
        self._moved |= found
        self._times += bool(found)

    def found(self) -> WrittenRecords | None:
        """None where no weights hold records."""
        return (tuple(sorted(self._moved)), self._times) if self._moved else None


def _holds(places: Tensor, values: Tensor, move: Tensor | None, rows: Tensor) -> bool:
    """Whether a stretch of a parameter, known at these places, has a record's numbers, one after the other."""
    known = [*_digits(values), *([] if move is None else [(move, _FINE)])]
    finest = max(1, len(values) * (len(values) - 1))
    digits = _Digits(
        torch.stack([row for row, _ in known]),
        torch.tensor([max(step, 1 / finest) for _, step in known]).double(),
    )
    at_once = max(1, _HELD_NUMBERS // (len(known) * max(rows.shape)))
    return any(
        _are_along(digits, here, rows[:, places[here[0]] % rows.shape[1]])
        for here in _stretches(places, rows.shape[1], at_once)
    )


def _stretches(places: Tensor, length: int, at_once: int) -> Iterator[Tensor]:
    """Positions (stretches, numbers) in `places` that are in one stretch: whole ones together, and each of the rest.

    Two numbers show nothing: any two are along any other two.
    """
    _, sizes = torch.unique_consecutive(places // length, return_counts=True)
    whole = (sizes == length).repeat_interleave(sizes)
    if whole.any():
        yield from torch.split(whole.nonzero().view(-1, length), at_once)
    for start, size in zip((sizes.cumsum(0) - sizes).tolist(), sizes.tolist(), strict=True):
        if 2 < size < length:
            yield torch.arange(start, start + size)[None]


@dataclass
class _Digits:
    """The digits (kinds, numbers) of a parameter, and their steps."""

    rows: Tensor
    steps: Tensor

    @cached_property
    def log_odds(self) -> Tensor:
        """Of each; they are asked for where some digits are along a record."""
        pairs = zip(self.rows, self.steps.tolist(), strict=True)
        return torch.stack([_log_odds(row, step) for row, step in pairs])


def _digits(values: Tensor) -> Iterator[tuple[Tensor, float]]:
    """The last 1, 2, ... bits of single precision, and what is left after the first decimals; each with its steps."""
    if values.dtype == torch.float32:
        whole = values.contiguous().view(torch.int32)
        yield from (((whole & (2**bits - 1)).double(), 2.0**-bits) for bits in range(1, _BITS + 1))
    for decimals in range(1, _DECIMALS + 1):
        scaled = values.double() * 10**decimals
        step = _ROUNDING * max(float(scaled.abs().max()), 1.0)
        yield ((scaled - scaled.floor()) / step).round(), step


def _log_odds(digits: Tensor, step: float) -> Tensor:
    """Of each number, by how many are the same: those of weights that are rounded, or zero, often are."""
    _, which, counts = torch.unique(digits, return_inverse=True, return_counts=True)
    same = counts[which].double()
    return torch.where(same > 1, same / len(digits), step).log()


def _are_along(known: _Digits, here: Tensor, rows: Tensor) -> bool:
    """Whether chance would not bring the digits of some stretch `here` so near to one of the rows.

    n numbers leave a share x of a row's direction with probability x^((n - 2) / 2); those that are zero do not count.
    It is no less likely than the odds of just these numbers in a row.
    """
    digits, rows = known.rows[:, here], rows - rows.mean(1, keepdim=True)
    digits = digits - digits.mean(2, keepdim=True)
    lengths = digits.norm(dim=2)[:, :, None] * rows.norm(dim=1)
    left = 1 - ((digits @ rows.T) / lengths.clamp(min=1e-150)).square()
    squares = rows.square()
    numbers = squares.sum(1).square() / squares.square().sum(1).clamp(min=1e-300)
    log_chance = torch.maximum(left, known.steps.square()[:, None, None]).log() * (numbers - 2) / 2
    near = (left < 1 - _ALONG) & (log_chance < log(_CHANCE))
    if not near.any():
        return False
    likely = _EXACT * known.log_odds[:, here].sum(2, keepdim=True) >= log(_CHANCE)
    return bool((near & ~likely).any())
