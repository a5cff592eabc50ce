"""Trainings of other models than dense ones, as strangers write them: right ones pass, faults are caught and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

import deniable as dn
from deniable.examination import AppliedStep, Records

STEPS = 4


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.GroupNorm(2, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)
    )


class Skipping(nn.Module):
    """A path around a layer, and a norm of each record's own features."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.middle = nn.Linear(64, 16), nn.Linear(16, 16)
        self.norm, self.outer = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.inner(x.flatten(1)))
        return self.outer(hidden + torch.tanh(self.middle(self.norm(hidden))))


class Words(nn.Module):
    """Brightness as words: features are numbers of an embedding, and larger ones do not exist."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.outer = nn.Embedding(2, 6), nn.Linear(6, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(torch.tanh(self.words((x.flatten(1) + 0.5).long())).mean(1))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "convolutional": convolutional,
    "skipping": Skipping,
    "words": Words,
}


@dataclass(frozen=True)
class Training:
    """DP-SGD on any model, gradients by `torch.func`; `fault` names what is wrong with it, "" nothing."""

    model: str
    fault: str = ""
    rate: float = 1.0
    sigma: float = 3.0

    def __call__(self, records: Records, seed: int) -> Iterator[AppliedStep]:
        torch.manual_seed(seed)
        generator, model = torch.Generator().manual_seed(seed), MODELS[self.model]()
        weights = {name: p.detach().clone() for name, p in model.named_parameters()}
        older, before, (x, y) = weights, None, records
        for step in range(STEPS):
            drawn = (torch.rand(len(x), generator=generator) < self.rate).nonzero().flatten()
            at = older if self.fault == "older weights" else weights
            clean = self.total(self.gradients(model, at, x[drawn], y[drawn]))
            if self.fault == "momentum before noise" and before is not None:
                clean = {name: g + 0.9 * before[name] for name, g in clean.items()}
            if self.fault == "long sums left out" and torch.cat([g.flatten() for g in clean.values()]).norm() > 30:
                clean = {name: torch.zeros_like(g) for name, g in clean.items()}
            noisy = {name: g + self.noise(g, step, generator) for name, g in clean.items()}
            if self.fault == "noise by loss":
                mean_loss = float(nn.functional.cross_entropy(functional_call(model, weights, (x,)), y))
                noisy = {name: clean[name] + min(1.0, mean_loss) * (g - clean[name]) for name, g in noisy.items()}
            count = max(1.0, float(len(drawn)) if self.fault == "own size" else self.rate * 40)
            mean = {name: g / count for name, g in noisy.items()}
            yield AppliedStep(weights, mean, count, None if self.rate == 1 else drawn)
            older, before = weights, clean
            weights = {name: w - 0.5 * mean[name] for name, w in weights.items()}

    def gradients(self, model: nn.Module, weights: dict[str, Tensor], x: Tensor, y: Tensor) -> dict[str, Tensor]:
        if not len(x):
            return {name: w.new_zeros(0, *w.shape) for name, w in weights.items()}

        def loss(values: dict[str, Tensor], record: Tensor, label: Tensor) -> Tensor:
            return nn.functional.cross_entropy(functional_call(model, values, (record[None],)), label[None])

        found: dict[str, Tensor] = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
        return found

    def total(self, each: dict[str, Tensor]) -> dict[str, Tensor]:
        norms = torch.cat([g.flatten(1) for g in each.values()], 1).norm(dim=1)
        factors = dict.fromkeys(each, (1 / norms).clamp(max=1.0))
        if self.fault == "biases whole":
            factors |= {name: torch.ones_like(norms) for name, g in each.items() if g.dim() == 2}
        if self.fault == "above thrice":
            factors = dict.fromkeys(each, torch.where(norms > 3, 1 / norms, 1.0))
        if self.fault == "per layer":
            factors = {name: (1 / g.flatten(1).norm(dim=1)).clamp(max=1.0) for name, g in each.items()}
        return {name: torch.einsum("i,i...->...", factors[name], g) for name, g in each.items()}

    def noise(self, like: Tensor, step: int, generator: torch.Generator) -> Tensor:
        scale = {"first half": float(step < STEPS // 2), "variance": self.sigma**-0.5}.get(self.fault, 1.0)
        return self.sigma * scale * torch.randn(like.shape, generator=generator)


def examined(trainer: Training, trials: int = 16) -> dict[str, Any]:
    claimed = dn.Gaussian(trainer.sigma).subsampled(trainer.rate).composed(STEPS)
    given = {"model": MODELS[trainer.model], "clip": 1.0, "adjacency": "add-remove", "records": 40}
    return dn.examine("digits", trainer=trainer, claimed=claimed, trials=trials, processes=1, **given)


@pytest.mark.parametrize(("model", "rate"), [("convolutional", 0.3), ("skipping", 1.0), ("words", 0.3)])
def test_right_trainings_are_consistent(model: str, rate: float) -> None:
    document = examined(Training(model, rate=rate))
    assert document.verdict == "consistent", document.verdict_text


NAMED = [
    (Training("convolutional", "biases whole"), "the biases' gradients are not clipped"),
    (Training("skipping", "per layer"), "every layer is clipped on its own"),
    (Training("convolutional", "momentum before noise"), "momentum before the noise is added"),
    (Training("skipping", "first half"), "missing in steps 3 to 4"),
    (Training("convolutional", "variance"), "used as the variance"),
    (Training("convolutional", "own size", rate=0.3), "divided by the batch's own size"),
    (Training("convolutional", "above thrice"), "not clipped to the claimed norm, or not all"),
    (Training("words", "first half"), "missing in steps 3 to 4"),
    (Training("skipping", "noise by loss"), "its size or its draws follow the records"),
    (Training("skipping", "long sums left out"), "whether a step is applied is decided by looking at the records"),
]


@pytest.mark.parametrize(("trainer", "words"), NAMED, ids=[f"{t.model} {t.fault}" for t, _ in NAMED])
def test_a_fault_is_caught_and_its_cause_named(trainer: Training, words: str) -> None:
    document = examined(trainer, 24)
    assert document.verdict == "violated"
    assert words in document.diagnostics.cause


def test_gradients_at_older_weights_are_safe_but_said() -> None:
    document = examined(Training("skipping", "older weights", sigma=1.0), 24)
    assert document.verdict == "other recipe"
    assert "the weights one step before" in document.diagnostics.cause
