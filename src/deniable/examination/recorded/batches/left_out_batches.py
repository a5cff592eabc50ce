"""Batches that a loop draws and then takes no step with: which they are may tell of the records.

All batches since the step before are used by a loop that accumulates gradients; a loop that leaves batches out uses the
last one alone. What was applied tells which: the wrong sum leaves a longer residual than noise does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from deniable.examination.recorded.gradients.batch_gradients import BatchSums
from deniable.examination.recorded.run_record import LeftOut

_LONGER = 12.0
"""Variances of the noise by which a residual with another sum is longer: a likelihood ratio of 400."""


class LeftOutBatches:
    """Tells the batch that a step uses from those that were drawn before it and left out."""

    def __init__(self) -> None:
        self._used = 0  # of several batches, as far as it is known
        self._last_alone = False

    def split(
        self, batches: Sequence[list[int]], applied: Tensor, sums: Callable[[list[int]], BatchSums] | None
    ) -> tuple[list[int], tuple[LeftOut, ...]]:
        """The records that a step uses, and what is told of the batches that it left out.

        `applied` is the noisy sum at the weights that are looked at, `sums` recomputes those of a batch. Without it,
        or where both sums are alike, the step is like those before.
        """
        every = [record for batch in batches for record in batch]
        if len(batches) == 1 or len(batches) == self._used:
            return every, ()
        if sums is not None:
            whole, last = (_residual(applied, sums(batch)) for batch in (every, batches[-1]))
            if abs(whole - last) > _LONGER * min(whole, last) / max(1, len(applied)):
                self._last_alone = last < whole
                self._used = 1 if self._last_alone else len(batches)
        if not self._last_alone:
            return every, ()
        left_out = [batch for batch in batches[:-1] if batch]
        return batches[-1], tuple(_tell(sums(batch), len(batch)) for batch in left_out) if sums is not None else ()


def _residual(applied: Tensor, sums: BatchSums) -> float:
    """Its squared length."""
    left = applied - torch.cat([part.flatten() for part in sums.clean]).double()
    return float(left @ left)


def _tell(sums: BatchSums, records: int) -> LeftOut:
    length = sum(float(part.double().square().sum()) for part in sums.clean) ** 0.5
    return float(f"{sums.loss / records:.8g}"), float(f"{length:.8g}")
