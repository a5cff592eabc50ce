"""Gradients of all records from one pass are those of each record by itself; what is not known is left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from deniable.training.networks.layer_gradients import LayerGradients
from deniable.training.networks.losses import cross_entropy


class Words(nn.Module):
    """An embedding, layer norms in the middle and at the end, and dense layers over all words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm, self.dense = nn.Embedding(7, 6), nn.LayerNorm(6), nn.Linear(6, 6)
        self.head = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.words((x[:, 0, 0] * 3).long() % 7)
        outputs: Tensor = self.head((inner + self.dense(self.norm(inner)).relu()).mean(1))
        return outputs


def images() -> nn.Module:
    strided = nn.Conv2d(4, 6, (3, 1), stride=(2, 1), padding=(1, 0), dilation=(1, 2), bias=False)
    rest = (nn.GroupNorm(3, 6), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(108, 3))
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(inplace=True), strided, *rest)


def frozen() -> nn.Module:
    model = images()
    model.get_parameter("0.weight").requires_grad_(False)
    return model


def tied() -> nn.Module:
    first, second = nn.Linear(36, 36), nn.Linear(36, 36)
    second.weight = first.weight
    return nn.Sequential(nn.Flatten(), first, second, nn.Linear(36, 3))


def used_twice() -> nn.Module:
    layer = nn.Linear(36, 36)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer, nn.Linear(36, 3))


def grouped() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, groups=2), nn.Flatten(), nn.Linear(16, 3))


class Mixing(nn.Module):
    """Takes from every record the mean of its batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


def mixing() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 8), Mixing(), nn.Linear(8, 3))


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def unknown() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 3), Scale())


def _given(make: Callable[[], nn.Module]) -> tuple[nn.Module, list[Tensor], Tensor, Tensor]:
    torch.manual_seed(4)
    model = make()
    return (
        model,
        [p.detach() for p in model.parameters() if p.requires_grad],
        torch.randn(5, 1, 6, 6),
        torch.arange(5) % 3,
    )


@pytest.mark.parametrize("make", [images, Words, frozen])
def test_naive_twin(make: Callable[[], nn.Module]) -> None:
    model, weights, records, labels = _given(make)
    found = LayerGradients.of(model, cross_entropy, weights, records, labels)
    assert found is not None
    for number in (5, 3):  # fewer records lie in the room of more
        together = [g.clone() for g in found(weights, records[:number], labels[:number])]
        for place in range(number):
            trained = [p for p in model.parameters() if p.requires_grad]
            one = slice(place, place + 1)
            alone = torch.autograd.grad(cross_entropy(model(records[one]), labels[one]).sum(), trained)
            for g, expected in zip(together, alone, strict=True):
                torch.testing.assert_close(g[place], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [tied, used_twice, grouped, mixing, unknown])
def test_other_models_are_left_to_single_passes(make: Callable[[], nn.Module]) -> None:
    model, weights, records, labels = _given(make)
    assert LayerGradients.of(model, cross_entropy, weights, records, labels) is None


def test_another_loss_may_mix_records() -> None:
    model, weights, records, labels = _given(images)
    mixed = lambda outputs, labels: cross_entropy(outputs - outputs.mean(0), labels)  # noqa: E731
    assert LayerGradients.of(model, mixed, weights, records, labels) is None
