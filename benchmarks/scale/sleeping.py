"""Blocks that sleep, so that the cost of playing them can be told from their own; and blocks that train."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deniable.engines import Campaign


@dataclass(frozen=True)
class Slept:
    """A block's result: some kilobytes that depend on the number alone."""

    values: NDArray[np.float64]


def sleep_block(seconds: float, numbers: int, number: int) -> Slept:
    if seconds:
        time.sleep(seconds)
    return Slept(np.random.default_rng(number).random(numbers))


def sleeping(blocks: int, seconds: float, numbers: int = 100) -> Campaign[Slept]:
    """`blocks` blocks of so many seconds, each with a result of so many numbers."""
    settings = {"blocks": blocks, "seconds": seconds, "numbers": numbers}
    return Campaign(settings, blocks, Slept, partial(sleep_block, seconds, numbers))


def same(found: list[Slept], campaign: Campaign[Slept]) -> bool:
    """Whether the results are those of all blocks, each once, byte by byte."""
    numbers = campaign.settings["numbers"]
    alone = (sleep_block(0.0, numbers, number) for number in range(campaign.blocks))
    return len(found) == campaign.blocks and all(
        one.values.tobytes() == other.values.tobytes() for one, other in zip(found, alone, strict=True)
    )
