"""Buffers are released with the weights: what changes them is told, and what makes no record visible stays right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from tests.recorded.test_run_mutations import RECORDS, Run, check_told


class Scale(nn.Module):
    """Features less a mean, which somebody else may change; with a count of steps as a float."""

    def __init__(self) -> None:
        super().__init__()
        self.mean: Tensor
        self.count: Tensor
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.mean


class ScaleInPass(Scale):
    """Every pass on a batch changes it."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 1:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().abs().mean(0).sqrt()
        return super().forward(x)


class Shares(nn.Module):
    """Added to the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: Tensor
        self.register_buffer("shares", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.shares.clamp(min=1e-3).log()


class WithBuffers(Run):
    def network(self) -> nn.Module:
        return nn.Sequential(self.scale(), nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))

    def scale(self) -> Scale:
        return Scale()

    def change(self, scale: Scale) -> None:
        scale.count += 1

    def gradients(self) -> dict[str, Tensor]:
        self.change(self.model[0])  # type: ignore[index, arg-type]
        return super().gradients()


class RunningMean(WithBuffers):
    def change(self, scale: Scale) -> None:
        scale.mean.lerp_(self.x.mean(0), 0.1)


class PassedMean(WithBuffers):
    def scale(self) -> Scale:
        return ScaleInPass()

    def change(self, scale: Scale) -> None:
        self.model(self.x)


class RunningLoss(WithBuffers):
    def change(self, scale: Scale) -> None:
        with torch.no_grad():
            scale.count.lerp_(nn.functional.cross_entropy(self.model(self.x), self.y), 0.1)


class MeanAfterSteps(WithBuffers):
    """Of a batch, once its step is taken."""

    def change(self, scale: Scale) -> None:
        pass

    def move(self) -> None:
        super().move()
        self.model[0].mean.lerp_(self.x.mean(0), 0.1)  # type: ignore[index, operator, union-attr]


class WithShares(Run):
    """Outputs have the logarithms of the shares of five classes added, which are public."""

    def network(self) -> nn.Module:
        self.data = TensorDataset(self.data.tensors[0], self.data.tensors[0].abs().argmax(1).clamp(max=4))
        found = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 5), Shares())
        self.fill(found[3].shares)  # type: ignore[arg-type]
        return found

    def fill(self, shares: Tensor) -> None:
        shares.copy_(torch.tensor([0.1, 0.1, 0.1, 0.2, 0.5]))


class SharesOfAll(WithShares):
    def fill(self, shares: Tensor) -> None:
        shares.copy_(torch.bincount(self.data.tensors[1]) / RECORDS)


class RunningShares(WithShares):
    """Of each batch's labels, once its step is taken."""

    def move(self) -> None:
        super().move()
        shares = torch.bincount(self.y, minlength=5) / len(self.y)
        self.model[3].shares.lerp_(shares, 0.1)  # type: ignore[index, operator, union-attr]


class MeanOfAll(WithBuffers):
    """Before the first step, and never after it."""

    def scale(self) -> Scale:
        found = Scale()
        found.mean.copy_(self.data.tensors[0].mean(0))
        return found

    def change(self, scale: Scale) -> None:
        pass


class NoisyMean(WithBuffers):
    """How much noise, and of what, is not known."""

    def change(self, scale: Scale) -> None:
        scale.mean.lerp_(self.x.mean(0) + torch.randn(8, generator=self.random), 0.1)


class Cooling(WithBuffers):
    """By a schedule, towards zero, as much else is zero: it cannot be told from what was not watched."""

    def change(self, scale: Scale) -> None:
        scale.mean.add_(1).mul_(0.99)
        scale.count.add_(1).mul_(0.99)


class AtTheEnd(WithBuffers):
    def end(self) -> None:
        self.model[0].mean.copy_(torch.randn(8, generator=self.random))  # type: ignore[index, operator, union-attr]


class Normed(Run):
    """Spectral norm keeps vectors of its power iteration."""

    def network(self) -> nn.Module:
        layer = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 24))
        return nn.Sequential(layer, nn.Tanh(), nn.Linear(24, 3)).eval()


class Recalibrated(Run):
    """After the last step the statistics of a normalisation, which was at rest, are computed anew of some records."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.Tanh(), nn.Linear(24, 3)).eval()

    def some(self) -> Tensor:
        return self.data.tensors[0]

    def momentum(self) -> float | None:
        return None

    def end(self) -> None:
        norm = self.model[1]  # type: ignore[index]
        norm.momentum = self.momentum()  # type: ignore[union-attr]
        norm.train()  # type: ignore[operator, union-attr]
        with torch.no_grad():
            for part in self.some().split(100):
                self.model(part)
        norm.eval()  # type: ignore[operator, union-attr]


class InPart(Recalibrated):
    """In one pass, which forgets what was before only in part."""

    def momentum(self) -> float | None:
        return 0.01


class OnOthers(Recalibrated):
    """Public ones, of the same distribution, far more."""

    def some(self) -> Tensor:
        return 1.5 * torch.randn(100 * RECORDS, 8, generator=self.random)


@pytest.mark.parametrize(
    ("mutation", "verdict", "words"),
    [
        (RunningMean, "violated", "the buffer 0.mean is made of the records of each batch"),
        (PassedMean, "violated", "the buffer 0.mean is made of the records of each batch"),
        (MeanAfterSteps, "violated", "the buffer 0.mean is made of the records of each batch"),
        (RunningShares, "violated", "the buffer 3.shares is made of the records of each batch"),
        (SharesOfAll, "violated", "the buffer 3.shares is a statistic of all records"),
        (WithShares, "consistent", "not examined"),
        (RunningLoss, "violated", "the buffer 0.count is made of the records of each batch"),
        (MeanOfAll, "violated", "the buffer 0.mean is a statistic of all records"),
        (NoisyMean, "cannot judge", "the buffer 0.mean changes in the steps by something that was not watched"),
        (Cooling, "cannot judge", "by something that was not watched"),
        (AtTheEnd, "cannot judge", "the buffer 0.mean changes after the last step"),
        (Recalibrated, "violated", "the buffer 1.running_mean .and 1 more. is a statistic of all records"),
        (InPart, "violated", "the buffer 1.running_mean .* is a statistic of all records"),
        (OnOthers, "cannot judge", "the buffer 1.running_mean .and 1 more. changes after the last step"),
        (WithBuffers, "consistent", "not examined"),
        (Normed, "consistent", "not examined"),
    ],
)
def test_buffers_are_watched(mutation: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(mutation(), verdict, words)


def test_a_watcher_leaves_buffers_as_they_are() -> None:
    """Passes of its own change none."""
    run = WithBuffers()
    assert run.train().verdict == "consistent"
    scale = run.model[0]  # type: ignore[index]
    assert float(scale.count) == run.steps  # type: ignore[arg-type, union-attr]
    assert len(run.data) == RECORDS
