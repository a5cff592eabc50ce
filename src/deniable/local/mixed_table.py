"""Tables of unlike columns: one-hot categories and numbers, each perturbed in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from deniable.checks import positive
from deniable.local.randomizer import LocalCost, Randomizer
from deniable.local.response import CategoricalResponse
from deniable.mechanisms import compose


@dataclass(frozen=True)
class OneHotResponse(Randomizer):
    """Randomized response on one category that is written as one-hot columns; the answer is one-hot again.

    Guarantee: pure epsilon-local DP for the category, however many columns it takes.
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)

    def perturb(self, records: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
        """See `Randomizer.perturb`; each row has a single 1."""
        if not (np.isin(records, (0, 1)).all() and np.all(records.sum(axis=1) == 1)):
            raise ValueError("one-hot columns must hold a single 1 and else zeros in every record")
        categories = records.shape[1]
        response = CategoricalResponse(self.epsilon, categories)
        answers = response.perturb(records.argmax(axis=1)[:, None], seed)
        one_hot: NDArray[Any] = np.eye(categories, dtype=records.dtype)[answers[:, 0]]
        return one_hot

    def cost(self, record: tuple[int, ...]) -> LocalCost:
        """One category."""
        return CategoricalResponse(self.epsilon, record[0]).cost((1,))


@dataclass(frozen=True)
class TableRandomizer(Randomizer):
    """Perturbs ranges of columns (first, behind the last), each with a randomizer of its own.

    Guarantee: the sum of the parts' epsilons a record, and the exact loss of their composition. Every column must be
    in exactly one part, so that none is forgotten.
    """

    parts: tuple[tuple[tuple[int, int], Randomizer], ...]

    def __post_init__(self) -> None:
        ranges = sorted(columns for columns, _ in self.parts)
        stops = [0, *(stop for _, stop in ranges)]
        if not ranges or [start for start, _ in ranges] != stops[:-1] or any(start >= stop for start, stop in ranges):
            raise ValueError(
                f"parts must cover all columns from 0 on, each once and in ranges (first, end), got {ranges}"
            )

    def _check(self, record: tuple[int, ...]) -> None:
        columns = max(stop for (_, stop), _ in self.parts)
        if record != (columns,):
            raise ValueError(f"records must have {columns} columns, as the parts say, got records of {record}")

    def perturb(self, records: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
        """See `Randomizer.perturb`; each part draws from a stream of its own."""
        self._check(records.shape[1:])
        answers = np.empty_like(records)
        for number, ((start, stop), randomizer) in enumerate(self.parts):
            answers[:, start:stop] = randomizer.perturb(records[:, start:stop], _stream(seed, number))
        return answers

    def cost(self, record: tuple[int, ...]) -> LocalCost:
        """The parts' costs together."""
        self._check(record)
        costs = [randomizer.cost((stop - start,)) for (start, stop), randomizer in self.parts]
        mechanism = compose(*(cost.mechanism for cost in costs))
        return LocalCost(sum(cost.features for cost in costs), fsum(cost.epsilon for cost in costs), mechanism)


def _stream(seed: int | None, number: int) -> int | None:
    """A seed of its own for each part; none stays none."""
    return None if seed is None else int(SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0])
