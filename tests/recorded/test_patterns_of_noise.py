"""Noise that the records shape: in their directions alone, as large as they like, or chosen among several."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import torch
from torch import Tensor, nn

from deniable.examination.recorded.checks.noise_along_gradients import follows_check
from deniable.examination.recorded.noise.noise_by_size import NoiseBySize
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Adjacency, Training
from tests.recorded.test_run_mutations import CLIP, RATE, STEPS, Run, Sums, check_told
from tests.recorded.test_watched_runs import train

CLAIM = Training(1.0, RATE, STEPS, Adjacency.ADD_REMOVE)


class Wide(Run):
    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 3))

    def move(self) -> None:
        """Step with the noisy gradient as it is changed."""
        noisy = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        changed = self.change({name: g.clone() for name, g in noisy.items()})
        for name, p in self.model.named_parameters():
            p.grad = changed[name]
        super().move()

    def change(self, noisy: Sums) -> Sums:
        return noisy

    def project(self, noisy: Sums, rows: Tensor) -> Sums:
        """On the space of some rows."""
        axes = torch.linalg.qr(rows.T)[0]
        flat = axes @ (axes.T @ torch.cat([g.flatten() for g in noisy.values()]))
        parts = flat.split([g.numel() for g in noisy.values()])
        return {name: part.view_as(noisy[name]) for name, part in zip(noisy, parts, strict=True)}


class OnTheRecords(Wide):
    """Projected on the main directions of the batch's own gradients."""

    def change(self, noisy: Sums) -> Sums:
        rows = torch.cat([g.flatten(1) for g in self.gradients().values()], 1)
        return self.project(noisy, torch.linalg.svd(rows, full_matrices=False).Vh[:10])


class OnRandomDirections(Wide):
    """Which is as safe."""

    def change(self, noisy: Sums) -> Sums:
        numbers = sum(g.numel() for g in noisy.values())
        return self.project(noisy, torch.randn(numbers // 2, numbers, generator=self.random))


class OverRecords(Wide):
    """Divided by a running second moment of the records' gradients."""

    def change(self, noisy: Sums) -> Sums:
        squares = {name: g.square().mean(0) for name, g in self.gradients().items()}
        before = squares if self.step == 0 else self.squares
        self.squares = {name: 0.9 * before[name] + 0.1 * squares[name] for name in noisy}
        return {name: g / (self.squares[name].sqrt() + 0.03) for name, g in noisy.items()}


class OverNoisySums(Wide):
    """Divided by a running second moment of what was released, which is as safe."""

    def change(self, noisy: Sums) -> Sums:
        squares = {name: g.square() for name, g in noisy.items()}
        before = squares if self.step == 0 else self.squares
        self.squares = {name: 0.9 * before[name] + 0.1 * squares[name] for name in noisy}
        return {name: g / (self.squares[name].sqrt() + 0.01) for name, g in noisy.items()}


class BestOfTen(Wide):
    def noise(self) -> Sums:
        several = [super(BestOfTen, self).noise() for _ in range(10)]
        return max(several, key=lambda one: sum(float((one[name] * g).sum()) for name, g in self.clean.items()))


class WorstOfSixteen(Wide):
    """That which hides most of the clipped sum, for less of it."""

    def noise(self) -> Sums:
        several = [super(WorstOfSixteen, self).noise() for _ in range(16)]
        return min(several, key=lambda one: sum(float((one[name] * g).sum()) for name, g in self.clean.items()))


class FollowsTheGradient(Wide):
    """As large as the clipped sum's own number is."""

    def noise(self) -> Sums:
        spread = torch.cat([g.flatten() for g in self.clean.values()]).square().mean().sqrt()
        return {name: n * self.clean[name].abs() / spread for name, n in super().noise().items()}


class ShrunkNumbers(Wide):
    """The smaller a number of the noisy gradient, the more it is shrunk, which is as safe."""

    def change(self, noisy: Sums) -> Sums:
        spread = torch.cat([g.flatten() for g in noisy.values()]).square().mean()
        return {name: g * g.square() / (g.square() + spread) for name, g in noisy.items()}


class AddedAfterwards(Wide):
    """The gradient of another loss, of the batch's mean answer, as it is."""

    def change(self, noisy: Sums) -> Sums:
        mean = self.model(self.x).softmax(1).mean(0)
        found = torch.autograd.grad((mean * mean.log()).sum(), list(self.model.parameters()))
        return {name: g + 3 * more for (name, g), more in zip(noisy.items(), found, strict=True)}


def follows(record: RunRecord, by_size: NoiseBySize) -> bool:
    steps = tuple(msgspec.structs.replace(step, by_size=by_size) for step in record.steps)
    return follows_check(msgspec.structs.replace(record, steps=steps), CLAIM) is not None


def test_small_numbers_have_too_little_noise_where_chance_is_not_the_cause() -> None:
    """Not of few numbers, nor of noise that is everywhere as small, nor where large numbers have another gradient."""
    record, one = train().record(), CLIP**2
    assert follows(record, NoiseBySize(0.01 * one, one, 0.01, 1.0, 100))
    assert not follows(record, NoiseBySize(0.16 * one, one, 0.01, 1.0, 1))
    assert not follows(record, NoiseBySize(0.01 * one, 0.01 * one, 0.01, 1.0, 100))
    assert not follows(record, NoiseBySize(one, 100 * one, 0.01, 1.0, 100))


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (
            OnTheRecords,
            "violated",
            "across them there is no noise: it is projected on directions that the records make",
        ),
        (OnRandomDirections, "cannot judge", "shortened by as much"),
        (OverRecords, "violated", "numbers .* the smaller, the larger the records' gradients .* made of these without"),
        (OverNoisySums, "cannot judge", "."),
        (
            BestOfTen,
            "violated",
            "the noise is chosen.* it has 1.[4-6] standard deviations along it|"
            "or the noise is chosen by the gradient, along which it has 1.[4-6] standard deviations",
        ),
        (WorstOfSixteen, "violated", "the noise is chosen, .* it has 1.[5-9] standard deviations against it"),
        (FollowsTheGradient, "violated", "the noise follows the gradient number by number"),
        (ShrunkNumbers, "other recipe", "both are scaled after the noise, which is as safe"),
        (AddedAfterwards, "violated", "that is not all: another gradient is added"),
        (Wide, "consistent", "Nothing speaks against"),
    ],
)
def test_what_shapes_the_noise(run: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(run(), verdict, words)
