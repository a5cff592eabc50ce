"""Canaries in a real Opacus training: drawn with its batches, hidden by its noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from deniable.canary import CanaryPlan, canaries
from deniable.canary.gradient_canaries import GradientCanaries
from deniable.mechanisms import Adjacency, Training

opacus = pytest.importorskip("opacus")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

RECORDS, BATCH, EPOCHS = 600, 30, 3


def train(plan: CanaryPlan, noise: float, factor: float = 1.0, **settings: object) -> GradientCanaries:
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(RECORDS, 20), torch.randint(0, 4, (RECORDS,)))
    model = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 4))
    engine = opacus.PrivacyEngine()
    norm: object = [0.5] * 4 if settings.get("clipping") == "per_layer" else 1.0
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=noise,
        max_grad_norm=norm,
        **settings,
    )
    private, optimizer, loader = made
    run = plan.attach(optimizer, loader)
    optimizer.noise_multiplier = noise * factor
    for _ in range(EPOCHS):
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(private(features), labels).backward()
            optimizer.step()
    return run


@pytest.mark.parametrize("settings", [{}, {"clipping": "per_layer"}], ids=["flat", "per layer"])
def test_the_claimed_training_is_consistent(settings: dict[str, object]) -> None:
    plan = canaries(RECORDS, 500)
    run = train(plan, 1.0, **settings)
    plan.score(run)
    claim = Training(1.0, BATCH / RECORDS, run.steps, Adjacency.ADD_REMOVE)
    assert run.steps == EPOCHS * RECORDS // BATCH
    assert plan.verdict(claim, delta=1e-5).verdict == "consistent"
    shown = plan.verdict(claim, delta=1e-5, method="order-statistics")
    assert shown.verdict == "consistent"
    assert shown.measured.epsilon.lower_bound.value > 0


def test_a_tenth_of_the_noise_is_violated() -> None:
    plan = canaries(RECORDS, 500)
    run = train(plan, 1.0, factor=0.1)
    plan.score(run)
    claim = Training(1.0, BATCH / RECORDS, run.steps, Adjacency.ADD_REMOVE)
    assert plan.verdict(claim, delta=1e-5).verdict == "violated"


def test_batches_must_be_watched() -> None:
    with pytest.raises(ValueError, match="loader is missing"):
        canaries(RECORDS, 10).attach(None, None)


def test_batches_of_another_loader_are_refused() -> None:
    plan = canaries(RECORDS, 10)
    data = TensorDataset(torch.randn(RECORDS, 20), torch.randint(0, 4, (RECORDS,)))
    model = nn.Linear(20, 4)
    private, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    plan.attach(optimizer, DataLoader(data, batch_size=BATCH))
    features, labels = next(iter(loader))
    nn.functional.cross_entropy(private(features), labels).backward()
    with pytest.raises(ValueError, match="loader must be the one that the loop draws from"):
        optimizer.step()


def test_a_plan_that_is_drawn_after_the_training_is_refused() -> None:
    early, late = canaries(RECORDS, 10), canaries(RECORDS, 10)
    run = train(early, 1.0)
    with pytest.raises(ValueError, match="another plan"):
        late.score(run)
    afterwards = late.gradients([nn.Parameter(torch.zeros(50))], clip=1.0, noise=1.0, rate=BATCH / RECORDS)
    with pytest.raises(ValueError, match="attach the plan before the training"):
        late.score(afterwards)


def test_scores_have_the_law_of_an_ideal_observers() -> None:
    """A share of benchmarks/test_canaries.py: the scores of a real training against those of the claimed law alone.

    Equal laws have equal bounds for whatever estimator. Each of two tests is failed by chance once in 10,000.
    """
    noise, rate, steps = 0.9, BATCH / RECORDS, EPOCHS * RECORDS // BATCH
    plan = canaries(RECORDS, 600)
    plan.score(train(plan, noise))
    assert plan.scores is not None
    random = np.random.default_rng(0)
    for inside in (True, False):
        drawn = (random.random((20_000, steps)) < rate) & inside
        seen = drawn + noise * random.normal(size=drawn.shape)
        ideal = np.log1p(rate * np.expm1((seen - 0.5) / noise**2)).sum(1)
        assert ks_2samp(plan.scores[plan.coins == inside], ideal).pvalue > 1e-4


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_plan_that_is_drawn_between_two_trainings_is_refused(momentum: float) -> None:
    data = TensorDataset(torch.randn(40, 20), torch.randint(0, 4, (40,)))
    model = nn.Linear(20, 4)
    private, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum),
        data_loader=DataLoader(data, batch_size=20),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for features, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(private(features), labels).backward()
        optimizer.step()
    if momentum:
        optimizer.zero_grad()
    with pytest.raises(ValueError, match="trained before the canaries were in"):
        canaries(40, 10).attach(optimizer, loader)
