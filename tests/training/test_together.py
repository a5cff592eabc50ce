"""Trainings with settings of their own, together: each is what a naive loop over its examples gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="trainings need the extra 'train'")

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad

from deniable.training import kernels, together
from deniable.training.ensemble import initial_weights
from deniable.training.networks.losses import loss_function
from deniable.training.noise_source import SeededSource
from deniable.training.together import NarrowSteps, Together, train_together

RECORDS, FEATURES = 30, 5


def data(loss: str) -> tuple[Tensor, Tensor]:
    generator = np.random.default_rng(0)
    x = torch.from_numpy(generator.normal(size=(RECORDS, FEATURES)).astype(np.float32))
    if loss == "squared-error":
        return x, torch.from_numpy(generator.normal(size=RECORDS).astype(np.float32))
    return x, torch.from_numpy(generator.integers(0, 3, RECORDS))


def settings(loss: str, optimizer: str, rate: float = 0.3, model: str | None = None) -> Together:
    outputs = 1 if loss == "squared-error" else 3
    values = [torch.tensor(one) for one in ([0.5, 1.5, 0.0], [0.2, 1.0, torch.inf], [0.1, 0.02, 0.05])]
    return Together(model or f"dense:{FEATURES},4,{outputs}", rate, 4, *values, optimizer, loss)


def naive(given: Together, trial: int, x: Tensor, y: Tensor) -> list[Tensor]:
    """One training alone, example by example, with the draws of the fast path."""
    model, drawn = initial_weights(given, len(given), SeededSource(7, 3, stream=1).generator)
    batches, noises = SeededSource(7, 3, stream=0), SeededSource(7, 3, stream=2)
    names = [name for name, _ in model.named_parameters()]
    weights = [w[trial].double() for w in drawn]
    moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
    loss = loss_function(given.loss)

    def example_loss(values: list[Tensor], record: Tensor, label: Tensor) -> Tensor:
        return loss(functional_call(model, dict(zip(names, values, strict=True)), (record[None],)), label[None])[0]

    for step in range(1, given.steps + 1):
        sums = [torch.zeros_like(w) for w in weights]
        for index in np.flatnonzero((batches.uniform(RECORDS) < given.rate).numpy()):
            gradient = grad(example_loss)(
                weights, x[index].double(), y[index] if y.dtype == torch.int64 else y[index].double()
            )
            norm = torch.sqrt(sum(g.square().sum() for g in gradient))
            factor = min(1.0, float(given.clip[trial]) / float(norm)) if norm else 1.0
            sums = [total + factor * g for total, g in zip(sums, gradient, strict=True)]
        noise = float(given.noise[trial])
        for place, all_weights in enumerate(drawn):
            draws = noises.normal_(torch.empty_like(all_weights))[trial].double()
            if noise:
                sums[place] = sums[place] + noise * float(given.clip[trial]) * draws
        mean = [total / (given.rate * RECORDS) for total in sums]
        rate = float(given.learning_rate[trial])
        if given.optimizer == "adam":
            moments = [(0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g) for (m, v), g in zip(moments, mean, strict=True)]
            mean = [m / (1 - 0.9**step) / ((v / (1 - 0.999**step)).sqrt() + 1e-8) for m, v in moments]
        weights = [w - rate * g for w, g in zip(weights, mean, strict=True)]
    return weights


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("loss", ["cross-entropy", "squared-error"])
def test_each_training_is_that_of_a_naive_loop(loss: str, optimizer: str) -> None:
    x, y = data(loss)
    given = settings(loss, optimizer)
    trained = train_together(given, x, y, seed=7, block=3)
    for trial in range(len(given)):
        for fast, slow in zip(trained.weights, naive(given, trial, x, y), strict=True):
            assert torch.allclose(fast[trial].double(), slow, rtol=2e-4, atol=2e-5)


NETWORKS = {
    "two hidden layers": lambda: nn.Sequential(
        nn.Linear(FEATURES, 7), nn.ReLU(), nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3)
    ),
    "one hidden layer": lambda: nn.Sequential(nn.Linear(FEATURES, 9), nn.ReLU(), nn.Linear(9, 3)),
    "no bias": lambda: nn.Sequential(nn.Linear(FEATURES, 9, bias=False), nn.ReLU(), nn.Linear(9, 3, bias=False)),
    "a bias at the end": lambda: nn.Sequential(nn.Linear(FEATURES, 9, bias=False), nn.ReLU(), nn.Linear(9, 3)),
}
MANY = 8
"""Trainings, so that every tensor has the sixteen values that the kernel needs."""


def narrow_settings(network: str, optimizer: str, rate: float = 0.5) -> Together:
    noise, clip = torch.linspace(0.0, 1.4, MANY), torch.linspace(0.2, 1.0, MANY)
    clip[0] = torch.inf
    return Together(NETWORKS[network], rate, 5, noise, clip, torch.linspace(0.1, 0.01, MANY), optimizer)


@pytest.fixture
def one_call(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that were one kernel call."""
    if kernels.KERNELS is None:
        pytest.skip("the compiled kernels were not built")
    steps: list[int] = []
    step = NarrowSteps.step
    monkeypatch.setattr(NarrowSteps, "step", lambda self: (steps.append(1), step(self)))
    return steps


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("share", [0.2, 1.0], ids=["mostly zeros", "no zeros"])
@pytest.mark.parametrize("network", NETWORKS)
def test_one_call_a_step_is_the_naive_loop(network: str, share: float, optimizer: str, one_call: list[int]) -> None:
    x, y = data("cross-entropy")
    x = x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < share)
    given = narrow_settings(network, optimizer)
    trained = train_together(given, x, y, seed=7, block=3)
    assert len(one_call) == given.steps
    for trial in range(MANY):
        for fast, slow in zip(trained.weights, naive(given, trial, x, y), strict=True):
            assert torch.allclose(fast[trial].double(), slow, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("records", "trainings"), [(3000, 60), (40, 8)])
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_one_call_a_step_is_many_calls(
    records: int, trainings: int, share: float, one_call: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that need several waves of trainings, draws by the kernel and by torch, lists and dense products."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(records, 37, generator=generator) * (torch.rand(records, 37, generator=generator) < share)
    y = torch.randint(0, 2, (records,), generator=generator)
    noise, clip, rate = (torch.full((trainings,), value) for value in (0.7, 0.5, 0.02))
    given = Together("dense:37,21,2", 0.3, 4, noise, clip, rate, "adam")
    one = train_together(given, x, y, seed=2, block=1)
    assert one_call
    monkeypatch.setattr(together, "narrow_network", lambda *_: None)
    many = train_together(given, x, y, seed=2, block=1)
    for fast, slow in zip(one.weights, many.weights, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-3, atol=2e-4)


def test_one_call_a_step_keeps_divergence_and_empty_batches(one_call: list[int]) -> None:
    x, y = data("cross-entropy")
    nobody = train_together(narrow_settings("no bias", "sgd", 1e-9), x, y, seed=1, block=0)
    _, start = initial_weights(narrow_settings("no bias", "sgd"), MANY, SeededSource(1, 0, stream=1).generator)
    assert all(torch.equal(w[0], before[0]) for w, before in zip(nobody.weights, start, strict=True))  # no noise
    assert not torch.equal(nobody.weights[0][1], start[0][1])
    x[:, 2] = torch.nan
    assert bool(train_together(narrow_settings("no bias", "sgd"), x, y, seed=1, block=0).weights[0].isnan().any())
    assert len(one_call) == 10


def test_labels_that_are_no_classes_are_refused() -> None:
    """Whichever way the steps take."""
    x, y = data("cross-entropy")
    for given in (narrow_settings("no bias", "sgd", 1.0), settings("cross-entropy", "sgd", 1.0)):
        with pytest.raises(ValueError, match="labels must be class numbers, 0 to 2"):
            train_together(given, x, y + 1, seed=1, block=0)


def test_a_training_does_not_depend_on_its_company() -> None:
    """Nor on the settings of the others; parts of a block have the same batches."""
    x, y = data("cross-entropy")
    given = settings("cross-entropy", "sgd")
    other = Together(
        given.model, given.rate, given.steps, given.noise, given.clip, given.learning_rate * torch.tensor([1, 9, 9])
    )
    first, second = (train_together(one, x, y, seed=1, block=0) for one in (given, other))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(first.weights, second.weights, strict=True))
    assert not torch.equal(first.weights[0][1], second.weights[0][1])


def test_empty_batches_add_noise_alone() -> None:
    x, y = data("cross-entropy")
    given = settings("cross-entropy", "sgd", rate=1e-9)
    trained = train_together(given, x, y, seed=1, block=0)
    _, start = initial_weights(given, 3, SeededSource(1, 0, stream=1).generator)
    assert all(torch.equal(w[2], before[2]) for w, before in zip(trained.weights, start, strict=True))  # no noise
    assert not torch.equal(trained.weights[0][0], start[0][0])


def test_outputs_are_those_of_the_single_models() -> None:
    x, y = data("cross-entropy")
    trained = train_together(settings("cross-entropy", "adam"), x, y, seed=1, block=0)
    names = [name for name, _ in trained.model.named_parameters()]
    for trials, outputs in trained.outputs(x):
        for trial in range(*trials.indices(3)):
            state = {name: w[trial] for name, w in zip(names, trained.weights, strict=True)}
            alone = functional_call(trained.model, state, (x,))
            assert torch.allclose(outputs[trial - trials.start], alone, atol=1e-6)
