"""Noise that varies with the step, that is heavy-tailed or of another norm; and loops that call backward()."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import deniable as dn
from deniable.examination import AppliedStep, Records, Released
from deniable.examination.diagnostics.noise_spread import equally_long
from deniable.results import AuditResult
from deniable.training import Neighbours

sys.path.insert(0, str(Path(__file__).parents[2]))
from hunt.recipes import CLASSES, CLIP, FEATURES, RECORDS, SIGMA, STEPS, Training, network


@dataclass(frozen=True)
class Scheduled(Training):
    """Noise of its own in every step."""

    noises: tuple[float, ...] = ()

    def noise(self, step: int, size: int, memory: Any, generator: torch.Generator) -> Tensor:
        return self.noises[step] * super().noise(step, size, memory, generator) / SIGMA


def examine(trainer: Any, claimed: dn.Mechanism, model: Any = network) -> AuditResult:
    generator = np.random.default_rng(0)
    records = 1.2 * generator.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    return dn.examine(
        Neighbours.of(records, generator.integers(0, CLASSES, RECORDS), 3), trainer=trainer, claimed=claimed, clip=CLIP,
        adjacency="add-remove", model=model, trials=12, seed=1, processes=1, delta=1e-3,
    )  # fmt: skip


HALF = STEPS // 2
FALLS = dn.compose(dn.Gaussian(2.0).composed(HALF), dn.Gaussian(1.0).composed(HALF))


@pytest.mark.parametrize(
    ("claimed", "first", "second", "verdict"),
    [
        (FALLS, 1.0, 2.0, "other recipe"),  # the claimed one, turned around
        (dn.Gaussian(1.0).composed(STEPS), 0.8, 1.6, "other recipe"),  # 1 / .8^2 + 1 / 1.6^2 < 2
        (dn.Gaussian(1.0).composed(STEPS), 0.8, 1.1, "violated"),  # 1 / .8^2 + 1 / 1.1^2 > 2
    ],
)
def test_a_schedule_is_judged_as_a_whole(claimed: dn.Mechanism, first: float, second: float, verdict: str) -> None:
    found = examine(Scheduled(noises=(first,) * HALF + (second,) * HALF), claimed)
    assert found.verdict == verdict
    if verdict == "other recipe":
        assert "claim this schedule" in found.diagnostics.cause


def unclipped(records: Records, seed: int) -> Iterator[AppliedStep]:
    """A plain loop whose gradients come from `backward()`, and are not clipped."""
    torch.manual_seed(seed)
    model = nn.Linear(FEATURES, CLASSES)
    for _ in range(3):
        model.zero_grad()
        nn.functional.cross_entropy(model(records.features), records.labels, reduction="sum").backward()
        for p in model.parameters():
            p.grad += torch.randn(p.shape)
        yield AppliedStep(model, model)
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(0.05 * p.grad)
    yield Released(model)


def test_a_loop_that_calls_backward_is_explained() -> None:
    """Its trials are played again for their cause, where the examination itself needs no gradients."""
    found = examine(unclipped, dn.Gaussian(1.0).composed(3), lambda: nn.Linear(FEATURES, CLASSES))
    assert found.verdict == "violated"
    assert "not clipped" in found.diagnostics.cause


def of_the_claimed_norm(records: Records, seed: int) -> Iterator[AppliedStep | Released]:
    """Clipped at 1.2, and told so, with noise for 1."""
    for step in Training(1.0, (("clipping", "a fifth more"),))(records, seed):
        own = isinstance(step, AppliedStep)
        yield AppliedStep(step.weights, step.gradient, step.divisor, None, 1.2 * CLIP) if own else step


def test_noise_of_the_claimed_norm_is_told_from_too_little_noise() -> None:
    found = examine(of_the_claimed_norm, dn.Gaussian(SIGMA).composed(STEPS))
    assert found.verdict == "violated"
    assert "that of the claimed clipping norm, 1, and gradients are clipped at 1.2" in found.diagnostics.cause


def test_a_few_large_numbers_do_not_make_noise_equally_long() -> None:
    drawn = np.random.default_rng(0).standard_t(6, (24, 8, 400)) * (4 / 6) ** 0.5
    raw = np.append(drawn.ravel()[:5000], 60.0)
    lengths = np.linalg.norm(drawn, axis=2, keepdims=True)
    for noise, equal in ((drawn, False), (20 * drawn / lengths, True)):
        trials = SimpleNamespace(squares=np.square(noise).sum(2, keepdims=True), fresh=np.zeros((24, 8, 2)), raw=raw)
        evidence: Any = SimpleNamespace(trials=trials, sizes=np.array([400]), level=1e-4)
        assert equally_long(evidence) == equal
