"""Canaries in a real Opacus training: drawn with its batches, hidden by its noise."""

from __future__ import annotations

import pytest
import torch
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
