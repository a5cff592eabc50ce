"""Are records clipped by themselves, or a few of a batch together? Groups of which size explain best?

Gradients of records that follow each other in the batch are summed, or averaged, and that is clipped. Averages may be
multiplied by their number afterwards, or not.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr
from torch import Tensor

from deniable.examination.recorded.gradients.record_shares import RecordGradients, shorten

Array = NDArray[np.float64]
GroupedRecords = tuple[int, float]
"""Records in a group, and by how much nearer these sums are to the applied ones than the clipped ones, in all steps, in
variances of the noise."""
AveragedRecords = tuple[int, float, float]
"""The same, and the probability of noise that is as much along any of these."""
_KINDS = 3
"""Sums, averages, and averages times the group's number."""
_SIZES = np.array([*range(2, 17), 20, 24, 25, 30, 32, 40, 48, 50, 64, 100, 128, 256])
_LARGEST_BATCH = 1024


class RecordGroups:
    """What groups of every size gain, over the steps so far."""

    def __init__(self) -> None:
        self._gains = np.zeros((len(_SIZES), _KINDS))

    def note(self, gradients: RecordGradients, residual: Tensor, clip: float, variance: float) -> None:
        """Add a step; `residual` at the weights that are looked at. Groups as large as the batch are none."""
        size = len(gradients.norms)
        if not 2 < size <= _LARGEST_BATCH:
            return
        values, norms = gradients.values, gradients.norms.double().cpu().numpy()
        products = (values @ values.T).double().cpu().numpy()
        along = (values @ gradients.held(residual).to(values)).double().cpu().numpy()
        larger = norms / np.maximum(np.sqrt(np.diag(products)), 1e-12)  # of a sample
        factors = gradients.clipped_factors(clip).double().cpu().numpy()
        some = size > _SIZES
        rows = [_factors(products * larger * larger[:, None], int(count), clip) for count in _SIZES[some]]
        more = np.array(rows).reshape(-1, size) - factors
        gains = (2 * more @ along - ((more @ products) * more).sum(1)) / variance
        self._gains[some] += gains.reshape(-1, _KINDS)

    def found(self) -> GroupedRecords | None:
        """The best one; None where none is nearer."""
        at = int(self._gains.max(1).argmax())
        gained = float(self._gains[at].max())
        return (int(_SIZES[at]), shorten(gained, 8)) if gained > 0 else None


class ChunkMeans:
    """The same of clipped gradients that are averaged in chunks of a batch, and those averages again.

    Each record counts divisor / (records of its chunk x chunks), so that those of a small last chunk count for more.
    """

    def __init__(self) -> None:
        self._along, self._squares = np.zeros((2, len(_SIZES)))
        self._most = 0

    def note(self, gradients: RecordGradients, residual: Tensor, clip: float, variance: float, divisor: float) -> None:
        """Add a step; `residual` at the weights that are looked at."""
        size = len(gradients.norms)
        if not size:
            return
        factors, self._most = gradients.clipped_factors(clip).double(), max(self._most, size)
        shares = torch.tensor(np.array([_chunk_shares(size, int(count)) for count in _SIZES])).to(factors)
        more, values = factors * (divisor * shares - 1), gradients.values.double()
        self._along += (more @ (values @ gradients.held(residual).to(values))).cpu().numpy() / variance
        self._squares += ((more @ (values @ values.T)) * more).sum(1).cpu().numpy() / variance

    def found(self) -> AveragedRecords | None:
        """The best size that divides some batch; None where none is nearer."""
        some = self._most > _SIZES
        gains = np.where(some, 2 * self._along - self._squares, -np.inf)
        at = int(gains.argmax())
        if gains[at] <= 0:
            return None
        chance = min(1.0, some.sum() * ndtr(-self._along[at] / self._squares[at] ** 0.5))
        return int(_SIZES[at]), shorten(gains[at], 8), shorten(chance)


def _chunk_shares(size: int, count: int) -> Array:
    """(records,) of the mean of means; chunks follow each other."""
    each = np.diff([*range(0, size, count), size])
    return np.repeat(1 / each / len(each), each)


def _factors(products: Array, count: int, clip: float) -> Array:
    """(kinds, records) for groups of so many."""
    starts = np.arange(0, len(products), count)
    each = np.diff([*starts, len(products)])
    lengths = np.sqrt(np.maximum(np.add.reduceat(np.add.reduceat(products, starts, 0), starts, 1).diagonal(), 1e-24))
    of_sum, of_mean = np.minimum(1, clip / lengths), np.minimum(1 / each, clip / lengths)
    return np.repeat([of_sum, of_mean, of_mean * count], each, axis=1)
