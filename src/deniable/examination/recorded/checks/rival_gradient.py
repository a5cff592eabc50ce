"""A gradient that may have been applied in place of the claimed one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.results.run_result import Outcome

Array = NDArray[np.float64]
BETTER, FITTED = 25.0, 6.0
"""Another gradient is considered if it is nearer by so many variances of the noise; so many more a fitted number."""
FITTED_IN_A_STEP = 2.0
"""The same for a number that is fitted in every step: what a fit gains by chance, and as much again."""


@dataclass(frozen=True)
class Candidate:
    """Another gradient, and how far the applied one is from it, in variances of the noise."""

    distance: float
    outcome: Outcome
    sentence: str
    factors: Array | None = None
    """Of the clipped sum in each step, where that is all."""
    margin: float = 0.0
    """So much nearer than harmless ones it must be."""
    gain: float = BETTER
    """So much nearer than the claim it must be."""
    hidden: float = 0.0
    """So much nearer it would be about on all weights, of which it was compared on a sample: says which leak it is."""

    @property
    def on_all_weights(self) -> float:
        """The distance there."""
        return self.distance - self.hidden


def distance_of_claim(units: list[Array]) -> float:
    """That of the clipped sum itself."""
    return float(sum(u[0, 0] for u in units))
