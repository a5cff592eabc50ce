"""Work for engines that costs nothing, and trainings that cost little."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.engines import Campaign


@dataclass(frozen=True)
class Squared:
    """A block's result."""

    square: NDArray[np.int64]


def square(number: int) -> Squared:
    return Squared(np.array([number, number**2]))


def slow_square(seconds: float, number: int) -> Squared:
    time.sleep(seconds)
    return square(number)


def refuse_three(number: int) -> Squared:
    if number == 3:
        raise FloatingPointError("block 3 diverged: lower learning_rate")
    return square(number)


def squares(blocks: int, work=square) -> Campaign[Squared]:
    return Campaign({"what": "squares", "blocks": blocks}, blocks, Squared, work)
