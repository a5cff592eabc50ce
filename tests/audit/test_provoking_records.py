"""Records that are made so that their gradients have chosen lengths: clipping is tried where faults may begin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import deniable as dn
from deniable.examination import AppliedStep
from deniable.examination.claim import RecipeTraining
from deniable.examination.recomputation import Recomputer
from deniable.examination.trainer import watch_steps
from deniable.examination.twins.provoking_records import LADDER_NORMS, NEAR, provoke
from deniable.examination.twins.twin_run import Run, stand_in
from deniable.training.networks.losses import loss_function
from deniable.training.settings import Columns


def convolutional() -> nn.Module:
    """Group normalisation undoes any stretching of a record."""
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


def dense() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 3))


class Words(nn.Module):
    """Features are the numbers of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.outer = nn.Embedding(30, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.words(x.long()).mean(1))


def first_step(make: Callable[[], nn.Module], records: Tensor) -> Run:
    torch.manual_seed(0)
    model, labels = make(), torch.arange(len(records)) % 3
    claim = RecipeTraining.from_mechanism(dn.Gaussian(1.0).composed(1), 1.0, "add-remove")
    recomputer = Recomputer(claim, make().eval(), loss_function("cross-entropy"), Columns(records, labels, 1))
    step = AppliedStep(list(model.parameters()), [torch.zeros_like(p) for p in model.parameters()])
    return Run(watch_steps([step], recomputer.parameters), recomputer, np.arange(len(records)))


def length_of_gradient(run: Run, record: Tensor, label: Tensor) -> float:
    model = run.recomputer.model
    with torch.no_grad():
        for p, w in zip(model.parameters(), run.seen.weights, strict=True):
            p.copy_(w[0])
    model.zero_grad()
    nn.functional.cross_entropy(model(record[None]), label[None]).backward()
    return float(torch.cat([p.grad.flatten() for p in model.parameters()]).norm())


@pytest.mark.parametrize("make", [convolutional, dense])
def test_gradients_of_every_length_are_made(make: Callable[[], nn.Module]) -> None:
    clip = 1.5
    run = first_step(make, torch.randn(12, 1, 6, 6, generator=torch.Generator().manual_seed(1)))
    with torch.no_grad():  # as the diagnostics run
        contents = provoke(run, clip).contents
    lengths = [length_of_gradient(run, *content) / clip for content in contents]
    for wanted, found in zip(LADDER_NORMS, lengths, strict=False):
        reached = wanted if wanted < max(lengths) * (1 - NEAR) else max(lengths)  # some models bound their gradients
        assert found == pytest.approx(reached, rel=1.2 * NEAR)
    assert {int(label) for _, label in contents[len(LADDER_NORMS) :]} == {0, 1, 2}


def test_records_that_hold_numbers_of_words_stay_such() -> None:
    run = first_step(Words, torch.randint(0, 30, (12, 6), generator=torch.Generator().manual_seed(1)).float())
    assert run.most_times == 1.0
    made = [*provoke(run, 1.0).contents, *provoke(run, 1.0).base.values(), stand_in(run, 3, 20.0)]
    assert all(bool((record == record.round()).all()) and record.max() < 30 for record, _ in made)
