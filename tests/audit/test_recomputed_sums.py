"""Gradients that are all held at once give the sums that chunks of them give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import nn

import deniable as dn
from deniable.examination import AppliedStep
from deniable.examination import recomputation as room
from deniable.examination.claim import RecipeTraining
from deniable.examination.recomputation import RecomputedSteps, Recomputer
from deniable.examination.trainer import watch_steps
from deniable.training.networks.losses import loss_function
from deniable.training.settings import Columns


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.GELU(), nn.Flatten(), nn.Linear(64, 3))


def dense() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.Tanh(), nn.Linear(5, 3))


def recompute(network: Callable[[], nn.Module] = network) -> RecomputedSteps:
    generator = torch.Generator().manual_seed(3)
    records = torch.randn(9, 1, 6, 6, generator=generator)
    torch.manual_seed(0)
    model = network()
    claim = RecipeTraining.from_mechanism(dn.Gaussian(2.0).subsampled(0.5).composed(3), 1.5, "add-remove")
    recomputer = Recomputer(
        claim, network().eval(), loss_function("cross-entropy"), Columns(records, torch.arange(9) % 3, 1)
    )
    steps = []
    for batch in ([0, 2, 5], [], [1, 2, 3, 4, 8]):
        steps.append(
            AppliedStep(model, [torch.randn(p.shape, generator=generator) for p in model.parameters()], 4.0, batch)
        )
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.3 * torch.randn(p.shape, generator=generator))
    with torch.no_grad():
        return recomputer.recompute(watch_steps(steps, recomputer.parameters), np.arange(9))


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    held = recompute()
    monkeypatch.setattr(room, "COPIES", 2**40)
    monkeypatch.setattr(room, "OUTSIDE_SHARE", 100)
    in_chunks = recompute()
    for field in fields(RecomputedSteps):
        one, two = getattr(held, field.name), getattr(in_chunks, field.name)
        assert one.dtype == two.dtype, field.name
        torch.testing.assert_close(one, two, rtol=2e-4, atol=2e-5, msg=field.name)


@pytest.mark.parametrize("watched", [room.WATCHED, 1])
def test_known_layers_have_the_sums_of_single_records(monkeypatch: pytest.MonkeyPatch, watched: int) -> None:
    monkeypatch.setattr(room, "WATCHED", watched)
    fast = recompute(dense)
    monkeypatch.setattr(Recomputer, "_is_generic", lambda *_: True)
    single = recompute(dense)
    assert fast.onto.shape[1] == (9 if watched > 1 else 1)
    for field in fields(RecomputedSteps):
        one, two = getattr(fast, field.name), getattr(single, field.name)
        torch.testing.assert_close(one, two, rtol=2e-4, atol=2e-5, check_dtype=False, msg=field.name)


def test_of_large_models_a_few_records_outside_the_batch_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    held = recompute()
    monkeypatch.setattr(room, "COPIES", 2**40)
    monkeypatch.setattr(room, "OUTSIDE_SHARE", 0.25)
    few = recompute()
    for name in ("residual", "clean", "whole", "gram"):
        torch.testing.assert_close(getattr(held, name), getattr(few, name), rtol=2e-4, atol=2e-5)
    computed = few.norms > 0
    torch.testing.assert_close(held.norms[computed], few.norms[computed], rtol=2e-4, atol=2e-5)
    torch.testing.assert_close(held.onto[computed], few.onto[computed], rtol=2e-4, atol=2e-5)
    assert bool(computed[few.include > 0].all())
    outside = (computed & (few.include == 0))[:, :-1].sum(1)  # the last one differs between D and D'
    assert outside.tolist() == [1, 1, 2]
    clipped = held.norms.clamp(max=1.5)[computed & (few.include == 0)]
    assert float((few.everybody - few.clean).norm(dim=1).max()) <= float(clipped.sum())
