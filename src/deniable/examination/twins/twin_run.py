"""One training of a pair of twins: what it showed, who was drawn, and when two of them are the same."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from deniable.examination.alternatives import STEPS, vectors
from deniable.examination.noise_draws import NoiseDraws
from deniable.examination.recomputation import Recomputer, flat
from deniable.examination.step_listeners import HandedGradients
from deniable.examination.trainer import WatchedTraining

FAILS = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)
"""What a training may raise on records that it was not made for."""
LARGE_TIMES, HUGE_TIMES = 20.0, 1000.0
"""Records with features so many times as large have a share that clipping bounds, and one that nothing else does."""
TRIED = 8
"""So many records are shown to a model, for whether it takes larger ones."""
SAME = 1e-6
"""float32 numbers that differ by this share are the same."""


@dataclass(frozen=True)
class Run:
    """One training, and what recomputes it."""

    seen: WatchedTraining
    recomputer: Recomputer
    members: NDArray[np.int64]

    @cached_property
    def sums(self) -> Tensor:
        """(steps, weights) noisy sums."""
        return flat(self.seen.sums).double()

    @cached_property
    def shares(self) -> Tensor:
        """(first steps, columns, weights) of each record of the batch in the claimed sum."""
        found, steps = self.recomputer.recompute(self.seen, self.members), min(STEPS, len(self.seen))
        layers = [g.flatten(2) for g in self.recomputer.every([w[:steps] for w in self.seen.weights])]
        norms = torch.stack([g.norm(dim=2) for g in layers], 2)
        clipping = self.recomputer.claim.recipe.clipping
        factors = clipping.factors(norms, found.clip[:steps].float().unsqueeze(1)) * found.include[:steps].unsqueeze(2)
        return torch.cat([factors[..., i : i + 1] * g for i, g in enumerate(layers)], 2).double()

    @cached_property
    def vectors(self) -> Tensor:
        """(first steps, vectors, weights), see `deniable.examination.alternatives`."""
        found = self.recomputer.recompute(self.seen, self.members)
        return torch.cat(list(vectors(self.recomputer, self.seen, found, self.members)))

    @cached_property
    def as_claimed(self) -> Tensor:
        """(first steps, 2, weights) of `vectors` those that show whether the sums are as claimed: applied and clean."""
        found, steps = self.recomputer.recompute(self.seen, self.members), min(STEPS, len(self.seen))
        both = torch.stack([self.sums[:steps], found.clean[:steps].double()], 1)
        return both / found.sigma[:steps, None, None].double()

    @cached_property
    def most_times(self) -> float:
        """So many times as large features are still taken by the model: once, where they are the numbers of words."""
        records, _, _ = self.recomputer.columns
        largest = records[records.flatten(1).abs().amax(1).topk(min(TRIED, len(records))).indices]
        first = dict(zip(self.recomputer.parameters, (w[0] for w in self.seen.weights), strict=True))
        for times in (HUGE_TIMES, LARGE_TIMES):
            with suppress(*FAILS), torch.no_grad():
                functional_call(self.recomputer.model, first, (largest * times,))
                return times
        return 1.0


StandIn = tuple[Tensor, Tensor]
"""A record and its label, in place of those of the data set."""


class Train(Protocol):
    """Trains a twin."""

    def __call__(
        self,
        seed: int,
        on_d: bool,
        exchanged: Mapping[int, StandIn],
        at_most: int | None,
        *,
        after: int = 0,
        handed: HandedGradients | None = None,
        draws: NoiseDraws | None = None,
    ) -> Run:
        """On D or D' with stand-ins at some places, `at_most` so many steps; exchanged `after` so many of them.

        With `handed`, its steps are kept there, or their gradients taken from there; with `draws`, its noise is.
        """


def stand_in(run: Run, column: int, times: float = 1.0) -> StandIn:
    """The record of a column, with features so many times as large, or as many as the model takes."""
    return run.recomputer.columns.records[column] * min(times, run.most_times), run.recomputer.columns.labels[column]


def undrawn_places(run: Run) -> tuple[int, list[int]]:
    """The largest number of first steps that leave a record undrawn, and such records' places."""
    left = set(range(len(run.members)))
    for step in range(len(run.seen)):
        before, left = left, left - set(drawn_places(run, step))
        if not left:
            return step, sorted(before) if step else []
    return len(run.seen), sorted(left)


def final_row(run: Run) -> Tensor:
    """The final weights."""
    return torch.cat([weights.flatten() for weights in run.seen.final or []])


def drawn_places(run: Run, step: int) -> list[int]:
    batch = run.seen.batches[step]
    return list(range(len(run.members))) if batch is None else sorted({int(i) for i in batch})


def newly_drawn(run: Run, step: int = 0) -> list[int]:
    """The places of a batch that no step before has drawn."""
    before = {place for earlier in range(step) for place in drawn_places(run, earlier)}
    return [place for place in drawn_places(run, step) if place not in before]


def half_precision_error(run: Run) -> float:
    """The relative rounding of sums that are kept in half precision; 0 for full precision."""
    for kind in (torch.float16, torch.bfloat16):
        for values in ((run.sums[0] / run.seen.divisors[0]).float(), run.sums[0].float()):  # rounded last, or before
            if torch.allclose(values.to(kind).float(), values, rtol=1e-6, atol=0):
                return float(torch.finfo(kind).eps)
    return 0.0


def are_same(x: Tensor, y: Tensor, share: float = SAME) -> bool:
    """Whether two vectors differ by at most this share of their lengths."""
    return x.shape == y.shape and bool((x - y).norm() <= share * (x.norm() + y.norm()))


def same_weights(one: Run, two: Run, step: int = 0, share: float = SAME) -> bool:
    """Whether the weights before a step, counted from 0, are the same to this share of their length."""
    first, second = (flat([w[step : step + 1] for w in run.seen.weights]) for run in (one, two))
    return are_same(first, second, share)


def use_all_records(one: Run, two: Run) -> bool:
    return all(batch is None or len(batch) == len(run.members) for run in (one, two) for batch in run.seen.batches)
