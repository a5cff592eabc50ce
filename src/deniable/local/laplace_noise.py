"""Laplace noise in whole steps of a grid, and numbers perturbed with it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.checks import positive, real
from deniable.local.coins import Coins, Entropy, chance_of_lie, decimals, entropy
from deniable.local.randomizer import LocalCost, Randomizer
from deniable.mechanisms import Laplace, Mechanism, compose

GRID_STEPS = 2**16
"""Steps of the grid on which a bounded number and its noise lie."""
VALUES_AT_ONCE = 2**16
HALF = Coins.of([Decimal("0.5")])


def rounded_laplace(scale: Fraction, limit: int, count: int, source: Entropy) -> NDArray[np.int64]:
    """`count` draws of Laplace noise of this scale, rounded to whole numbers and cut off at +-`limit`.

    That is what rounding a continuous Laplace variable gives, without computing one: 0 with probability
    1 - e^(-1 / (2 scale)); else a fair sign, and a magnitude of 1 + G with G geometric. The binary digits of G are
    independent coins: digit i is 1 with probability 1 / (1 + e^(2^i / scale)), and G reaches 2^K with probability
    e^(-2^K / scale). Since noise rounded to a grid is a function of continuous noise, its privacy loss is
    dominated by the continuous Laplace mechanism's; no value is computed in floating point, so none carries the
    traces that Mironov (2012) reads. Each of the at most 70 coins is exact to 2^-72, hence the draw to 2^-65 in total
    variation.
    """
    digits = max(1, limit.bit_length())
    moved = Coins.of([_exponential(Fraction(1) / (2 * scale))])
    beyond = Coins.of([_exponential(Fraction(2**digits) / scale)])
    ones = [Coins.of([chance_of_lie(float(2**i / scale), 2)]) for i in range(digits)]
    noise = np.empty(count, dtype=np.int64)
    for start in range(0, count, VALUES_AT_ONCE):
        part = noise[start : start + VALUES_AT_ONCE]
        part[:] = 1
        for i, coin in enumerate(ones):
            part += coin.toss(len(part), 1, source)[:, 0].astype(np.int64) << i
        part[beyond.toss(len(part), 1, source)[:, 0]] = limit
        np.minimum(part, limit, out=part)
        part *= moved.toss(len(part), 1, source)[:, 0]
        np.negative(part, out=part, where=HALF.toss(len(part), 1, source)[:, 0])
    return noise


def _exponential(exponent: Fraction) -> Decimal:
    """e^-exponent."""
    return decimals.exp(-decimals.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))


@dataclass(frozen=True)
class BoundedLaplace(Randomizer):
    """Adds Laplace noise of scale (high - low) / epsilon to each number and clips it back to [low, high].

    `low` and `high` must be known without looking at the data; numbers outside are clipped first. All three are one
    number for all features, or one for each (a tuple).

    Guarantee: pure epsilon-local DP a number, the sum over all features a record (Bernau 2021b, Definition 6); to 2^-65
    in total variation a number, see `rounded_laplace`. Numbers and noise lie on a grid of 65,536 steps from low to
    high.
    """

    epsilon: float | tuple[float, ...]
    low: float | tuple[float, ...] = 0.0
    high: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        for epsilon in np.ravel(np.asarray(self.epsilon, dtype=object)):
            positive("epsilon", epsilon)
        for name in ("low", "high"):
            for bound in np.ravel(np.asarray(getattr(self, name), dtype=object)):
                real(name, bound)
        if not np.all(np.asarray(self.low) < np.asarray(self.high)):
            raise ValueError(f"low must be below high, got {self.low!r} and {self.high!r}")

    def perturb(self, records: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
        """See `Randomizer.perturb`; `records` is (records, features) of finite floating-point numbers."""
        if records.dtype.kind != "f" or not np.isfinite(records).all():
            raise ValueError(
                f"records must be finite floating-point numbers, got {records.dtype}: convert or fill them"
            )
        epsilon, low, high = self._columns(records.shape[1:])
        steps = np.rint((np.clip(records, low, high) - low) / (high - low) * GRID_STEPS).astype(np.int64)
        source = entropy(seed)
        for value in np.unique(epsilon):
            columns = np.flatnonzero(epsilon == value)
            scale = Fraction(GRID_STEPS) / Fraction(float(value))
            noise = rounded_laplace(scale, GRID_STEPS, len(steps) * len(columns), source)
            steps[:, columns] += noise.reshape(len(steps), len(columns))
        answers = low + np.clip(steps, 0, GRID_STEPS) * ((high - low) / GRID_STEPS)
        noisy: NDArray[Any] = np.clip(answers, low, high).astype(records.dtype)
        return noisy

    def _columns(self, record: tuple[int, ...]) -> tuple[NDArray[np.float64], ...]:
        """epsilon, low and high of every feature."""
        if len(record) != 1 or record[0] < 1:
            raise ValueError(f"records must be (records, features) with at least one feature, got records of {record}")
        try:
            given = (self.epsilon, self.low, self.high)
            return tuple(np.broadcast_to(np.asarray(value, dtype=np.float64), record) for value in given)
        except ValueError as error:
            raise ValueError(
                f"epsilon, low and high must be one number or one for each of {record[0]} features"
            ) from error

    def cost(self, record: tuple[int, ...]) -> LocalCost:
        """F x epsilon, or the sum of unlike ones, and the composed release."""
        epsilon = self._columns(record)[0]
        values, runs = np.unique(epsilon, return_counts=True)
        parts: list[Mechanism] = [Laplace(1 / float(v)).composed(int(n)) for v, n in zip(values, runs, strict=True)]
        return LocalCost(record[0], fsum(epsilon), compose(*parts))
