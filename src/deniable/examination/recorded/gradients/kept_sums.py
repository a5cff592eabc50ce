"""Clipped sums that are not cleared before a step: how many steps still hold what was summed for those before?"""

from __future__ import annotations

from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import shorten

KeptSums = tuple[int, float]
"""Steps that hold it, and by how much nearer that is to the applied sums than the clipped ones, in variances of the
noise."""


class NotCleared:
    """Follows the sum as it is if a step clears it only where that is nearer."""

    def __init__(self) -> None:
        self._sum: Tensor | None = None
        self._number, self._steps, self._gained = -1, 0, 0.0

    def note(self, number: int, clean: Tensor, residual: Tensor, variance: float) -> None:
        """Add a step, by its clipped sum; only the one just before may be in it."""
        held = self._sum if self._number == number - 1 else None
        gained = 0.0 if held is None else float(2 * residual @ held - held @ held) / variance
        keeps = held is not None and gained > 0
        self._sum = clean + held if keeps else clean  # type: ignore[operator]
        self._number, self._steps, self._gained = number, self._steps + keeps, self._gained + max(gained, 0.0)

    def found(self) -> KeptSums | None:
        """None where no step does."""
        return (self._steps, shorten(self._gained, 8)) if self._steps else None
