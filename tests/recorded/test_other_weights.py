"""Weights that the watched optimizer does not hold: at rest they are no fault, where they move they may be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.recorded.test_run_mutations import RATE, RECORDS, Run, check_told


class HeadAlone(Run):
    """The optimizer holds the last layer; the first one could be trained, and is not."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 24))

    def trained(self) -> dict[str, nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if name.startswith("2.")}


class HeadWithoutNoise(HeadAlone):
    def noise(self) -> dict[str, torch.Tensor]:
        return {name: 0.0 * noise for name, noise in super().noise().items()}


class SecondOptimizer(HeadAlone):
    """An ordinary one trains the first layer."""

    second: Callable[..., torch.optim.Optimizer] = torch.optim.SGD

    def move(self) -> None:
        if self.step == 0:
            self.other = type(self).second(self.model[0].parameters(), lr=0.05)  # type: ignore[index]
        found = torch.autograd.grad(cross_entropy(self.model(self.x), self.y), list(self.model[0].parameters()))  # type: ignore[index]
        for p, g in zip(self.model[0].parameters(), found, strict=True):  # type: ignore[index]
            p.grad = self.made_of(g)
        super().move()
        self.other.step()

    def made_of(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class SecondAdam(SecondOptimizer):
    second = torch.optim.Adam


class SecondPrivate(SecondOptimizer):
    """Its noise is not looked at."""

    def made_of(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient + torch.randn_like(gradient) / (RATE * RECORDS)


class Sites(nn.Module):
    """A bias of its own for each of ten sites, which the last feature tells."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(8, 30)
        self.sites = nn.Parameter(torch.zeros(10, 30), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.shared(x) + self.sites[_site(x)]
        return found


def _site(x: torch.Tensor) -> torch.Tensor:
    return (x[:, -1].abs() * 5).long() % 10


class SitesByHand(Run):
    """Each moves against the mean gradient of its own records, not by an optimizer."""

    def network(self) -> nn.Module:
        return Sites()

    def trained(self) -> dict[str, nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def move(self) -> None:
        super().move()
        with torch.no_grad():
            wrong = self.model(self.x).softmax(1) - nn.functional.one_hot(self.y, 30)
            for site in _site(self.x).unique():
                self.model.sites[site] -= 0.3 * wrong[_site(self.x) == site].mean(0) + self.more()  # type: ignore[operator, union-attr, index]

    def more(self) -> torch.Tensor:
        return torch.zeros(30)


class SitesWithNoise(SitesByHand):
    def more(self) -> torch.Tensor:
        return torch.randn(30)


class Target(nn.Module):
    """A model beside an average of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.online, self.target = (nn.Linear(8, 30) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.online(x)
        return found


class MovingAverage(Run):
    def network(self) -> nn.Module:
        return Target()

    def trained(self) -> dict[str, nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if name.startswith("online")}

    def move(self) -> None:
        super().move()
        with torch.no_grad():
            for mean, now in zip(self.model.target.parameters(), self.model.online.parameters(), strict=True):  # type: ignore[union-attr]
                mean.lerp_(now, 0.2)


class Unfrozen(HeadAlone):
    """All layers are trained from the sixth step on."""

    step = 0

    def trained(self) -> dict[str, nn.Parameter]:
        for p in self.model[0].parameters():  # type: ignore[index]
            p.requires_grad_(self.step > 5)
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def move(self) -> None:
        self.optimizer.param_groups[0]["params"] = list(self.trained().values())
        super().move()


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (HeadAlone, "consistent", "Nothing speaks against"),
        (HeadWithoutNoise, "violated", "there is no noise"),
        (SecondOptimizer, "violated", "0.weight, 0.bias move in 24 steps, though .* does not hold them, along the rec"),
        (SecondAdam, "violated", "0.weight, 0.bias move in 24 steps, though .* does not hold them, along the rec"),
        (
            SecondPrivate,
            "cannot judge",
            "0.weight, 0.bias move in 24 steps, though .*: if the records make these moves",
        ),
        (
            SitesByHand,
            "violated",
            "sites moves in 24 steps, .* along the records' gradient with at most 0.[0-9]+ x the cl",
        ),
        (SitesWithNoise, "cannot judge", "sites moves in 24 steps, though .*: if the records make these moves"),
        (MovingAverage, "consistent", "Nothing speaks against"),
        (Unfrozen, "cannot judge", "after 6 steps no more were recomputed: other weights are trained than at first"),
    ],
)
def test_weights_that_the_optimizer_does_not_hold(run: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)
