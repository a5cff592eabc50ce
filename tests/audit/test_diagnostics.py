"""How often the diagnostics accuse a training that is as claimed: no more often than they say, all together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pytest
import torch
from torch import nn

from deniable import Adjacency, Gaussian
from deniable.examination import AppliedStep, Records, trial_plan
from deniable.examination import examination_game as room
from deniable.examination.alternatives import VECTORS
from deniable.examination.claim import RecipeTraining
from deniable.examination.diagnostics import Report
from deniable.examination.diagnostics.shape import _p_of_wave
from deniable.examination.twins.twins import Twins
from deniable.training import Neighbours
from deniable.training.networks.losses import loss_function

STEPS, SIGMA, TRIALS, AUDITS, RATE_OF_ALARMS = 3, 2.0, 8, 50, 0.2


def tiny() -> nn.Module:
    return nn.Linear(6, 3)


@dataclass(frozen=True)
class Right:
    """DP-SGD for one dense layer, as claimed."""

    rate: float

    def __call__(self, records: Records, seed: int) -> Iterator[AppliedStep]:
        generator, (x, y) = torch.Generator().manual_seed(seed), records
        weights = torch.randn(21, generator=generator)
        for _ in range(STEPS):
            drawn = torch.rand(len(x), generator=generator) < self.rate
            outer = torch.softmax(x @ weights[:18].view(3, 6).T + weights[18:], 1) - nn.functional.one_hot(y, 3)
            each = torch.cat([(outer[:, :, None] * x[:, None, :]).flatten(1), outer], 1)
            clipped = each * (1 / each.norm(dim=1, keepdim=True)).clamp(max=1.0)
            noisy = clipped[drawn].sum(0) + SIGMA * torch.randn(21, generator=generator)
            yield AppliedStep(weights, noisy, 1.0, drawn.nonzero().flatten() if self.rate < 1 else None)
            weights = weights - 0.1 * noisy


def game(rate: float, seed: int) -> room.Examination:
    generator = np.random.default_rng(0)
    neighbours = Neighbours.of(generator.random((16, 6)), generator.integers(0, 3, 16), 3)
    mechanism = (Gaussian(SIGMA) if rate == 1 else Gaussian(SIGMA).subsampled(rate)).composed(STEPS)
    claim = RecipeTraining.from_mechanism(mechanism, 1.0, Adjacency.ADD_REMOVE)
    return room.Examination(Right(rate), claim, tiny, loss_function("cross-entropy"), neighbours, TRIALS, seed)


def report(rate: float, seed: int, twins: Twins) -> Report:
    played = game(rate, seed)
    trials = [room.play_trial(played, number) for number in range(TRIALS)]
    return trial_plan.diagnose_trials(played, trials, RATE_OF_ALARMS, twins=twins)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_false_alarms_of_all_diagnostics_together(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations are looked for only after an alarm, so they are left out here.

    Twins tell exactly or not at all, so that ten audits share theirs; every audit has trials of its own.
    """
    monkeypatch.setattr(room, "LOOKED_AT", 0)
    twins = [room.twins_of(game(rate, AUDITS + number)) for number in range(AUDITS // 10)]
    alarms = np.mean([bool(report(rate, seed, twins[seed // 10]).findings) for seed in range(AUDITS)])
    assert alarms <= RATE_OF_ALARMS + 3 * sqrt(RATE_OF_ALARMS * (1 - RATE_OF_ALARMS) / AUDITS)


def test_twins_differ_by_the_same_products_with_and_without_other_explanations() -> None:
    twins = room.twins_of(game(1.0, 0))
    both = [VECTORS.index(name) for name in ("applied", "clean")]
    assert twins.fits
    assert twins.exact is not None
    assert twins.differences == pytest.approx(twins.exact[np.ix_(both, both)], rel=1e-9)


def test_the_wave_is_as_rare_as_it_says_and_sees_sums_of_uniform_numbers() -> None:
    random = np.random.default_rng(7)
    right = np.array([_p_of_wave(0.7 * random.normal(size=2000)) for _ in range(2000)])
    assert (right < 0.01).sum() <= 36  # of 20: more has probability .05 %
    assert (right < 0.1).sum() <= 245  # of 200
    three = [_p_of_wave(2 * (random.random((3, 2000)) - 0.5).sum(0)) for _ in range(50)]
    assert sum(p < 0.004 for p in three) >= 40
