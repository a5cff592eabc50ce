"""The choice of the neighbouring data set D' by dataset sensitivity (Bernau 2021, Definition 6, Eq. 9 and 11).

Among too many pairs to compare, a search by sample finds a very dissimilar one. Bernau 2021 (Section 5.1) takes the
most dissimilar neighbour as the likeliest to be told apart, a heuristic to begin with. With 60,000 images it costs an
hour to be sure of it; the sample finds it or one much like it within a minute. What it finds is a neighbour of D all
the same, so every statement of an audit about it holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.checks import whole
from deniable.data.dataset import Dataset, Kind
from deniable.data.dissimilarity import Array, Kernel, Measure, are_pixels, find_measure
from deniable.data.files import extra
from deniable.mechanisms import Adjacency

Progress = Callable[[int, int], None]
"""Called with (blocks done, blocks in all)."""

Indices = NDArray[np.intp]
T = TypeVar("T")

PANEL_ROWS, PANEL_BYTES = 1024, 128 << 20
BLOCK_ROWS, BLOCK_BYTES = 256, 32 << 20
_USUAL_MEASURE: dict[Kind, str] = {"image": "ssim", "binary": "hamming", "table": "manhattan"}


def usual_measure(inside: Dataset, outside: Dataset | None = None) -> str:
    """The one that Bernau 2021 (Section 6.1) found best; euclidean for images for which ssim is not defined."""
    both = [inside] if outside is None else [inside, outside]
    unlike = inside.kind == "image" and not all(are_pixels(data.features) for data in both)
    return "euclidean" if unlike else _USUAL_MEASURE[inside.kind]


@dataclass(frozen=True)
class Neighbour:
    """D' is D with its record number `record` exchanged for number `replacement` of U \\ D, or removed (None)."""

    record: int
    replacement: int | None
    dissimilarity: float


def most_dissimilar(
    inside: Dataset,
    outside: Dataset | None,
    adjacency: Adjacency | str,
    *,
    measure: str | None = None,
    count: int = 1,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Neighbour]:
    """The `count` neighbours of D = `inside` that are most unlike it, the most unlike first.

    `replace`: the pairs (x in D, x' in U \\ D = `outside`) with the largest d(x, x'), Eq. 11. The pairs are distinct,
    so every one is another D'; a record may occur in several. `add-remove` and `zero-out`: the records x of D with the
    largest sum of d(x, y) over the other y in D, Eq. 9; `outside` is not used.

    The measure, if none is named, is the one that Bernau 2021 (Section 6.1) found best: ssim for images, hamming for
    bits, manhattan for tables; euclidean for images that are standardised, or too small for ssim. The result is that of
    comparing pair by pair in double precision; of equals, the one that comes first in D, then in U \\ D, is taken. It
    does not depend on `workers` (threads, default one a core).
    Memory beyond the data: at most 128 MB, and about 64 MB a worker.
    """
    return _search(inside, outside, adjacency, measure=measure, count=count, workers=workers, progress=progress, sign=1)


def least_dissimilar(
    inside: Dataset,
    outside: Dataset | None,
    adjacency: Adjacency | str,
    *,
    measure: str | None = None,
    count: int = 1,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Neighbour]:
    """The `count` neighbours of D that are least unlike it, the least unlike first; else as `most_dissimilar`."""
    return _search(
        inside, outside, adjacency, measure=measure, count=count, workers=workers, progress=progress, sign=-1
    )


def _search(
    inside: Dataset,
    outside: Dataset | None,
    adjacency: Adjacency | str,
    *,
    measure: str | None,
    count: int,
    workers: int | None,
    progress: Progress | None,
    sign: int,
) -> list[Neighbour]:
    if adjacency not in tuple(Adjacency):
        raise ValueError(f"adjacency must be one of {', '.join(Adjacency)}, got {adjacency!r}")
    replace = adjacency == Adjacency.REPLACE
    if replace and outside is None:
        raise ValueError("outside must be the records of U \\ D for adjacency 'replace', got None")
    others = outside if replace and outside is not None else inside
    _check_sizes(inside, others, whole("count", count), replace)
    chosen = find_measure(measure or usual_measure(inside, outside))
    sweep = PairSweep(chosen, inside.features, others.features, _workers(workers), progress or _silent)
    return extreme_pairs(sweep, count, sign) if replace else _extreme_records(sweep, count, sign)


def _check_sizes(inside: Dataset, others: Dataset, count: int, replace: bool) -> None:
    if inside.features.shape[1:] != others.features.shape[1:]:
        raise ValueError(
            f"inside and outside must have records of one shape, got {inside.features.shape[1:]} "
            f"and {others.features.shape[1:]}"
        )
    choices = len(inside) * len(others) if replace else len(inside)
    if count > choices:
        raise ValueError(f"count must be at most {choices}, the number of neighbours to choose from, got {count}")


@dataclass(frozen=True)
class PairSweep:
    """All pairs of two sets of records, block by block and in parallel, within bounded memory."""

    measure: Measure
    left: Array
    right: Array
    workers: int
    progress: Progress

    @cached_property
    def kernel(self) -> Kernel:
        return self.measure.kernel(self.left, self.right)

    def blocks(self, visit: Callable[[Array, int, int], T]) -> Iterator[T]:
        """`visit(dissimilarities, first row, first column)` of every block, in order whatever thread is first."""
        kernel = self.kernel
        panels = _slices(len(self.left), PANEL_ROWS, PANEL_BYTES // kernel.record_bytes)
        blocks = _slices(len(self.right), BLOCK_ROWS, BLOCK_BYTES // kernel.record_bytes)
        done = 0
        # A thread a core with single-threaded products beats one product on all cores: all steps run in parallel.
        with extra("threadpoolctl").threadpool_limits(1, "blas"), ThreadPoolExecutor(self.workers) as pool:
            for panel in panels:
                rows = kernel.left(self.left[panel])

                def work(block: slice, rows: object = rows, first: int = panel.start) -> T:
                    return visit(kernel.compare(rows, kernel.right(self.right[block])), first, block.start)

                for result in pool.map(work, blocks):
                    done += 1
                    self.progress(done, len(panels) * len(blocks))
                    yield result

    def exact(self, i: Indices, j: Indices) -> NDArray[np.float64]:
        """The definition's value of the pairs (i, j), few at a time: it needs some ten times the prepared records."""
        parts = _slices(len(i), len(i), BLOCK_BYTES // (10 * self.kernel.record_bytes))
        x, y = self.left, self.right
        return np.concatenate(
            [self.measure.paired(x[i[part]].astype(np.float64), y[j[part]].astype(np.float64)) for part in parts]
        )


def extreme_pairs(sweep: PairSweep, count: int, sign: int) -> list[Neighbour]:
    def candidates(block: Array, row: int, column: int) -> tuple[NDArray[np.float64], Indices, Indices]:
        i, j = _promising(block if sign > 0 else -block, count, sweep.kernel.error)
        i, j = i + row, j + column
        return _first(count, sign, sweep.exact(i, j), i, j)

    found = zip(*sweep.blocks(candidates), strict=True)
    values, i, j = _first(count, sign, *(np.concatenate(part) for part in found))
    return [Neighbour(*pair) for pair in zip(i.tolist(), j.tolist(), values.tolist(), strict=True)]


def _promising(scores: Array, count: int, error: float) -> tuple[Indices, Indices]:
    """Every pair that may be among the `count` largest when each score is off by at most `error`."""
    # The largest of every row hold a lower bound of the count-th largest of all, and are quickly found.
    tops = scores.max(axis=1) if count <= len(scores) else scores.ravel()
    place = max(len(tops) - count, 0)
    i, j = np.nonzero(scores >= float(np.partition(tops, place)[place]) - 2 * error)
    return i, j


def _first(
    count: int, sign: int, values: NDArray[np.float64], i: Indices, j: Indices
) -> tuple[NDArray[np.float64], Indices, Indices]:
    order = np.lexsort((j, i, -sign * values))[:count]
    return values[order], i[order], j[order]


def _extreme_records(sweep: PairSweep, count: int, sign: int) -> list[Neighbour]:
    records = len(sweep.left)
    sums = np.zeros(records)

    def row_sums(block: Array, row: int, _: int) -> tuple[int, NDArray[np.float64]]:
        # A record's dissimilarity to itself is counted too: it is the same for all, so it changes no rank.
        return row, block.sum(axis=1, dtype=np.float64)

    for row, part in sweep.blocks(row_sums):
        sums[row : row + len(part)] += part
    error = records * (sweep.kernel.error + float(np.finfo(np.float64).eps * np.abs(sums).max()))
    (chosen,) = _promising(sign * sums[:, None], count, error)[:1]
    exact = np.array([_exact_sum(sweep, int(record)) for record in chosen])
    values, record, _ = _first(count, sign, exact, chosen, chosen)
    return [Neighbour(i, None, value) for i, value in zip(record.tolist(), values.tolist(), strict=True)]


def _exact_sum(sweep: PairSweep, record: int) -> float:
    others = np.delete(np.arange(len(sweep.left)), record)
    return fsum(sweep.exact(np.full_like(others, record), others)) if len(others) else 0.0


def _slices(length: int, rows: int, rows_in_memory: int) -> list[slice]:
    step = max(1, min(rows, rows_in_memory))
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _workers(workers: int | None) -> int:
    if workers is not None:
        return whole("workers", workers)
    return cores()


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _silent(_done: int, _total: int) -> None:
    pass


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
