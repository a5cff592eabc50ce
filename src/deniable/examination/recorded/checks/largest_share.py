"""Whether shares of at most the clipping norm explain what was applied, over all steps of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from deniable.examination.recorded.record_shares import SHARES, RecordShares
from deniable.examination.recorded.run_record import RunRecord

_LEFT = 0.1
"""Of what is not noise, the records' gradients may leave this share unexplained."""
_MORE_NOISE = 1.05
"""Noise above so many times the claimed one hides larger shares, which are then as safe."""


@dataclass(frozen=True)
class LargestShare:
    """Guarantee: if no record's share is above the clipping norm, p_value <= x has probability <= x."""

    steps: tuple[tuple[RecordShares, float], ...]
    """With the claimed standard deviation of their noise."""

    @classmethod
    def of(cls, record: RunRecord, sigmas: NDArray[np.float64]) -> LargestShare:
        """Of a run with this claimed noise in its examined steps."""
        both = zip(record.steps, sigmas, strict=True)
        return cls(tuple((step.shares, float(sigma)) for step, sigma in both if step.shares is not None and sigma > 0))

    @property
    def p_value(self) -> float:
        """That no share is above the first of `SHARES`, or the noise allows more."""
        return self._p_value(0) if self._are_all() else 1.0

    def at_least(self, level: float) -> float:
        """The largest of `SHARES` that some record's share exceeds."""
        return max(share for at, share in enumerate(SHARES) if not at or self._p_value(at) < level)

    def _sums(self) -> tuple[float, float, float, float]:
        """In claimed variances: inside and its dimension, outside and its dimension."""
        rows = [(s.inside / v**2, s.fitted, s.outside / v**2, s.numbers) for s, v in self.steps]
        inside, fitted, outside, numbers = np.sum(rows, axis=0) if rows else np.zeros(4)
        return float(inside), float(fitted), float(outside), float(numbers)

    def _p_value(self, at: int) -> float:
        _, fitted, outside, numbers = self._sums()
        beyond = sum(s.beyond[at] / v**2 for s, v in self.steps)
        return float(fdtrc(fitted, numbers, beyond / fitted / max(outside / numbers, 1e-12))) if fitted else 1.0

    def _are_all(self) -> bool:
        """Whether what is not the claimed noise lies within the records' gradients, so that their shares make it."""
        inside, fitted, outside, numbers = self._sums()
        left = outside - numbers
        within = left <= _LEFT * (inside - fitted) + 3 * (2 * numbers) ** 0.5
        return bool(numbers) and within and outside <= _MORE_NOISE**2 * numbers
