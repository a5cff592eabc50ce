"""Records that are clipped together, a few at a time: the number of them is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.recorded.test_run_mutations import CLIP, RATE, RECORDS, Run, Sums, check_told


class Grouped(Run):
    """Of `size` records in turn the gradients are added up, or averaged, and clipped."""

    size, averages = 5, False

    def network(self) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))

    def total(self) -> Sums:
        each = self.gradients()
        starts = range(0, len(self.x), self.size)
        groups = [{name: self.put_together(g[at : at + self.size]) for name, g in each.items()} for at in starts]
        norms = [torch.stack([g.norm() for g in group.values()]).norm() for group in groups]
        scales = [float((CLIP / norm).clamp(max=1)) for norm in norms]
        return {name: sum(s * group[name] for s, group in zip(scales, groups, strict=True)) for name in each}  # type: ignore[misc]

    def put_together(self, some: torch.Tensor) -> torch.Tensor:
        return some.mean(0) if self.averages else some.sum(0)


class Pairs(Grouped):
    size = 2


class Averages(Grouped):
    size, averages = 3, True


class OneByOne(Grouped):
    size = 1


class MeanOfMeans(Run):
    """Clipped gradients are averaged in chunks of 7, and those averages over the chunks; the noise is as claimed."""

    chunk = 7

    def total(self) -> Sums:
        batch, means = (self.x, self.y), list[Sums]()
        for at in range(0, len(batch[0]), self.chunk):
            self.x, self.y = (part[at : at + self.chunk] for part in batch)
            means.append({name: g / len(self.x) for name, g in super().total().items()})
        self.x, self.y = batch
        return {name: RATE * RECORDS * torch.stack([one[name] for one in means]).mean(0) for name in means[0]}


class NotCleared(Run):
    """The sum begins anew only after a batch of many records."""

    def total(self) -> Sums:
        now = super().total()
        if self.step and len(self.x) < 33:
            now = {name: g + self.summed[name] for name, g in now.items()}
        self.summed = now
        return now


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (Grouped, "violated", r"gradients of 5 records at a time \(microbatches\) are clipped as one"),
        (Pairs, "violated", r"gradients of 2 records at a time \(microbatches\) are clipped as one"),
        (Averages, "violated", r"gradients of 3 records at a time \(microbatches\) are clipped as one"),
        (MeanOfMeans, "violated", r"averaged in chunks of 7 \(physical batches\), and those averages again"),
        (
            NotCleared,
            "violated",
            r"clipped sums of earlier steps are still in \d+ of 24 steps",
        ),
        (OneByOne, "consistent", "Nothing speaks against"),
    ],
)
def test_how_many_records_are_clipped_together(run: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)
