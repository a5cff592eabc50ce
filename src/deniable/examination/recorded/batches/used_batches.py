"""Which records each step of a watched run used: from its loader, or told by its loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from deniable.examination.adapters import DrawnBatches, drawn_batches, next_batch
from deniable.examination.recorded.stepped_optimizer import SteppedOptimizer

_TELL = "call run.use(indices) with its records before each step"
_DRAW = "loader must be the one that the loop draws from, and watch_run must be called before the loop starts"


class UsedBatches:
    """The data set of a run, and the batches that were drawn from it and not yet used by a step."""

    def __init__(self, loader: Any) -> None:
        ahead = hasattr(loader, "base_dataloader")  # Accelerate's, which is one batch ahead
        loader = loader.base_dataloader if ahead else loader
        loads = hasattr(loader, "batch_sampler")
        self.data = loader.dataset if loads else loader
        self._wrapped = isinstance(self.data, IndexedRecords)
        self.data = self.data.records if isinstance(self.data, IndexedRecords) else self.data
        if not hasattr(self.data, "__len__") or not hasattr(self.data, "__getitem__"):
            raise ValueError(
                "loader must be a DataLoader or a data set whose records have numbers (with len and [i]): a stream's "
                "records cannot be read again"
            )
        self.collate: Callable[[list[Any]], Any] = loader.collate_fn if loads and not self._wrapped else default_collate
        self._drawn = drawn_batches(loader) if loads and not self._wrapped else DrawnBatches()
        self._drawn.ahead = self._drawn.ahead or ahead
        self._told = not loads or self._wrapped
        self.per_step: int | None = None

    def tell(self, indices: Sequence[int] | Tensor) -> None:
        """The records of a batch; all that are told since the last step are used by the next."""
        if not self._told:
            raise ValueError("use(indices): the batches of this run come from its loader; watch the data set instead")
        told = indices.tolist() if isinstance(indices, Tensor | np.ndarray) else list(indices)
        if any(isinstance(i, bool | float) for i in told):
            raise ValueError("use(indices): must be numbers of records; of a mask, torch.nonzero(mask).flatten()")
        numbers = [int(i) for i in told]
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(self.data):
            raise ValueError(f"use(indices): must be numbers of records from 0 to {len(self.data) - 1:,}")
        self._drawn.append(numbers)

    def of_step(self, optimizer: SteppedOptimizer) -> list[list[int]]:
        """The batches of the step that is about to be taken; as one batch where it is known that it uses them all."""
        if self.per_step is not None and not self._told and optimizer.private is None:
            return [[record for batch in self._first(self.per_step) for record in batch]]
        if self._drawn.ahead and optimizer.private is not None:
            return [next_batch(self._drawn, optimizer.private)]
        batches = self._first(1 if self._drawn.ahead else max(1, len(self._drawn)))
        return batches if optimizer.private is None else [[record for batch in batches for record in batch]]

    def _first(self, count: int) -> list[list[int]]:
        if len(self._drawn) < count:
            raise ValueError(f"a step was taken without a batch that was watched: {_TELL if self._told else _DRAW}")
        return [list(self._drawn.popleft()) for _ in range(count)]


class IndexedRecords(Dataset[tuple[int, Any]]):
    """Records with their numbers; see `index_records`."""

    def __init__(self, records: Any) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[int, Any]:
        return int(index), self.records[index]


def index_records(records: Any) -> IndexedRecords:
    """A data set whose items are (number, record), so that a loop can tell which records it uses.

    For loops whose loader's batches cannot be watched, such as one that a framework made or that draws in other
    processes::

        for indices, (features, labels) in DataLoader(dn.index_records(data), ...):
            run.use(indices)

    Args:
        records: A data set with `len` and ``[i]``.

    Returns:
        The data set, for a loader.

    Examples:
        >>> import deniable as dn
        >>> dn.index_records(["a", "b"])[1]
        (1, 'b')
    """
    return IndexedRecords(records)
