"""Moves that the optimizer does not explain: does it divide by a second moment of sums without noise?

An adaptive optimizer moves a weight by m / (sqrt(v) + e), where m is a falling mean of applied gradients and v one of
squares. Divided by its move, m is ranked as v is within each step, whatever learning rate, corrections and e are. v of
clean sums or of single gradients is no released number; applied gradients, which are mostly noise, rank it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deniable.examination.recorded.gradients.batch_gradients import BatchSums
from deniable.examination.recorded.gradients.record_shares import shorten
from deniable.examination.recorded.weights.weight_moves import WatchedWeights

Array = NDArray[np.float64]
Source = Literal["applied", "clean", "unclipped", "single"]
"""Applied gradients, clipped sums, sums without clipping, and squares of the records' clipped gradients."""
_SOURCES: tuple[Source, ...] = get_args(Source)
SecondMoment = tuple[Source, float, float]
"""What moves are divided by: of the sources but the applied gradients the best one, the correlation of its ranks with
the moves', and that of the applied ones'."""
_MOST_STEPS, _FEWEST_STEPS, _FEWEST_WEIGHTS = 64, 3, 32
_FIRST = (0.0, 0.5, 0.8, 0.9, 0.95)
_SECOND = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Decays that are tried beside the optimizer's own; 1 for sums."""
_FEWEST_SCALED = 8
"""Steps whose numbers are compared with the records'."""
_ONE_SIGN = 0.9
"""The share of weights that must move against m, or m is another."""


class SecondMoments:
    """Keeps the gradients of the first steps on the watched weights, as long as each is recomputed."""

    def __init__(self, weights: WatchedWeights) -> None:
        self._weights = weights
        self._steps: list[tuple[Array, ...]] = []
        sizes = np.cumsum([0, *(p.numel() for p in weights.parameters)])
        self._at = torch.cat([place + int(before) for place, before in zip(weights.places, sizes, strict=False)])

    def note(self, number: int, gradients: Sequence[Tensor], sums: BatchSums, clip: float) -> None:
        """Add a step whose sums are those of all weights."""
        each = sums.gradients
        if number != len(self._steps) or number >= _MOST_STEPS or each.places is not None:
            return
        single = each.values[:, self._at.to(each.values.device)] * each.clipped_factors(clip)[:, None]
        rows = (*(self._weights.take(one) for one in (gradients, sums.clean, sums.whole)), single.square().sum(0))
        self._steps.append(tuple(np.asarray(row.double().cpu()) for row in rows))

    def found(self) -> SecondMoment | None:
        """None where too little is known, or no decay of m fits the moves."""
        starts = self._weights.starts()
        steps = min(len(self._steps), len(starts) - 1)
        if steps < _FEWEST_STEPS or len(self._at) < _FEWEST_WEIGHTS:
            return None
        moves = np.diff(np.array([np.asarray(one) for one in starts[: steps + 1]]), axis=0)
        applied, clean, whole, single = (np.array(rows) for rows in zip(*self._steps[:steps], strict=True))
        squares = dict(zip(_SOURCES, (applied**2, clean**2, whole**2, single), strict=True))
        decays = self._decays(1, _SECOND)
        seconds = [(source, _ranks(_means(values, d))) for source, values in squares.items() for d in decays]
        divisors = [_ranks(one) for one in self._divisors(applied, moves)]
        best = dict.fromkeys(_SOURCES, 0.0)
        for source, second in seconds:
            best[source] = max([best[source], *(_agree(divisor, second) for divisor in divisors)])
        source = max(_SOURCES[1:], key=lambda one: best[one])
        return (source, shorten(best[source]), shorten(best["applied"])) if divisors else None

    def along_records(self) -> float | None:
        """The correlation of applied numbers' sizes with those of the records' own gradients, within each parameter.

        Noise of one size makes no applied number smaller where gradients are larger: it is at least about zero.
        """
        if len(self._steps) < _FEWEST_SCALED:
            return None
        applied, _, _, single = (np.array(rows) for rows in zip(*self._steps, strict=True))
        sizes, own = np.square(applied).sum(0), single.sum(0)
        of = np.repeat(np.arange(len(self._weights.places)), [len(place) for place in self._weights.places])
        there = (sizes > 0) & (own > 1e-9 * own.max(initial=0.0))
        if there.sum() < _FEWEST_WEIGHTS:
            return None
        both = [_apart(np.log(values[there]), of[there]) for values in (sizes, own)]
        lengths = np.linalg.norm(both[0]) * np.linalg.norm(both[1])
        return shorten(float(both[0] @ both[1]) / max(float(lengths), 1e-300))

    def _divisors(self, applied: Array, moves: Array) -> Iterator[Array]:
        """m over the move, nan where a weight does not move against m."""
        for decay in self._decays(0, _FIRST):
            means = _means(applied, decay)
            against = means * moves < 0
            if against.mean() > _ONE_SIGN:
                yield np.where(against, -means / np.where(against, moves, 1.0), np.nan)

    def _decays(self, place: int, usual: tuple[float, ...]) -> list[float]:
        settings = self._weights.settings
        own = [b[place] for b in [settings.get("betas")] if isinstance(b, tuple | list) and len(b) > place]
        own += [settings[name] for name in (("momentum",), ("alpha", "rho"))[place] if name in settings]
        return sorted({*usual, *(float(decay) for decay in own if isinstance(decay, float) and 0 <= decay < 1)})


def _apart(values: Array, of: NDArray[np.int64]) -> Array:
    """Less the mean of all values of the same parameter."""
    sums, counts = np.bincount(of, values), np.maximum(np.bincount(of), 1)
    return np.asarray(values - (sums / counts)[of])


def _means(values: Array, decay: float) -> Array:
    """(steps, weights) with falling shares, up to a factor of each step; sums for a decay of 1."""
    found, kept = np.empty_like(values), np.zeros(values.shape[1])
    for at, row in enumerate(values):
        kept = decay * kept + row
        found[at] = kept
    return found


def _ranks(values: Array) -> Array:
    """(steps, weights) within each step; nan for nan."""
    ranks = np.argsort(np.argsort(values, axis=1), axis=1).astype(float)
    return np.where(np.isnan(values), np.nan, ranks)


def _agree(divisor: Array, second: Array) -> float:
    """The mean over steps of the correlation of ranks, where both are known."""
    both = np.isfinite(divisor) & np.isfinite(second)
    count = np.maximum(both.sum(1, keepdims=True), 1)
    apart = [
        np.where(both, rows - np.where(both, rows, 0.0).sum(1, keepdims=True) / count, 0.0)
        for rows in (divisor, second)
    ]
    lengths = [np.sqrt(np.square(rows).sum(1)) for rows in apart]
    return float(np.mean((apart[0] * apart[1]).sum(1) / np.maximum(lengths[0] * lengths[1], 1e-12)))
