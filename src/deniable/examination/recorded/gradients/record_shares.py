"""The records' shares in an applied gradient, fitted on their own gradients.

Residual = applied sum - clipped sum = sum of (s_i - c_i) u_i + noise, where u_i is the direction of record i's
gradient, c_i its clipped length and s_i the share that it really has. With all |s_i| <= C the sums form a convex set.
The squared distance of what was applied from that set, within the space of the records' gradients, is at most that from
the true sum, which is a chi-square with as many degrees as the space has dimensions. A longer one shows that some
record's share is above C, whatever rule made it. Rules that are known are compared by one vector each, see
ways_to_sum.py and summed_families.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from torch import Tensor

Array = NDArray[np.float64]
SHARES = (1.05, 1.5, 2.0, 4.0, 8.0)
"""In clipping norms: bounds of every record's share, one after the other."""
_NUMBERS_HELD = 2**22
"""Of all records of a batch together."""
_MOST_RECORDS = 128
"""Of a batch whose shares are fitted, as unknowns of least squares with bounds."""
_OUTSIDE = 2
"""So many numbers a record are needed, so that the noise is seen outside their gradients."""


class RecordShares(msgspec.Struct, frozen=True):
    """What the fit of one step finds. Lengths are squared."""

    fitted: int
    """The dimension of the space of the records' gradients."""
    inside: float
    """Of the residual, within that space."""
    outside: float
    numbers: int
    """The dimension outside."""
    beyond: tuple[float, ...]
    """Within that space: the distance from the nearest sum of shares of at most each of `SHARES`."""


@dataclass(frozen=True)
class RecordGradients:
    """The gradients of a batch's records, before clipping."""

    values: Tensor
    """(records, numbers) at some of the weights that are looked at."""
    places: Tensor | None
    """Which of them; None for all."""
    norms: Tensor
    """(records,) over all weights."""
    parts: Tensor
    """(parameters, records) of each parameter."""
    vectors: tuple[int, ...] = ()
    """The parameters of one dimension: biases, and scales of normalisations."""
    losses: Tensor | None = None
    """(records,); None where they are not known."""
    rounded: Tensor | None = None
    """(floors, records) norms in fewer digits, see rounded_norms.py; None where they are not known."""

    @property
    def usual_norms(self) -> tuple[float, float] | None:
        """Their mean and median; None without records."""
        if not len(self.norms):
            return None
        return shorten(float(self.norms.mean()), 5), shorten(float(self.norms.median()), 5)

    def clipped_factors(self, clip: float) -> Tensor:
        """(records,) c_i."""
        return (clip / self.norms.clamp(min=1e-12)).clamp(max=1.0)

    def held(self, values: Tensor) -> Tensor:
        """Of all weights that are looked at, those at which the gradients are held."""
        return values if self.places is None else values[self.places.to(values.device)]

    @staticmethod
    def places_of(numbers: int, records: int) -> Tensor | None:
        """Which of so many numbers are held of so many records; None for all."""
        held = max(1, _NUMBERS_HELD // max(1, records))
        return None if held >= numbers else torch.linspace(0, numbers - 1, held, dtype=torch.float64).long()


def fit_shares(gradients: RecordGradients, residual: Tensor, clip: float) -> RecordShares | None:
    """How far the residual is from any that shares within a bound explain; None where too little is left outside."""
    there = gradients.norms > 1e-6 * clip
    values, norms = gradients.values[there].double().cpu(), gradients.norms[there].double().cpu()
    records, numbers = values.shape
    if not 0 < records <= min(_MOST_RECORDS, numbers // (1 + _OUTSIDE)):
        return None
    basis, columns = torch.linalg.qr((values / norms[:, None]).T)  # on all weights the columns have length one
    along, clipped = (basis.T @ residual.cpu()).numpy(), norms.clamp(max=clip).numpy()
    inside = float(along @ along)
    beyond = tuple(shorten(_distance(columns.numpy(), along, clipped, share * clip), 5) for share in SHARES)
    outside = max(float(residual @ residual) - inside, 0.0)
    return RecordShares(records, shorten(inside, 5), shorten(outside, 5), numbers - records, beyond)


def _distance(columns: Array, along: Array, clipped: Array, most: float) -> float:
    """Squared, from the nearest sum of columns whose shares are at most `most`, as (share - clipped) x column."""
    found = lsq_linear(columns, along, bounds=(-most - clipped, most - clipped), method="bvls")
    return 2 * float(found.cost) if found.status > 0 else 0.0  # a search that has not ended shows nothing


def shorten(value: float | Tensor, digits: int = 4) -> float:
    """In as many digits as a recording keeps."""
    return float(f"{float(value):.{digits}g}")
