"""Noise that has something in common with that of the step before, and runs without any noise: the cause is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from deniable.examination.recorded.noise.earlier_noise import EarlierNoise
from tests.recorded.test_run_mutations import Run, Sums, check_told


class WithEarlier(Run):
    """One share of fresh noise, and one of the noise of the step before as it was drawn."""

    shares = (1.0, 0.0)

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 60), nn.Tanh(), nn.Linear(60, 3))

    def noise(self) -> Sums:
        if self.step == 0:
            self.drawn = super().noise()
        before, self.drawn = self.drawn, super().noise()
        return {name: self.shares[0] * self.drawn[name] + self.shares[1] * before[name] for name in before}


class TakenBack(WithEarlier):
    shares = (0.5**0.5, -(0.5**0.5))


class Telescoping(WithEarlier):
    """Each step's own noise is the claimed one, and that of their sum is one step's."""

    shares = (1.0, -1.0)


class PartlyAgain(WithEarlier):
    shares = (0.8, 0.6)


class LessOfTheSumBefore(Run):
    """Half of what the step before applied is subtracted: that was released."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 60), nn.Tanh(), nn.Linear(60, 3))

    def move(self) -> None:
        for name, p in self.model.named_parameters():
            if self.step and p.grad is not None:
                p.grad -= 0.5 * self.before[name]
        self.before = {name: p.grad.clone() for name, p in self.model.named_parameters() if p.grad is not None}
        super().move()


class Ordinary(Run):
    """Neither clipping nor noise, beside a feature that is never there."""

    def network(self) -> nn.Module:
        self.data.tensors[0][:, 3] = 0.0
        return super().network()

    def factors(self, norms: torch.Tensor, _: str) -> torch.Tensor:
        return torch.ones_like(norms)

    def noise(self) -> Sums:
        return {name: torch.zeros_like(p) for name, p in self.model.named_parameters()}


class BareBiases(Run):
    def noise(self) -> Sums:
        return {name: noise * (noise.dim() > 1) for name, noise in super().noise().items()}


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (TakenBack, "violated", "0.(49|5|51) x the noise of the step before is taken back"),
        (Telescoping, "violated", "0.(49|5|51) x the noise of the step before is taken back"),
        (PartlyAgain, "violated", "0.(47|48|49) x the noise of the step before is in it again"),
        (LessOfTheSumBefore, "other recipe", "-0.(49|5|51) x the noisy sum of the step before is in it, which is"),
        (WithEarlier, "consistent", "Nothing speaks against"),
        (Ordinary, "violated", "gradients are not clipped.*; there is no noise "),
        (BareBiases, "violated", "no noise on 0.bias, 2.bias: add it"),
    ],
)
def test_what_the_noise_of_two_steps_has_in_common(run: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)


def test_what_rounding_leaves_of_bare_steps_is_no_noise_that_comes_again() -> None:
    """Beside noise that does."""
    random = torch.Generator().manual_seed(3)
    sums = [torch.randn(400, generator=random) for _ in range(4)]
    noise, odd = (torch.randn(400, generator=random) for _ in range(2))
    earlier = EarlierNoise(400)
    applied = [sums[0] + 1e-7 * odd, sums[1] - 1e-7 * odd, sums[2] + noise, sums[3] - noise]
    found = [earlier.cosine(np.zeros(2), [a], [c], [c]) for a, c in zip(applied, sums, strict=True)]
    assert found[:3] == [None, None, None]
    assert found[3] == pytest.approx(-1, abs=1e-6)
