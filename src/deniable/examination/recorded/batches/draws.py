"""How often records are drawn, and how many of them are in two batches: as many as chance puts there?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

_COMPARED = 64
"""So many batches before each one are compared with it: a bit of a number for each."""
_FEWEST = 1.0
"""Records in both batches, on average: of fewer, squared deviations are rare and large."""
_SURE = 40.0
"""The logarithm of the number of possible batches of a size, from which on one does not come again by chance."""
Overlaps = tuple[float, float, int]
"""Of all pairs of batches that are compared: the sum of squared deviations of the records that both hold, in variances;
the variance of that sum; how many pairs."""


class Draws:
    """Counted step by step.

    Of independent batches of b and c of n records, b c / n are in both on average; the numbers of two pairs of batches
    are uncorrelated. Records that are drawn by what they are, or beside others, make some pairs more alike.
    """

    def __init__(self, records: int) -> None:
        self.counts = np.zeros(records, dtype=np.int64)
        self._seen = np.zeros(records, dtype=np.uint64)
        """A bit for each of the last `_COMPARED` batches: whether the record was in it."""
        self._sizes: list[int] = []
        self._known: set[int] = set()
        self.again = 0
        """Batches of just the records of an earlier one, which chance does not draw."""
        self.overlaps: Overlaps = (0.0, 0.0, 0)

    def note(self, batch: Sequence[int]) -> None:
        """Add a step's batch."""
        drawn = np.asarray(batch, dtype=np.int64)
        np.add.at(self.counts, drawn, 1)
        drawn, records = np.unique(drawn), len(self.counts)
        self._note_whole(drawn)
        last, place = self._sizes[-_COMPARED:], np.uint64(len(self._sizes) % _COMPARED)
        both = np.array([int((self._seen[drawn] >> np.uint64(at) & np.uint64(1)).sum()) for at in self._places()])
        mean = len(drawn) * np.array(last, dtype=float) / records
        variance = mean * (1 - len(drawn) / records) * (records - np.array(last)) / max(1, records - 1)
        told = (variance > 0) & (mean >= _FEWEST)
        squares, spread, pairs = self.overlaps
        self.overlaps = (
            squares + float(((both - mean)[told] ** 2 / variance[told]).sum()),
            spread + float((2 + 1 / variance[told]).sum()),
            pairs + int(told.sum()),
        )
        self._seen &= ~(np.uint64(1) << place)
        self._seen[drawn] |= np.uint64(1) << place
        self._sizes.append(len(drawn))

    def _note_whole(self, drawn: NDArray[np.int64]) -> None:
        records, size = len(self.counts), len(drawn)
        ways = gammaln(records + 1) - gammaln(size + 1) - gammaln(records - size + 1)
        if ways > _SURE:
            key = hash(drawn.tobytes())
            self.again += key in self._known
            self._known.add(key)

    def _places(self) -> list[int]:
        """Of the last batches' bits, the oldest first."""
        steps = len(self._sizes)
        return [at % _COMPARED for at in range(max(0, steps - _COMPARED), steps)]
