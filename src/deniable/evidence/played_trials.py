"""What the trials of a campaign gave, from their blocks; NumPy alone, so that a record is read without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Trials:
    """What all trials gave; rows are trials, columns are steps (see `BlockResult`)."""

    trained_on_d: NDArray[np.bool_]
    log_likelihood_ratio: NDArray[np.float64]
    local_sensitivity: NDArray[np.float64]
    sigma: NDArray[np.float64]

    @classmethod
    def join_blocks(cls, blocks: Iterable[Mapping[str, NDArray[Any]]], count: int) -> Self:
        """The first `count` trials of blocks in order; what the last one has too many is left out."""
        ordered = list(blocks)
        columns = {field.name: [block[field.name] for block in ordered] for field in fields(cls)}
        return cls(**{name: np.concatenate(parts)[:count] for name, parts in columns.items()})

    def __len__(self) -> int:
        return len(self.trained_on_d)
