"""Small games for the tests."""

from __future__ import annotations

import numpy as np

from deniable.training.settings import Neighbours


def neighbours(records: int = 12, shape: tuple[int, ...] = (64,), seed: int = 0, other: bool = True) -> Neighbours:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(records, *shape)), rng.integers(0, 10, records)
    return Neighbours.of(x, y, 3, (rng.normal(size=shape), 4) if other else None, test=(x, y))
