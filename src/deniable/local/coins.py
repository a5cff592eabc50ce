"""Biased coins without floating point: random integers against integer thresholds.

A coin with chance q is heads where a uniform integer of 72 bits is below ``ceil(2^72 q)``. Its first byte decides all
but one of 256 coins; only for the others are the 64 further bits drawn. So a coin costs one byte, and its chance is q
rounded *up* to a multiple of 2^-72, never q rounded to a float or to a byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from deniable.checks import whole

BITS = 72
"""The chance of a coin is a multiple of 2^-BITS."""

decimals = Context(prec=60)
"""Arithmetic in which chances are computed before they are rounded up."""


Entropy = Callable[[int], bytes]
"""A source of so many independent, uniform random bytes."""


def entropy(seed: int | None) -> Entropy:
    """The operating system's random bytes, or repeatable ones of a seed (for audits only)."""
    if seed is None:
        return os.urandom
    return Generator(SFC64(SeedSequence(whole("seed", seed, low=0)))).bytes


def chance_of_lie(epsilon: float, categories: int) -> Decimal:
    """The chance that randomized response answers anything but the truth: (k - 1) / (e^epsilon + k - 1).

    An epsilon above 1000 counts as 1000, which is the safe side and no larger than the grid of chances.
    """
    others = Decimal(categories - 1)
    return decimals.divide(others, decimals.add(decimals.exp(Decimal(min(epsilon, 1000.0))), others))


@dataclass(frozen=True)
class Coins:
    """One coin, or one a column: heads with the given chances, each rounded up to a multiple of 2^-72."""

    first: NDArray[np.uint8]
    rest: NDArray[np.uint64]

    @classmethod
    def of(cls, chances: Sequence[Decimal]) -> Coins:
        """Coins with these chances, below 1; one within 2^-72 of 1 is rounded down, for no coin is certain."""
        grid = Decimal(2**BITS)
        rounded = [int(decimals.multiply(q, grid).to_integral_value(ROUND_CEILING)) for q in chances]
        thresholds = [min(threshold, 2**BITS - 1) for threshold in rounded]
        return cls(
            np.array([t >> 64 for t in thresholds], dtype=np.uint8),
            np.array([t & (2**64 - 1) for t in thresholds], dtype=np.uint64),
        )

    def toss(self, rows: int, columns: int, source: Entropy) -> NDArray[np.bool_]:
        """Independent tosses (rows, columns), True for heads; column j takes coin j, or the only one."""
        drawn = np.frombuffer(source(rows * columns), dtype=np.uint8).reshape(rows, columns)
        heads: NDArray[np.bool_] = drawn < self.first
        undecided = np.flatnonzero(drawn == self.first)
        words = np.frombuffer(source(8 * len(undecided)), dtype=np.uint64)
        rest = self.rest[undecided % columns] if len(self.rest) > 1 else self.rest
        heads.reshape(-1)[undecided] = words < rest
        return heads


def below(limit: int, count: int, source: Entropy) -> NDArray[np.int64]:
    """`count` whole numbers from 0 to `limit` - 1, exactly equally likely: words of the incomplete top are redrawn."""
    complete = np.uint64(2**64 // limit * limit - 1)
    words = np.frombuffer(source(8 * count), dtype=np.uint64).copy()
    while len(rejected := np.flatnonzero(words > complete)):
        words[rejected] = np.frombuffer(source(8 * len(rejected)), dtype=np.uint64)
    return (words % np.uint64(limit)).astype(np.int64)
