"""Randomized response: each value is answered truthfully or by a lie (Warner 1965; Bernau 2021b, Eq. 1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.checks import positive, whole
from deniable.local.coins import Coins, Entropy, below, chance_of_lie, entropy
from deniable.local.randomizer import LocalCost, Randomizer
from deniable.mechanisms import Composed, RandomizedResponse

VALUES_AT_ONCE = 2**19
"""Values that are perturbed together: they stay in the cache."""

PerFeature = float | tuple[float, ...]


@dataclass(frozen=True)
class CategoricalResponse(Randomizer):
    """Answers each feature, one of the values 0 .. `categories` - 1, by k-ary randomized response.

    The truth is e^epsilon times as likely as each other value. `epsilon` and `categories` are one number for all
    features, or one for each (a tuple).

    Guarantee: pure epsilon-local DP a feature, the sum over all features a record (Bernau 2021b, Definition 5). The
    chance of a lie is rounded up to a multiple of 2^-72, so a feature's loss is never above epsilon.
    """

    epsilon: PerFeature
    categories: int | tuple[int, ...] = 2

    def __post_init__(self) -> None:
        for value in _each(self.epsilon):
            positive("epsilon", value)
        for count in _each(self.categories):
            whole("categories", count, low=2)

    @classmethod
    def from_retention(cls, retention: PerFeature, categories: int = 2) -> CategoricalResponse:
        """Keep each value with probability `retention`, else draw one of all uniformly.

        Bernau 2021b, Eq. 1, two coins.
        """
        epsilons = tuple(RandomizedResponse.from_retention(rho, categories).epsilon for rho in _each(retention))
        return cls(epsilons if isinstance(retention, tuple) else epsilons[0], categories)

    def perturb(self, records: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
        """See `Randomizer.perturb`; `records` is (records, features) of whole numbers."""
        features = self.features_of(records.shape[1:])
        _refuse_unless(records.dtype.kind in "biuf")
        categories = np.broadcast_to(self.categories, features)
        answered = _flip_bits if np.all(categories == 2) else _draw_answers
        answers, coins, source = np.empty_like(records), self._coins(features), entropy(seed)
        rows = max(1, VALUES_AT_ONCE // features)
        for wave in (slice(start, start + rows) for start in range(0, len(records), rows)):
            lies = coins.toss(len(records[wave]), features, source)
            answers[wave] = answered(records[wave], lies, categories, source)
        return answers

    def _coins(self, features: int) -> Coins:
        pairs = self._pairs(features)
        chances = {pair: chance_of_lie(*pair) for pair in set(pairs)}
        return Coins.of([chances[pair] for pair in (pairs if len(chances) > 1 else pairs[:1])])

    def _pairs(self, features: int) -> list[tuple[float, int]]:
        """(epsilon, categories) of every feature."""
        epsilons = np.broadcast_to(self.epsilon, features).tolist()
        return list(zip(epsilons, np.broadcast_to(self.categories, features).tolist(), strict=True))

    def features_of(self, record: tuple[int, ...]) -> int:
        """The number of features, refused where `epsilon` or `categories` has another one."""
        if len(record) != 1 or record[0] < 1:
            raise ValueError(f"records must be (records, features) with at least one feature, got records of {record}")
        for name, given in (("epsilon", self.epsilon), ("categories", self.categories)):
            if isinstance(given, tuple) and len(given) != record[0]:
                raise ValueError(
                    f"{name} must be one number or one for each of the {record[0]} features, got {len(given)}"
                )
        return record[0]

    def cost(self, record: tuple[int, ...]) -> LocalCost:
        """F x epsilon, or the sum of unlike ones, and the composed release."""
        pairs = self._pairs(self.features_of(record))
        runs = Counter(RandomizedResponse(epsilon, categories) for epsilon, categories in pairs)
        total = fsum(epsilon for epsilon, _ in pairs)
        return LocalCost(len(pairs), total, Composed(tuple(runs.items())))


@dataclass(frozen=True)
class BinaryResponse(CategoricalResponse):
    """Flips each bit with probability 1 / (1 + e^epsilon), the fastest randomized response.

    Guarantee: pure epsilon-local DP a bit, F x epsilon a record of F bits (Bernau 2021b, Section 2.2, Table 1).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categories != 2:
            raise ValueError(
                f"categories of a BinaryResponse must be 2, got {self.categories!r}: use CategoricalResponse"
            )


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _flip_bits(
    truth: NDArray[Any], lies: NDArray[np.bool_], categories: NDArray[Any], source: Entropy
) -> NDArray[np.bool_]:
    """Bits, flipped where `lies`."""
    bits: NDArray[np.bool_] = truth == 1
    _refuse_unless(bool(np.all(bits | (truth == 0))))
    return np.logical_xor(bits, lies, out=bits)


def _draw_answers(
    truth: NDArray[Any], lies: NDArray[np.bool_], categories: NDArray[Any], source: Entropy
) -> NDArray[Any]:
    """The truth, except where `lies`: there another value, all equally likely."""
    _refuse_unless(bool(np.all((truth >= 0) & (truth < categories) & (truth == np.floor(truth)))))
    answers, column = truth.copy(), np.nonzero(lies)[1]
    shift = np.empty(len(column), dtype=np.int64)
    for count in np.unique(categories):
        chosen = np.flatnonzero(categories[column] == count)
        shift[chosen] = 1 + below(int(count) - 1, len(chosen), source)
    answers[lies] = (truth[lies].astype(np.int64) + shift) % categories[column]
    return answers


def _refuse_unless(numbered: bool) -> None:
    if not numbered:
        raise ValueError("records must hold whole numbers from 0 to categories - 1 in every feature: number the values")
