"""A training that does not end on other records than its own: it is ended, and the examination goes on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

import deniable as dn
from deniable.examination import AppliedStep, Records, patience
from deniable.examination.claim import RecipeTraining
from deniable.examination.examination_game import Examination, alone_evidence, play_trial
from deniable.training import Neighbours
from deniable.training.networks.losses import loss_function

RECORDS, FEATURES = 12, 4


def net() -> nn.Module:
    return nn.Linear(FEATURES, 2)


def train(records: Records, seed: int) -> Iterator[AppliedStep]:
    """Draws again until its batch has two records, which a single record never does."""
    generator, model = torch.Generator().manual_seed(seed), net()
    for _ in range(2):
        drawn = (torch.rand(len(records.labels), generator=generator) < 0.5 for _ in count())
        batch = next(one for one in drawn if one.sum() >= 2).nonzero().flatten()
        yield AppliedStep(model, [torch.randn(p.shape, generator=generator) for p in model.parameters()], batch=batch)


def test_a_loop_that_never_ends_on_one_record_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LEAST_SECONDS", 0.5)
    neighbours = Neighbours.of(np.ones((RECORDS, FEATURES)), np.arange(RECORDS) % 2, 0)
    claim = RecipeTraining.from_mechanism(dn.Gaussian(1.0).subsampled(0.5).composed(2), 1.0, "add-remove")
    game = Examination(train, claim, net, loss_function("cross-entropy"), neighbours, 10, 5)
    play_trial(game, 0)
    game.patience.longest_seconds = 0.01  # loading modules took longer
    assert alone_evidence(game, 0.01) is None
    with pytest.raises(patience.EndlessTrainingError, match="did not end"), game.patience.wait():
        sum(1 for _ in count())


def test_a_training_that_ends_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking back an error that was never sent made Python 3.11 hang under debuggers, profilers and coverage."""
    monkeypatch.setattr(patience.ctypes.pythonapi, "PyThreadState_SetAsyncExc", pytest.fail)
    with patience.Patience(longest_seconds=0.01).wait():
        pass
