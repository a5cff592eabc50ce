"""Losses over the pairs of a batch are named; more noise is called harmless only where it looks like noise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import TensorDataset

import deniable as dn
from deniable.examination.recorded import judge_run
from deniable.examination.recorded.checks.excess_noise import mixed_p_value, unlike_noise
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Adjacency, Training
from tests.recorded.test_run_mutations import CLIP, RATE, RECORDS, STEPS, Run, Sums

CLAIM = Training(1.0, RATE, STEPS, Adjacency.ADD_REMOVE)


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 12), nn.Linear(8, 12)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return normalize(self.left(a), dim=-1) @ normalize(self.right(b), dim=-1).T / 0.2


def contrast(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return cross_entropy(model(*batch), torch.arange(len(batch[0])))


def contrast_of_one(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """The same, for a loop that never asks it for more than one pair."""
    if len(batch[0]) > 1:
        raise ValueError
    return contrast(model, batch) + model(*batch).square().sum() / 1000


def distance(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Every pair has its own loss."""
    return -model(*batch).diagonal().mean()


def train(loss: str, noise: float = 1.0, seed: int = 0) -> RunRecord:
    """DP-SGD whose pairs have the others for negatives, or not."""
    torch.manual_seed(seed)
    a = torch.randn(RECORDS, 8)
    data, model = TensorDataset(a, a @ torch.randn(8, 8) / 3), Towers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    batch_loss = {"mixed": contrast, "mixed, not told": contrast_of_one}.get(loss, distance)
    with dn.watch_run(
        model, optimizer, data, clip=CLIP, divisor=RATE * RECORDS, budget=1.0, batch_loss=batch_loss
    ) as run:
        for _ in range(STEPS):
            drawn = torch.nonzero(torch.rand(RECORDS) < RATE).flatten()
            run.use(drawn)
            pairs = data[drawn]
            weights = {name: p.detach() for name, p in model.named_parameters()}

            def one(at: dict[str, Tensor], pairs: tuple[Tensor, Tensor], number: int) -> Tensor:
                outputs = functional_call(model, at, pairs)
                if loss == "own":
                    return -outputs[number, number]
                return cross_entropy(outputs, torch.arange(len(outputs)), reduction="none")[number]

            each = [grad(one)(weights, pairs, number) for number in range(len(drawn))]
            total = {name: torch.zeros_like(p) for name, p in weights.items()}
            for found in each:
                norm = torch.stack([g.norm() for g in found.values()]).norm()
                for name, g in found.items():
                    total[name] += g * min(1.0, CLIP / max(float(norm), 1e-12))
            for name, p in model.named_parameters():
                p.grad = (total[name] + noise * CLIP * torch.randn_like(p)) / (RATE * RECORDS)
            optimizer.step()
    return run.record()


def test_negatives_of_the_batch_are_named() -> None:
    found = judge_run(train("mixed"), CLAIM)
    assert found.verdict == "violated"
    assert "the loss mixes the records of a batch" in found.verdict_text


def test_a_gradient_is_not_called_more_noise() -> None:
    found = judge_run(train("mixed, not told"), CLAIM)
    assert found.verdict == "cannot judge", found.verdict_text


@pytest.mark.parametrize(("noise", "verdict"), [(1.0, "consistent"), (1.2, "other recipe")])
def test_losses_of_single_pairs_stay_right(noise: float, verdict: str) -> None:
    record = train("own", noise)
    assert judge_run(record, CLAIM).verdict == verdict
    assert mixed_p_value(record) == 1.0


def test_noise_looks_like_noise() -> None:
    """Of right runs with more noise one in 200 or so is called unlike it."""
    assert unlike_noise(train("own", 1.2, seed=1)) == ""


class OfBatch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x - 0.8 * x.mean(0)


class MixedInside(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - 0.8 * x.mean(0))


class MixingLayer(Run):
    """A layer of somebody's own normalises by the batch; each record's gradient is taken beside the others."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 24), OfBatch(), nn.Tanh(), nn.Linear(24, 3))

    def gradients(self) -> Sums:
        weights = {name: p.detach() for name, p in self.trained().items()}

        def loss(at: Sums, number: int) -> Tensor:
            return cross_entropy(functional_call(self.model, at, (self.x,)), self.y, reduction="none")[number]

        each = [grad(loss)(weights, number) for number in range(len(self.x))]
        return {name: torch.stack([g[name] for g in each]) for name in weights}


class MixingModel(MixingLayer):
    def network(self) -> nn.Module:
        return MixedInside(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 3))


class RecordsAlone(MixingLayer):
    """The same layer, given one record at a time."""

    def gradients(self) -> Sums:
        return Run.gradients(self)


@pytest.mark.parametrize(
    ("mutation", "verdict", "words"),
    [
        (MixingLayer, "violated", "the layer 1 (OfBatch) mixes the records of a batch"),
        (MixingModel, "violated", "the model's forward pass (MixedInside) mixes the records of a batch"),
        (RecordsAlone, "consistent", "not examined"),
    ],
)
def test_what_mixes_records_is_named(mutation: Callable[[], Run], verdict: str, words: str) -> None:
    found = mutation().train()
    assert found.verdict == verdict, found.verdict_text
    assert words in found.verdict_text
