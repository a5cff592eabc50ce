"""The watcher of one ordinary run: around any torch optimizer, Opacus' included, in two lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from deniable.checks import positive, probability
from deniable.examination.adapters import drawn_batches, next_batch
from deniable.examination.recorded.batch_gradients import LossOfBatch, mean_gradient, recompute_sums, uses_chance
from deniable.examination.recorded.run_record import (
    UNEXPLAINED_MOVE,
    ExaminedStep,
    RunRecord,
    append_line,
    known_factors,
)
from deniable.examination.recorded.weight_moves import WatchedWeights

__all__ = ["NEW_WATCHERS", "RunWatcher", "watch_run"]

_COMPARED_RECORDS = 256
"""Whose mean gradient an unexplained last move is compared with."""
NEW_WATCHERS: ContextVar[list[RunWatcher] | None] = ContextVar("NEW_WATCHERS", default=None)
"""Where a test of somebody's training learns of the watchers that the training makes."""


def watch_run(
    model: nn.Module,
    optimizer: Any,
    loader: Any,
    *,
    loss: LossOfBatch = "cross-entropy",
    clip: float | None = None,
    divisor: float | None = None,
    budget: float = 0.1,
    path: Path | str | None = None,
) -> RunWatcher:
    """Watch a training from now on; `dn.examine(run, claimed=...)` judges it when it has ended.

    Args:
        model: What is trained; with Opacus what `make_private` returned.
        optimizer: Likewise; a plain torch optimizer in a loop of one's own.
        loader: The `DataLoader` that the loop draws from: its batches are watched, its data set holds the records.
        loss: Of each example, by name or as a function (outputs, targets) -> losses.
        clip: The clipping norm. With Opacus it is known.
        divisor: By what the loop divides the noisy sum. With Opacus it is known.
        budget: The share of the run's time that the watcher may take: it recomputes as many steps as that allows, the
            first in any case; with 1 all of them.
        path: A file to which every examined step is added at once, as a line of JSON.

    What is kept are statistics; gradients and records are not.
    """
    private = hasattr(optimizer, "original_optimizer")
    if not private and (clip is None or divisor is None):
        raise ValueError("clip and divisor are missing: name the clipping norm and what the noisy sum is divided by")
    watcher = RunWatcher(model, optimizer, loader, clip=clip, divisor=divisor)
    watcher.loss, watcher.budget = loss, probability("budget", budget)
    watcher.path = None if path is None else Path(path)
    return watcher


class RunWatcher:
    """Records statistics of a run; see `watch_run`."""

    loss: LossOfBatch = "cross-entropy"
    budget: float = 0.1
    path: Path | None = None

    def __init__(
        self, model: nn.Module, optimizer: Any, loader: Any, *, clip: float | None, divisor: float | None
    ) -> None:
        self.model, self._clip, self._divisor = model, clip, divisor
        self._private = optimizer if hasattr(optimizer, "original_optimizer") else None
        moved = optimizer if self._private is None else optimizer.original_optimizer
        self._data, self._drawn = loader.dataset, drawn_batches(loader)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._weights = WatchedWeights(self._parameters, moved)
        self._steps: list[ExaminedStep] = []
        self._residuals: list[Tensor] = []
        self._cosines: list[float] = []
        self._batches: list[int] = []
        self._divisors: list[float] = []
        self._draws = np.zeros(len(self._data), dtype=np.int64)
        self._started, self._own, self._longest = perf_counter(), 0.0, 0.0
        self._refusal = ""
        self._hook = moved.register_step_pre_hook(lambda *_: self._watch_step())
        if (begun := NEW_WATCHERS.get()) is not None:
            begun.append(self)

    def _watch_step(self) -> None:
        started = perf_counter()
        batch = self._next_batch()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._parameters]
        self._batches.append(len(batch))
        np.add.at(self._draws, np.asarray(batch, dtype=np.int64), 1)
        self._divisors.append(self._divisor_now())
        self._weights.before_step(gradients)
        if self._may_examine(started):
            self._examine(batch, gradients)
            self._longest = max(self._longest, perf_counter() - started)
        self._own += perf_counter() - started

    def _may_examine(self, now: float) -> bool:
        """The first step, then whenever another look fits into the budget; all of them with a budget of 1."""
        if self._refusal:
            return False
        return not self._steps or self.budget == 1 or self._own + self._longest <= self.budget * (now - self._started)

    def _next_batch(self) -> Sequence[int]:
        if self._private is not None:
            return next_batch(self._drawn, self._private)
        if not self._drawn:
            raise ValueError(
                "loader must be the one that the loop draws from: a step was taken without a batch from it"
            )
        return self._drawn.popleft()

    def _divisor_now(self) -> float:
        if self._private is None:
            return positive("divisor", self._divisor or 1.0)
        stepping = self._private
        scaled = stepping.loss_reduction == "mean"
        return float(stepping.expected_batch_size * stepping.accumulated_iterations) if scaled else 1.0

    def _clip_now(self) -> float | None:
        norm = self._clip if self._private is None else self._private.max_grad_norm
        return None if norm is None or isinstance(norm, list | tuple) else float(norm)

    def _examine(self, batch: Sequence[int], gradients: list[Tensor]) -> None:
        chance, clip = uses_chance(self.model), self._clip_now()
        if chance or clip is None:
            self._refusal = f"{chance} makes gradients that cannot be recomputed" if chance else "clipping is per layer"
            return
        sums = recompute_sums(self.model, [self._data[int(i)] for i in batch], self.loss, clip)
        divisor = self._divisors[-1]
        residual = [g * divisor - clean for g, clean in zip(gradients, sums.clean, strict=True)]
        cut = [whole - clean for whole, clean in zip(sums.whole, sums.clean, strict=True)]
        found = ExaminedStep(
            number=len(self._batches) - 1,
            batch=len(batch),
            residual=tuple(_inner([r], [r]) for r in residual),
            sizes=tuple(r.numel() for r in residual),
            clean=_inner(sums.clean, sums.clean),
            cut=_inner(cut, cut),
            residual_clean=_inner(residual, sums.clean),
            residual_cut=_inner(residual, cut),
            clean_cut=_inner(sums.clean, cut),
            clip=clip,
            longest=sums.longest,
        )
        self._steps.append(found)
        self._compare_noise(found, *(self._weights.take(part) for part in (residual, sums.clean, cut)))
        if self.path is not None:
            append_line(self.path, found)

    def _compare_noise(self, found: ExaminedStep, residual: Tensor, clean: Tensor, cut: Tensor) -> None:
        """With all earlier noise, on the watched weights: what is used again has a cosine of one.

        Noise is the residual without its parts along the clean sum and what is cut, which may be common to all steps.
        """
        factors = known_factors(found)
        noise = residual - factors[0] * clean - factors[1] * cut
        unit = noise / noise.norm().clamp(min=1e-30)
        if self._residuals:
            cosines = torch.stack(self._residuals) @ unit
            self._cosines.append(float(cosines[cosines.abs().argmax()]))
        self._residuals.append(unit)

    def record(self) -> RunRecord:
        """End the watch: all that is known of the run, with the weights as they are now for the final ones."""
        if not self._batches:
            raise ValueError(
                "no step was watched: call watch_run before the training, with the optimizer that it steps"
            )
        self._hook.remove()
        off = self._weights.compare()
        moves = list(self._weights.departures)
        return RunRecord(
            records=len(self._data),
            weights=sum(p.numel() for p in self._parameters),
            batches=tuple(self._batches),
            draws=tuple(self._draws.tolist()),
            divisors=tuple(self._divisors),
            steps=tuple(self._steps),
            cosines=tuple(self._cosines),
            watched_weights=len(self._weights),
            moves=tuple(moves[:-1]),
            final_move=moves[-1] if off is not None else None,
            final_along_gradient=self._along_gradient(off, moves[-1]) if off is not None else None,
            not_recomputed=self._refusal,
            seconds=perf_counter() - self._started,
            watcher_seconds=self._own,
        )

    def _along_gradient(self, off: Tensor, departure: float) -> float | None:
        """The cosine between an unexplained last move and minus the gradient of the records."""
        if departure < UNEXPLAINED_MOVE or self._refusal:
            return None
        some = np.random.default_rng().choice(len(self._data), min(_COMPARED_RECORDS, len(self._data)), replace=False)
        gradient = self._weights.take(mean_gradient(self.model, [self._data[int(i)] for i in some], self.loss))
        return float(-(off @ gradient) / (off.norm() * gradient.norm()).clamp(min=1e-30))


def _inner(left: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    return float(sum((a.double() * b.double()).sum() for a, b in zip(left, right, strict=True)))
