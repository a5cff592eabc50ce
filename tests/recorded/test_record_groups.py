"""Records that are clipped together, a few at a time: the number of them is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.recorded.test_run_mutations import CLIP, Run, Sums, check_told


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


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (Grouped, "violated", r"gradients of 5 records at a time \(microbatches\) are clipped as one"),
        (Pairs, "violated", r"gradients of 2 records at a time \(microbatches\) are clipped as one"),
        (Averages, "violated", r"gradients of 3 records at a time \(microbatches\) are clipped as one"),
        (OneByOne, "consistent", "Nothing speaks against"),
    ],
)
def test_how_many_records_are_clipped_together(run: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)
