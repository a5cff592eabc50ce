"""Records that are looked at in every examined step, whether it draws them or not: does it use them all the same?

A residual is noise that is independent of every record's gradient. Over the steps that do not draw record i, the sum of
<residual, c_i> / variance, with c_i its clipped gradient, is then normal with variance sum of |c_i|^2 / variance.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Any

import numpy as np
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import BatchSums, Places, RecordLoss, recompute_sums
from deniable.examination.recorded.run_record import AbsentRecord

_NUMBERS = 2**22
"""Of gradients that are computed for this in a step: of larger models fewer records are looked at."""
_KEPT = 4
"""So many are told of."""
_BATCHES, _FEWEST = 10, 1024
"""So many batches' records are looked at, and at least so many where the model allows it."""


class OtherRecords:
    """A sample of the records, drawn by the operating system and the same in all steps; of small data all."""

    def __init__(self, data: Any, weights: int) -> None:
        self._data, self._most = data, min(len(data), _NUMBERS // max(1, weights))
        self._numbers: list[int] | None = None
        self._along, self._squares = np.zeros(0), np.zeros(0)

    def sums(
        self, model: nn.Module, loss: RecordLoss, clips: float | list[float], places: Places, batch: int
    ) -> BatchSums | None:
        """Of their gradients at the present weights; None for a model that is too large."""
        if self._numbers is None:
            count = min(self._most, max(_FEWEST, _BATCHES * batch))
            drawn = np.random.default_rng().choice(len(self._data), count, replace=False)
            self._numbers = sorted(int(i) for i in drawn)
            self._along, self._squares = np.zeros(count), np.zeros(count)
        if not self._numbers:
            return None
        return recompute_sums(model, [self._data[i] for i in self._numbers], loss, clips, places)

    def note(self, sums: BatchSums, clip: float, residual: Tensor, variance: float, batch: Collection[int]) -> None:
        """Add a step with these records' gradients; `residual` at the weights that are looked at."""
        each = sums.gradients
        seen = each.held(residual)
        factors = each.clipped_factors(clip).double()
        absent = np.array([number not in batch for number in self._numbers or ()])
        along = (each.values.double() @ seen.to(each.values.device) * factors).cpu().numpy()
        squares = (each.values.double().square().sum(1) * factors.square()).cpu().numpy()
        self._along += np.where(absent, along, 0.0) / variance
        self._squares += np.where(absent, squares, 0.0) / variance

    def __len__(self) -> int:
        return len(self._numbers or ())

    @property
    def compared_records(self) -> int:
        """How many were held against a residual: none where layers are clipped by themselves."""
        return len(self) if self._squares.any() else 0

    def found(self) -> tuple[AbsentRecord, ...]:
        """The few of them that the residuals are most along, in as many digits as a recording keeps."""
        most = np.argsort(-np.abs(self._along) / np.sqrt(np.maximum(self._squares, 1e-300)))[:_KEPT]
        rows = ((self._numbers or ())[i] for i in most)
        return tuple(
            (number, float(f"{self._along[i]:.6g}"), float(f"{self._squares[i]:.6g}"))
            for number, i in zip(rows, most, strict=True)
        )

    def mean(self, sums: BatchSums | None) -> list[Tensor]:
        """Their mean clipped gradient, one tensor a parameter; nothing of a model that is too large."""
        count = max(1, len(self))
        return [] if sums is None else [part.flatten() / count for part in sums.clean]

    def figures(self, sums: BatchSums | None) -> tuple[float | None, float | None]:
        """Their mean loss, and the share of them whose class the model names; None of a model that is too large."""
        return (None, None) if sums is None else mean_figures(sums, len(self))


def mean_figures(sums: BatchSums, records: int) -> tuple[float | None, float | None]:
    """Mean loss and accuracy of so many records; None where they are not known."""
    loss, accuracy = sums.loss / max(1, records), sums.right / max(1, records)
    return (
        float(f"{loss:.8g}") if records and isfinite(loss) else None,
        float(f"{accuracy:.6g}") if records and isfinite(accuracy) else None,
    )
