"""Every path and layer type equals the naive twin to float32 accuracy."""

from __future__ import annotations

from collections.abc import Callable

import naive
import pytest
import torch
from torch import nn

from deniable.training import compiled, kernels
from deniable.training.gradients import GenericGradients, trainable
from deniable.training.networks import narrow
from deniable.training.networks.layers import Dense, SharedDense
from deniable.training.networks.losses import cross_entropy, squared_error
from deniable.training.stack import StackGradients, example_gradients

TRIALS, EXAMPLES, CLIP = 3, 9, 0.8


class Residual(nn.Module):
    """Not a sequence, so it takes the generic path."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.out = nn.Linear(12, 12), nn.Linear(12, 12, bias=False), nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x + torch.tanh(self.second(torch.relu(self.first(x)))))


def tied() -> nn.Module:
    shared = nn.Linear(12, 12)
    return nn.Sequential(shared, nn.ReLU(), shared, nn.ReLU(), nn.Linear(12, 4))


class Tied(nn.Module):
    """Two modules, one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.out = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 4)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.second(torch.relu(self.first(x))))


def frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 4))
    model[0].bias.requires_grad_(False)
    return model


def pooled_convolution(channels: int, filters: int, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, filters, 3, bias=bias), nn.ReLU(), nn.MaxPool2d(2))


FAST: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "one dense": (lambda: nn.Linear(12, 4), (12,)),
    "no bias": (lambda: nn.Sequential(nn.Linear(12, 6, bias=False), nn.ReLU(), nn.Linear(6, 4, bias=False)), (12,)),
    "relu": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 4)), (3, 4)),
    "narrow": (
        lambda: nn.Sequential(nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 4)),
        (12,),
    ),
    "tanh": (lambda: nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 5), nn.Linear(5, 4)), (12,)),
    "tanh of relu": (lambda: nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Tanh(), nn.Linear(6, 4)), (12,)),
    "nested": (
        lambda: nn.Sequential(nn.Sequential(nn.Linear(12, 6), nn.Identity(), nn.ReLU()), nn.Linear(6, 4)),
        (12,),
    ),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(27, 4)), (2, 5, 5)),
    "two convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 2, bias=False), nn.ReLU(), nn.Conv2d(3, 2, 2), nn.Flatten(), nn.Linear(18, 4)
        ),
        (2, 5, 5),
    ),
    "padding and stride": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1, stride=2),
            nn.Tanh(),
            nn.Conv2d(3, 5, (2, 3), padding=(1, 2), stride=(1, 2)),
            nn.Flatten(),
            nn.Linear(60, 4),
        ),
        (2, 6, 5),
    ),
    "max pool": (
        lambda: nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4)),
        (1, 6, 5),
    ),
    "pool without relu": (
        lambda: nn.Sequential(nn.Conv2d(1, 9, (2, 3)), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 4)),
        (1, 6, 7),
    ),
    "pool after pool": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 2), nn.MaxPool2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, 4)
        ),
        (1, 6, 5),
    ),
    "two pooled": (
        lambda: nn.Sequential(
            pooled_convolution(1, 8), pooled_convolution(8, 3, bias=False), nn.Flatten(), nn.Linear(6, 4)
        ),
        (1, 12, 14),
    ),
    "pooled for Winograd": (
        lambda: nn.Sequential(
            pooled_convolution(1, 8),
            pooled_convolution(8, 16, bias=False),
            nn.Conv2d(16, 32, 3),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(192, 4),
        ),
        (1, 38, 30),
    ),
    "overlapping pool": (
        lambda: nn.Sequential(nn.Conv2d(1, 3, 2), nn.MaxPool2d(3, 2, 1), nn.Tanh(), nn.Flatten(), nn.Linear(18, 4)),
        (1, 6, 5),
    ),
    "group norm": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4)),
        (1, 5, 4),
    ),
    "group norm of four channels": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 2, padding=1), nn.GroupNorm(2, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 4)
        ),
        (1, 5, 4),
    ),
    "many filters": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 24, (2, 3)),
            nn.ReLU(),
            nn.Conv2d(24, 17, 2, bias=False),
            nn.Tanh(),
            nn.Conv2d(17, 16, (1, 2)),
            nn.Flatten(),
            nn.Linear(160, 4),
        ),
        (3, 7, 6),
    ),
    "many pooled filters": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 27, 3),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(27, 40, (2, 3)),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(80, 4),
        ),
        (2, 9, 15),
    ),
    "group norm, relu, pool": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 16, 2), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 4)
        ),
        (1, 6, 8),
    ),
    "small mnist model": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 8, 3),
            nn.ReLU(),
            nn.GroupNorm(2, 8),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3),
            nn.ReLU(),
            nn.GroupNorm(4, 16),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 8),
            nn.ReLU(),
            nn.Linear(8, 4),
        ),
        (1, 14, 14),
    ),
}
GENERIC: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "residual": (Residual, (12,)),
    "layer used twice": (tied, (12,)),
    "tied weights": (Tied, (12,)),
    "frozen bias": (frozen, (12,)),
    "softplus": (lambda: nn.Sequential(nn.Linear(12, 6), nn.Softplus(), nn.Linear(6, 4)), (12,)),
    "two activations": (lambda: nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Tanh(), nn.Linear(6, 4)), (12,)),
    "sequence of tokens": (lambda: nn.Sequential(nn.Linear(4, 2), nn.Flatten(), nn.Linear(6, 4)), (3, 4)),
    "layer norm": (lambda: nn.Sequential(nn.Linear(12, 6), nn.LayerNorm(6), nn.Linear(6, 4)), (12,)),
    "instance norm": (
        lambda: nn.Sequential(nn.Conv1d(3, 4, 2), nn.InstanceNorm1d(4), nn.Flatten(), nn.Linear(12, 4)),
        (3, 4),
    ),
    "grouped convolution": (
        lambda: nn.Sequential(nn.Conv2d(2, 2, 3, groups=2), nn.Flatten(), nn.Linear(18, 4)),
        (2, 5, 5),
    ),
    "circular padding": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(50, 4)),
        (1, 5, 5),
    ),
    "average pool": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 4)),
        (1, 5, 5),
    ),
    "ends in a convolution": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten()), (1, 3, 3)),
    "embedding of conv1d": (lambda: nn.Sequential(nn.Conv1d(3, 2, 2), nn.Flatten(), nn.Linear(6, 4)), (3, 4)),
}
ALL = FAST | GENERIC


def setup(make: Callable[[], nn.Module], shape: tuple[int, ...], shared: bool, loss=cross_entropy, differing: int = 2):
    torch.manual_seed(0)
    models = [make() for _ in range(TRIALS)]
    weights = [torch.stack(w) for w in zip(*(trainable(m).values() for m in models), strict=True)]
    batches = 1 if shared else TRIALS
    records = torch.randn(batches, EXAMPLES, *shape)
    labels = torch.randint(0, 4, (batches, EXAMPLES))
    if loss is squared_error:
        labels = torch.randn(batches, EXAMPLES, 4)
    gradients = example_gradients(models[0], loss, weights, records[0, 0], shared=shared)
    gradients.load(records, labels, differing)
    return models[0], weights, records, labels, gradients


def assert_equals_twin(make, shape, shared, loss=cross_entropy, differing=2) -> None:
    model, weights, records, labels, gradients = setup(make, shape, shared, loss, differing)
    include = (torch.rand(TRIALS, EXAMPLES) < 0.7).float()
    noise = [torch.randn_like(w) for w in weights]
    sums = [torch.full_like(w, torch.nan) for w in weights]
    for _ in range(2):  # the second pass reuses the first one's buffers
        norms = gradients.clipped_sum(include, CLIP, sums)
    gram, projection = gradients.gram(), gradients.project(noise)
    close = {"rtol": 2e-5, "atol": 2e-6, "check_dtype": False}
    for t in range(TRIALS):
        batch = 0 if shared else t
        mine = [w[t] for w in weights]
        expected = naive.example_gradients(model, loss, mine, records[batch], labels[batch])
        bounded = naive.clipped(expected, CLIP)
        torch.testing.assert_close(norms[t], expected.norm(dim=1), **close)
        torch.testing.assert_close(naive.flat(sums, t), (include[t].double() @ bounded), **close)
        kept = bounded[-differing:]
        torch.testing.assert_close(gram[t], kept @ kept.T, **close)
        torch.testing.assert_close(projection[t], kept @ naive.flat(noise, t), **close)
    assert bool((norms > CLIP).any()), "the example must exercise clipping"


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_equals_naive_twin(name: str, shared: bool) -> None:
    assert_equals_twin(*ALL[name], shared)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("differing", [1, 3, EXAMPLES])
@pytest.mark.parametrize("name", ["narrow", "two pooled", "residual"])
def test_any_number_of_records_may_differ(name: str, differing: int, shared: bool) -> None:
    assert_equals_twin(*ALL[name], shared, differing=differing)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", FAST)
def test_without_compiled_kernels(monkeypatch: pytest.MonkeyPatch, name: str, shared: bool) -> None:
    monkeypatch.setattr(kernels, "KERNELS", None)
    assert_equals_twin(*FAST[name], shared)
    assert not any(isinstance(layer, compiled.Compiled) for layer in setup(*FAST[name], True)[-1]._layers)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["relu", "no bias"])
def test_layer_after_layer(monkeypatch: pytest.MonkeyPatch, name: str, shared: bool) -> None:
    monkeypatch.setattr(narrow, "MOST_WEIGHTS", 0)
    assert_equals_twin(*FAST[name], shared)


@pytest.mark.skipif(kernels.KERNELS is None, reason="the compiled kernels were not built")
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("convolution", "C"),
        ("max pool", "P"),
        ("pool after pool", "P"),
        ("two pooled", "PP"),
        ("many filters", "CCC"),
        ("small mnist model", "CNCN"),
        ("group norm of four channels", ""),
        ("padding and stride", ""),
    ],
)
def test_compiled_kernels_are_used(name: str, kinds: str) -> None:
    layers = setup(*FAST[name], True)[-1]._layers
    letters = [type(layer).__name__[0] for layer in layers if isinstance(layer, compiled.Compiled)]
    assert "".join(letters) == kinds


@pytest.mark.parametrize("name", ["relu", "residual"])
def test_other_losses(name: str) -> None:
    assert_equals_twin(*ALL[name], True, squared_error)


@pytest.mark.parametrize("name", FAST)
def test_fast_path_is_taken(name: str) -> None:
    assert isinstance(setup(*FAST[name], True)[-1], StackGradients)


@pytest.mark.parametrize("name", GENERIC)
def test_generic_path_is_taken(name: str) -> None:
    assert isinstance(setup(*GENERIC[name], True)[-1], GenericGradients)


def test_generic_path_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GenericGradients, "memory", 1)
    assert_equals_twin(*GENERIC["residual"], True)


def test_generic_path_equals_fast_path() -> None:
    model, weights, records, labels, fast = setup(*FAST["relu"], True)
    slow = GenericGradients(model, cross_entropy, weights)
    slow.load(records, labels, 2)
    include, sums = torch.ones(TRIALS, EXAMPLES), [[torch.empty_like(w) for w in weights] for _ in range(2)]
    torch.testing.assert_close(fast.clipped_sum(include, CLIP, sums[0]), slow.clipped_sum(include, CLIP, sums[1]))
    torch.testing.assert_close(sums[0], sums[1])


def without_bias_in_norm(self: Dense, total: torch.Tensor) -> None:
    total += self._squares("delta", self._delta) * self._squares("inputs", self._inputs)


def unclipped(self: Dense, factors: torch.Tensor, out: list[torch.Tensor]) -> None:
    self.outer(self._delta, out[0])
    torch.sum(self._delta, 2, out=out[1])


def wrong_record(self: Dense, examples: slice) -> None:
    self._kept_deltas.append(self._delta[:, :, :2].double())
    self._kept_inputs.append(self._inputs[:, :, :2].clone())


@pytest.mark.parametrize(
    ("kind", "method", "broken"),
    [
        (Dense, "add_square_norms", without_bias_in_norm),
        (Dense, "clipped_sum", unclipped),
        (Dense, "keep", wrong_record),
        (SharedDense, "input_squares", lambda self: self._inputs.abs().sum(1)),
    ],
)
def test_a_broken_layer_is_detected(monkeypatch: pytest.MonkeyPatch, kind, method, broken) -> None:
    monkeypatch.setattr(kind, method, broken)
    monkeypatch.setattr(narrow, "MOST_WEIGHTS", 0)  # layer after layer
    with pytest.raises(AssertionError, match="not close"):
        assert_equals_twin(*FAST["relu"], True)


@pytest.mark.parametrize("labels", [torch.tensor([[0, 4]]), torch.tensor([[-1, 0]]), torch.tensor([[0.0, 1.0]])])
def test_labels_that_are_no_classes_are_refused(labels: torch.Tensor) -> None:
    gradients = setup(*FAST["relu"], True)[-1]
    with pytest.raises(ValueError, match="labels must be class numbers, 0 to 3"):
        gradients.load(torch.zeros(1, 2, 3, 4), labels)


def test_contributions_never_exceed_the_clipping_norm() -> None:
    model, weights, records, labels, _ = setup(*FAST["relu"], True)
    gradients = example_gradients(model, cross_entropy, weights, records[0, 0], shared=True)
    gradients.load(records * 1e15, labels, differing=1)
    sums = [torch.empty_like(w) for w in weights]
    gradients.clipped_sum(torch.ones(TRIALS, EXAMPLES), CLIP, sums)
    assert float(gradients.gram().max()) <= CLIP**2 * (1 + 1e-5)
    assert all(bool(torch.isfinite(s).all()) for s in sums)


def test_vanishing_gradient_is_not_scaled_up() -> None:
    weights = [torch.zeros(1, 2, 3)]
    gradients = example_gradients(nn.Linear(3, 2, bias=False), cross_entropy, weights, torch.zeros(3), shared=True)
    gradients.load(torch.zeros(1, 4, 3), torch.zeros(1, 4, dtype=torch.long), differing=1)
    sums = [torch.empty_like(w) for w in weights]
    assert float(gradients.clipped_sum(torch.ones(1, 4), CLIP, sums).max()) == 0
    assert float(sums[0].abs().max()) == 0
