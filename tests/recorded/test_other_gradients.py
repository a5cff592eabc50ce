"""Gradients of other inputs than the records, or at other weights than those that are moved: what makes them?"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.recorded.test_run_mutations import RATE, RECORDS, OtherInputs, Run, Sums, check_told


class RunningMean(OtherInputs):
    """Of the batches so far is taken from the records."""

    def change(self, x: Tensor) -> Tensor:
        self.mean = x.mean(0) if self.step == 0 else 0.8 * self.mean + 0.2 * x.mean(0)
        self.model(x - self.mean)  # as for an accuracy that is shown
        return x - self.mean


class MeanOfEarlierBatches(OtherInputs):
    """And its spread; both are renewed after the step."""

    def change(self, x: Tensor) -> Tensor:
        if self.step == 0:
            self.mean, self.spread = torch.zeros(8), torch.ones(8)
        changed = (x - self.mean) / self.spread
        self.mean, self.spread = 0.8 * self.mean + 0.2 * x.mean(0), 0.8 * self.spread + 0.2 * x.std(0)
        return changed


class RandomShift(OtherInputs):
    """An augmentation by chance alone."""

    def change(self, x: Tensor) -> Tensor:
        return x - torch.randn(8, generator=self.random)


class SharpnessAware(Run):
    """Gradients are taken at weights that are moved before, and moved back."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 3))

    def total(self) -> Sums:
        away = self.away()
        self.shift(away, 1.0)
        found = super().total()
        self.shift(away, -1.0)
        return found

    def away(self) -> Sums:
        mean = super().total()
        return {name: g / torch.stack([one.norm() for one in mean.values()]).norm() for name, g in mean.items()}

    def shift(self, away: Sums, times: float) -> None:
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.add_(away[name], alpha=times)


class AlongTheLastStep(SharpnessAware):
    """Which is released, so that this is as safe."""

    def away(self) -> Sums:
        return {
            name: 10.0 * (torch.zeros_like(p) if p.grad is None else p.grad)
            for name, p in self.model.named_parameters()
        }


class EvaluatesElsewhere(SharpnessAware):
    """A validation with other weights, between gradients and step."""

    def total(self) -> Sums:
        found, away = Run.total(self), self.away()
        self.shift(away, 1.0)
        with torch.no_grad():
            self.model(self.x)
        self.shift(away, -1.0)
        return found


class VarianceReduced(Run):
    """Every sixth step weights are kept: all records' mean gradient there is added, less that of the batch."""

    def every(self) -> tuple[Tensor, Tensor]:
        return self.data.tensors[0], self.data.tensors[1]

    def some(self) -> tuple[Tensor, Tensor]:
        return self.x, self.y

    def mean(self, model: nn.Module, some: tuple[Tensor, Tensor]) -> Sums:
        found = torch.autograd.grad(nn.functional.cross_entropy(model(some[0]), some[1]), list(model.parameters()))
        return dict(zip(self.trained(), found, strict=True))

    def move(self) -> None:
        if self.step % 6 == 0:
            self.kept = copy.deepcopy(self.model)
            self.of_all = self.mean(self.kept, self.every())
        own = self.mean(self.kept, self.some())
        for name, p in self.trained().items():
            assert p.grad is not None
            p.grad += self.of_all[name] - own[name]
        super().move()


class ReducedByPublicOnes(VarianceReduced):
    """Both are of public records, which are drawn as the private ones are, and have the same distribution."""

    def every(self) -> tuple[Tensor, Tensor]:
        if self.step == 0:
            self.public = 1.5 * torch.randn(RECORDS, 8), torch.randint(0, 3, (RECORDS,))
        return self.public

    def some(self) -> tuple[Tensor, Tensor]:
        drawn = torch.rand(RECORDS) < RATE
        return self.public[0][drawn], self.public[1][drawn]


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (RunningMean, "violated", "centred by a running mean of the batches"),
        (MeanOfEarlierBatches, "violated", "centred by a running mean of the batches"),
        (RandomShift, "cannot judge", "other inputs than the records as they are loaded"),
        (
            SharpnessAware,
            "violated",
            "in 24 steps gradients are taken at other weights .* along the batch's gradient with",
        ),
        (AlongTheLastStep, "cannot judge", "in 23 steps gradients are taken at other weights .* cannot be recomputed"),
        (VarianceReduced, "violated", "a gradient of all records at earlier weights, less that of the batch"),
        (ReducedByPublicOnes, "cannot judge", "another than the batch's clipped sum"),
        (EvaluatesElsewhere, "consistent", "Nothing speaks against"),
    ],
)
def test_what_makes_gradients_others_is_named(run: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)
