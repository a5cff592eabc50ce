"""A very dissimilar neighbour among too many pairs to compare: a search by sample.

Bernau 2021 (Section 5.1) takes the most dissimilar neighbour as the likeliest to be told apart, a heuristic to begin
with. With 60,000 images it costs an hour to be sure of it; the sample finds it or one much like it within a minute.
What it finds is a neighbour of D all the same, so every statement of an audit about it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.data.dataset import Dataset
from deniable.data.dissimilarity import Array, find_measure
from deniable.data.neighbours import Indices, Neighbour, PairSweep, Progress, cores, extreme_pairs
from deniable.mechanisms import Adjacency

WORK_BYTES = 2**43
"""Bytes of prepared records met in pairs, above which not all pairs are compared: with ssim, about a minute a core."""
SAMPLE, FINALISTS = 256, 64
"""Records that all are compared with, and the most unlike of all, which are then compared with all."""


def too_many_pairs(inside: Dataset, outside: Dataset, adjacency: Adjacency, measure: str) -> bool:
    """Whether comparing every pair would take longer than people wait."""
    others = outside if adjacency is Adjacency.REPLACE else inside
    record_bytes = find_measure(measure).kernel(inside.features[:2], others.features[:2]).record_bytes
    return len(inside) * len(others) * record_bytes > WORK_BYTES


def likely_dissimilar(
    inside: Dataset,
    outside: Dataset,
    adjacency: Adjacency,
    *,
    measure: str,
    seed: int = 0,
    progress: Progress | None = None,
) -> Neighbour:
    """What `most_dissimilar` looks for, among the candidates of a sample; its result where the sample is everything.

    `replace`: every x of D is compared with a sample of U \\ D; the best of them with all of U \\ D; the best of these
    with all of D. `add-remove`, `zero-out`: every x of D is compared with a sample of D, and of the best the one with
    the largest sum over all of D is taken (by the kernel, so the sum is rounded to single precision).
    """
    replace = adjacency is Adjacency.REPLACE
    others = outside if replace else inside
    sample = np.random.default_rng(seed).permutation(len(others))[:SAMPLE]
    search = _Search(measure, inside.features, others.features, np.sort(sample), _Told(progress))
    return search.pair() if replace else search.record()


class _Told:
    """Several sweeps as one for `progress`: each is given its share of the whole."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._done, self._total = progress, 0, 0

    def expect(self, *comparisons: int) -> None:
        self._total = sum(comparisons)

    def of(self, comparisons: int) -> Progress:
        before = self._done
        self._done += comparisons

        def tell(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(before + done * comparisons // total, self._total)

        return tell


@dataclass(frozen=True)
class _Search:
    measure: str
    left: Array
    right: Array
    sample: Indices
    told: _Told

    def pair(self) -> Neighbour:
        """Rows by the sample, columns by the rows, then every row against those columns."""
        few = min(FINALISTS, len(self.left)), min(FINALISTS, len(self.right))
        self.told.expect(len(self.left) * len(self.sample), few[0] * len(self.right), len(self.left) * few[1])
        rows = _largest(self._over_rows(self.left, self.right[self.sample], np.maximum))
        columns = np.sort(_largest(self._over_rows(self.right, self.left[rows], np.maximum)))
        (found,) = extreme_pairs(self._sweep(self.left, self.right[columns]), 1, 1)
        assert found.replacement is not None
        return Neighbour(found.record, int(columns[found.replacement]), found.dissimilarity)

    def record(self) -> Neighbour:
        """Finalists by their sum over the sample, the winner by its sum over all."""
        few = min(FINALISTS, len(self.left))
        self.told.expect(len(self.left) * len(self.sample), few * len(self.left))
        finalists = np.sort(_largest(self._over_rows(self.left, self.right[self.sample], np.add)))
        sums = self._over_rows(self.left[finalists], self.right, np.add)
        best = int(np.argmax(sums))
        itself = find_measure(self.measure).paired(*[self.left[finalists[best : best + 1]].astype(np.float64)] * 2)
        return Neighbour(int(finalists[best]), None, float(sums[best] - itself[0]))

    def _sweep(self, left: Array, right: Array) -> PairSweep:
        return PairSweep(find_measure(self.measure), left, right, cores(), self.told.of(len(left) * len(right)))

    def _over_rows(self, left: Array, right: Array, join: np.ufunc) -> NDArray[np.float64]:
        """Each left record's largest dissimilarity (`np.maximum`) or sum of them (`np.add`) over the right ones."""
        found = np.full(len(left), 0.0 if join is np.add else -np.inf)

        def reduce_rows(block: Array, row: int, _: int) -> tuple[int, NDArray[np.float64]]:
            return row, join.reduce(block, axis=1, dtype=np.float64)

        for row, part in self._sweep(left, right).blocks(reduce_rows):
            rows = slice(row, row + len(part))
            found[rows] = join(found[rows], part)
        return found


def _largest(values: NDArray[np.float64]) -> Indices:
    return np.argsort(-values, kind="stable")[:FINALISTS]
