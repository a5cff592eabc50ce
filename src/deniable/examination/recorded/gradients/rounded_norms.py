"""Norms in too few digits: squares of small numbers vanish, and the norm that clips is shorter than the gradient.

Half precision rounds small squares to multiples of one number, u; those below u / 2 are zero. Which u that is beside
the clipping norm depends on how losses are scaled, so that several are tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

FLOORS = tuple(2.0 ** (-power / 2) for power in range(2, 14))
"""In clipping norms: numbers below vanish in the norm. Half of the norm, down to a hundredth."""
_FINE = 8
"""Bins of an octave."""
_BINS = _FINE * 12
"""From the lowest floor on; numbers in the last are not rounded by much."""


def rounded_norms(gradients: Sequence[Tensor], clip: float) -> Tensor:
    """(floors, records) over all parameters, each given as (records, ...)."""
    squares = _squares_by_size([g.detach().flatten(1) / clip for g in gradients])
    centres = (FLOORS[-1] * 2 ** ((torch.arange(_BINS).to(squares) + 0.5) / _FINE)).square()
    units = 2 * torch.tensor(FLOORS).to(squares)[:, None].square()
    kept = (centres / units).round() * units / centres
    norms: Tensor = clip * (kept @ squares.T).sqrt()
    return norms


def _squares_by_size(gradients: Sequence[Tensor]) -> Tensor:
    """(records, bins) sums of the squares of numbers of about one size."""
    records = len(gradients[0])
    sums = gradients[0].new_zeros(records * _BINS)
    for rows in gradients:
        record, number = torch.nonzero(rows.abs() > FLOORS[-1], as_tuple=True)
        values = rows[record, number].abs()
        bins = (torch.log2(values / FLOORS[-1]) * _FINE).long().clamp(0, _BINS - 1)
        sums.index_add_(0, record * _BINS + bins, values.square())
    return sums.view(records, _BINS)
