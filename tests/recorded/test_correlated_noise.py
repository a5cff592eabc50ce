"""Noise that has something in common with that of the step before, and runs without any noise: the cause is named."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from deniable.examination.recorded import RunWatcher
from deniable.examination.recorded.judge_run import judge_run
from deniable.examination.recorded.noise.earlier_noise import EarlierNoise
from deniable.examination.recorded.noise.noise_series import NoiseSeries
from deniable.mechanisms import Adjacency, Training
from deniable.results.run_result import RunResult
from tests.recorded.test_run_mutations import RATE, STEPS, Run, Sums, check_told


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


class WeekLater(WithEarlier):
    """Four fifths of the noise of seven steps before are taken back."""

    def noise(self) -> Sums:
        fresh, past = Run.noise(self), getattr(self, "past", [])
        if self.step >= 7:
            fresh = {name: 0.6 * g - 0.8 * past[-7][name] for name, g in fresh.items()}
        self.past = [*past, fresh]
        return fresh


class MoreTakenBack(WithEarlier):
    """Beside fresh noise of the claimed size more, which the next step takes back, or has again."""

    again = -0.6

    def noise(self) -> Sums:
        fresh, more = Run.noise(self), Run.noise(self)
        before, self.more = getattr(self, "more", more), more
        return {name: g + 0.6 * more[name] + self.again * before[name] for name, g in fresh.items()}


class MoreAgain(MoreTakenBack):
    again = 0.6


class MoreInAllSteps(WithEarlier):
    """The same numbers in all steps, which may be noise, or made of the records."""

    def noise(self) -> Sums:
        self.more = getattr(self, "more", None) or Run.noise(self)
        return {name: g + 0.7 * self.more[name] for name, g in Run.noise(self).items()}


class Filtered(WithEarlier):
    """A moving average of noisy sums, as it is."""

    corrected, noise_alone = False, False

    def noise(self) -> Sums:
        noisy = {name: g + self.clean[name] * (not self.noise_alone) for name, g in Run.noise(self).items()}
        before = getattr(self, "average", {})
        self.average = {name: 0.6 * before.get(name, 0.0) + 0.4 * g for name, g in noisy.items()}
        weight = 1 - 0.6 ** (self.step + 1) if self.corrected else 1.0
        return {name: g / weight - self.clean[name] * (not self.noise_alone) for name, g in self.average.items()}


class FilteredFromTheFirst(Filtered):
    """The average is divided by the weights' sum, as Adam does."""

    corrected = True


class FilteredInPart(Filtered):
    """Later steps are not recomputed."""

    def judge(self, run: RunWatcher) -> RunResult:
        record = run.record()
        return judge_run(
            msgspec.structs.replace(record, steps=record.steps[:14]), Training(1.0, RATE, STEPS, Adjacency.ADD_REMOVE)
        )


class FilteredNoise(Filtered):
    """The noise is averaged, the clipped sums are not."""

    noise_alone = True


class InFewDirections(WithEarlier):
    """An eighth of all, the same ones in each step, with the claimed variance."""

    def noise(self) -> Sums:
        flat = parameters_to_vector(Run.noise(self).values())
        self.axes = getattr(self, "axes", torch.linalg.qr(torch.randn(len(flat), len(flat) // 8))[0])
        vector_to_parameters(8**0.5 * self.axes @ (self.axes.T @ flat), (found := Run.noise(self)).values())
        return found


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
        (WeekLater, "violated", "0.(79|8|81) x the noise of 7 steps before is taken back"),
        (
            MoreTakenBack,
            "other recipe",
            "0.2.? x the noise of the step before is taken back .*no sum of steps has less",
        ),
        (MoreAgain, "other recipe", "0.2.? x the noise of the step before is in it again .*no sum of steps has less"),
        (MoreInAllSteps, "cannot judge", "another than the batch.s clipped sum"),
        (Filtered, "other recipe", "0.(59|6|61) x the noisy .* beside 0.(4|39|41) x its own .*, which is as safe.$"),
        (FilteredFromTheFirst, "other recipe", "beside 0.4.? x its own .*, which is as safe.$"),
        (FilteredInPart, "other recipe", "beside 0.4.? x its own .*, which is as safe.$"),
        (InFewDirections, "violated", "as if it lay in about 1[0-5]% of all directions"),
        (FilteredNoise, "violated", "x the noise of the step before is in it again .*sums of steps show"),
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


def test_what_is_along_the_weights_is_no_noise() -> None:
    """Weights are released, and hold all earlier noise (weight decay)."""
    random = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(torch.randn(1000, generator=random))
    series = NoiseSeries([weights], [None])
    for step in range(12):
        series.note([torch.randn(1000, generator=random) - 3.0 * weights.detach()], 1.0, 1.0)
        series.compare(step, [torch.zeros(1000)], 1.0, 1.0)
    found = series.found()
    assert found is not None
    assert abs(found.correlation) < 0.1
