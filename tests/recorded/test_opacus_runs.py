"""Watched runs of Opacus in all its ways: as claimed they pass, with half the noise they do not."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import deniable as dn
from deniable.results.run_result import RunResult

opacus = pytest.importorskip("opacus", reason="needs the extra 'opacus'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus speaks of its random numbers, hooks and samplers

RECORDS, BATCH, STEPS = 200, 20, 20
KINDS: dict[str, dict[str, object]] = {
    "hooks": {},
    "functorch": {"grad_sample_mode": "functorch"},
    "expanded weights": {"grad_sample_mode": "ew"},
    "ghost": {"grad_sample_mode": "ghost"},
    "memory manager": {},
    "per layer": {"clipping": "per_layer", "max_grad_norm": [0.2, 0.3, 0.4, 0.1]},
    "adaptive": {
        "clipping": "adaptive",
        "target_unclipped_quantile": 0.5,
        "clipbound_learning_rate": 0.3,
        "max_clipbound": 10.0,
        "min_clipbound": 0.01,
        "unclipped_num_std": 2.0,
    },
}


def train(kind: str, noise: float, poisson: bool = True) -> RunResult:
    torch.manual_seed(11)
    data = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 3, (RECORDS,)))
    model = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 3))
    made = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        data_loader=DataLoader(data, batch_size=BATCH, shuffle=True),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=noise,
        poisson_sampling=poisson,
        **{"max_grad_norm": 0.5, **KINDS[kind]},
    )
    private, optimizer, loader = made[0], made[1], made[-1]
    loss = made[2] if kind == "ghost" else nn.functional.cross_entropy
    run = dn.watch_run(private, optimizer, loader, budget=1.0)
    if kind == "memory manager":
        manager = importlib.import_module("opacus.utils.batch_memory_manager").BatchMemoryManager
        with manager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as parts:
            loop(private, optimizer, parts, loss)
    else:
        loop(private, optimizer, loader, loss)
    claim = dn.Training(noise=1.0, rate=BATCH / RECORDS, steps=STEPS, adjacency="add-remove")
    found = dn.examine(run, claimed=claim, confidence=0.999)
    assert isinstance(found, RunResult)
    return found


def loop(model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader[list[Tensor]], loss: object) -> None:
    for _ in range(2):
        for features, labels in loader:
            optimizer.zero_grad()
            loss(model(features), labels).backward()  # type: ignore[operator]
            optimizer.step()


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_is_judged(kind: str) -> None:
    right, wrong = train(kind, 1.0), train(kind, 0.5)
    assert right.verdict == "consistent", right.verdict_text
    assert right.examined_steps == STEPS
    assert wrong.verdict == "violated"
    assert "noise has 0." in wrong.verdict_text


def test_shuffled_batches_are_told() -> None:
    found = train("hooks", 1.0, poisson=False)
    assert found.verdict == "violated"
    assert "shuffled" in found.verdict_text


def test_gradients_may_be_cleared_after_the_last_step() -> None:
    torch.manual_seed(12)
    data, model = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 3, (RECORDS,))), nn.Linear(6, 3)
    private, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=0.5,
    )
    run = dn.watch_run(private, optimizer, loader)
    for features, labels in loader:
        nn.functional.cross_entropy(private(features), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    claim = dn.Training(noise=1.0, rate=BATCH / RECORDS, steps=RECORDS // BATCH, adjacency="add-remove")
    assert dn.examine(run, claimed=claim, confidence=0.999).verdict == "consistent"
