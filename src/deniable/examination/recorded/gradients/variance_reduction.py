"""Gradients of all records at earlier weights, less those of the batch there: is that what the residuals hold?

Variance reduction adds a (G - P): G is the mean gradient of all records at weights that are kept for some steps, P that
of the step's batch at the same weights. In the step in which weights are kept both are known already; only where these
explain that step are the ones after it looked at, when the run has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import BatchSums, RecordLoss, recompute_sums

_MOST_WEIGHTS, _MOST_KEPT, _STEPS_AFTER = 2**18, 8, 2
"""Of a model that is looked at; times that weights are kept; steps after each of these."""
_SEEN, _SURE = 16.0, 50.0
"""What G gains in a step beside the batch's own gradients, and what both gain in all steps, in variances of noise."""
_OPPOSITE = 0.2
"""The share by which the multiples of G and P may differ."""
_LEFT, _ERRORS = 0.1, 4.0
"""What the batch's gradients may explain of the rest, as a share of what is explained; and standard deviations."""


@dataclass(frozen=True)
class _Kept:
    """Weights, and the mean gradient of all records there: as it is, and clipped."""

    weights: list[Tensor]
    means: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class _Step:
    """After some weights are kept, or in which they are."""

    kept: _Kept
    batch: list[int]
    residual: Tensor
    variance: float


class VarianceReduction:
    """Holds the steps that may have it."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        self._steps = list[_Step]()
        self._kept: _Kept | None = None
        self._times, self._since = 0, 0

    def note(
        self, batch: Sequence[int], sums: BatchSums, every: BatchSums | None, residual: Tensor, variance: float
    ) -> None:
        """Add a step; `every`: of all records, or of a sample; the sums are those of all weights."""
        looked_at = len(residual) <= _MOST_WEIGHTS and sums.gradients.places is None
        if every is None or not looked_at or not batch or not len(every.gradients.norms):
            return
        means = (_flat(every.whole) / len(every.gradients.norms), _flat(every.clean) / len(every.gradients.norms))
        own = torch.stack([_flat(sums.clean), _flat(sums.whole)])
        if self._times < _MOST_KEPT and any(_gain(residual, mean, own) > _SEEN * variance for mean in means):
            self._kept, self._since = _Kept([p.detach().clone() for p in self._parameters], means), 0
            self._times += 1
        if self._kept is not None and self._since <= _STEPS_AFTER:
            self._steps.append(_Step(self._kept, list(batch), residual.float().cpu(), variance))
            self._since += 1

    def found(self, model: nn.Module, data: Any, loss: RecordLoss, clip: float) -> int | None:
        """The number of steps that are seen to have it; None where none are."""
        if not self._steps:
            return None
        there = [self._look(step, model, data, loss, clip) for step in self._steps]
        for clipped in (0, 1):
            pairs = zip(self._steps, there, strict=True)
            rows = [(step, step.kept.means[clipped], own[clipped], axes) for step, (own, axes) in pairs]
            if _explains(rows):
                return len(rows)
        return None

    def _look(
        self, step: _Step, model: nn.Module, data: Any, loss: RecordLoss, clip: float
    ) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """The batch's mean gradient at the kept weights, as it is and clipped; and (axes, weights) of its records'."""
        with self._set_to(step.kept.weights):
            sums = recompute_sums(model, [data[i] for i in step.batch], loss, clip)
        own = (_flat(sums.whole) / len(step.batch), _flat(sums.clean) / len(step.batch))
        return own, _axes(sums.gradients.values.double().cpu())

    @contextmanager
    def _set_to(self, weights: Sequence[Tensor]) -> Iterator[None]:
        now = [p.detach().clone() for p in self._parameters]
        try:
            _copy(self._parameters, weights)
            yield
        finally:
            _copy(self._parameters, now)


def _copy(parameters: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for p, value in zip(parameters, values, strict=True):
            p.copy_(value)


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.detach().flatten() for part in parts]).double().cpu()


def _axes(rows: Tensor) -> Tensor:
    """Orthonormal, of the space of the rows."""
    found = torch.linalg.svd(rows, full_matrices=False)
    axes: Tensor = found.Vh[found.S / found.S.max() > 1e-6]
    return axes


def _gain(residual: Tensor, mean: Tensor, own: Tensor) -> float:
    """Of squared length, by that part of a mean which the batch's own gradients do not have."""
    axes, residual = _axes(own), residual.double().cpu()
    rest = mean - (mean @ axes.T) @ axes
    if float(rest.norm()) <= 1e-6 * float(mean.norm()):
        return 0.0
    return float(rest @ residual) ** 2 / float(rest @ rest)


def _explains(rows: Sequence[tuple[_Step, Tensor, Tensor, Tensor]]) -> bool:
    """Whether the same multiples of G and P, in all steps, leave of the residuals no more than noise has."""
    both = torch.stack([torch.stack([mean, own]) / step.variance**0.5 for step, mean, own, _ in rows])
    residuals = torch.stack([step.residual.double() / step.variance**0.5 for step, *_ in rows])
    squares, along = torch.einsum("siw,sjw->ij", both, both), torch.einsum("siw,sw->i", both, residuals)
    one, other = torch.linalg.lstsq(squares, along).solution.tolist()
    left = residuals - one * both[:, 0] - other * both[:, 1]
    gained = float(residuals.square().sum() - left.square().sum())
    inside = sum(float((axes @ rest).square().sum()) for rest, (*_, axes) in zip(left, rows, strict=True))
    degrees = sum(len(axes) for *_, axes in rows)
    alone = inside <= degrees + _ERRORS * (2 * degrees) ** 0.5 + _LEFT * gained
    return one > 0 and abs(one + other) <= _OPPOSITE * one and gained >= _SURE and alone
