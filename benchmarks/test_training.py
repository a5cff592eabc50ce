"""The training engine against Opacus, on the machine at hand: `pytest benchmarks/test_training.py -s`.

Both train the same models on the same data, 30 full-batch steps; ours also plays the observer. "As written" is
Opacus's PrivacyEngine as its tutorial uses it, with all threads; the best variant is the fastest of its gradient modes
in two processes of one thread each, which is also how ours runs. Every worker warms up before the clock starts.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from torch import nn

from deniable.training import Neighbours, TrainingSettings, run_block
from deniable.training.networks.usual_models import adult, mnist, purchase

opacus = pytest.importorskip("opacus", reason="the bench compares with Opacus: install the bench extra")

STEPS = 30


def cnn() -> nn.Module:
    """Two convolutions of 16 and 32 filters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 10),
    )


@dataclass(frozen=True)
class Case:
    model: Callable[[], nn.Module]
    records: int
    shape: tuple[int, ...]
    classes: int
    trials: int
    """Of ours in a block."""
    multiplications: int
    """Per record and step: forward, gradient sums, and deltas behind the first layer."""
    opacus_steps: int
    """Opacus is timed on fewer steps and scaled to 30."""
    as_written: float
    """At least so many times Opacus as written."""
    best: float
    """At least so many times the best variant of Opacus."""


CNN_PRODUCTS = 2 * 16 * 9 * 676 + 3 * 32 * 144 * 121 + 3 * 8000
MNIST_PRODUCTS = 2 * 16 * 9 * 676 + 3 * 16 * 144 * 121 + 3 * 4000
CASES = {
    "Purchase": Case(purchase, 1000, (600,), 100, 8, 2 * 600 * 128 + 3 * 128 * 100, 3, 100, 2.5),
    "Adult": Case(adult, 1000, (104,), 2, 200, 2 * 104 * 6 + 3 * (36 + 12), 30, 70, 30),
    "CNN": Case(cnn, 100, (1, 28, 28), 10, 16, CNN_PRODUCTS, 10, 5, 2.5),
    "CNN with group norm": Case(mnist, 100, (1, 28, 28), 10, 16, MNIST_PRODUCTS, 10, 5, 2.5),
}


def data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    bits = rng.random((case.records + 1, *case.shape)) < 0.5
    return bits.astype(np.float32), rng.integers(0, case.classes, case.records + 1)


def ours(name: str, mode: str) -> tuple[Callable[[], None], float]:
    case = CASES[name]
    x, y = data(case)
    neighbours = Neighbours.of(x[:-1], y[:-1], 0, (x[-1], y[-1]))
    settings = TrainingSettings(case.model, noise=2.0, steps=STEPS, trials_per_block=case.trials, adjacency="replace")
    return lambda: _discard(run_block(settings, neighbours, 0, 0)), case.trials


def theirs(name: str, mode: str) -> tuple[Callable[[], None], float]:
    case = CASES[name]
    x, y = data(case)
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(x[:-1]), torch.from_numpy(y[:-1]))
    return lambda: opacus_training(case, dataset, mode), case.opacus_steps / STEPS


def opacus_training(case: Case, dataset: torch.utils.data.Dataset, mode: str) -> None:
    warnings.simplefilter("ignore")
    model, loss = case.model(), nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(dataset, batch_size=case.records)
    made = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.005),
        data_loader=loader,
        noise_multiplier=2.0,
        max_grad_norm=3.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
        **({"criterion": loss} if mode == "ghost" else {}),
    )
    model, optimizer, loss, loader = made if mode == "ghost" else (*made[:2], loss, made[2])
    for _ in range(case.opacus_steps):
        for records, labels in loader:
            optimizer.zero_grad()
            loss(model(records), labels).backward()
            optimizer.step()


def sgemm(name: str, mode: str) -> tuple[Callable[[], None], float]:
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: _discard(torch.mm(a, b)), 2 * 1024**3 / 1e9


def _discard(_: object) -> None:
    """A result nobody needs."""


def _worker(made, threads, seconds, barrier, results) -> None:
    torch.set_num_threads(threads)
    make, name, mode = made
    run, amount = make(name, mode)
    run()
    barrier.wait()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or not done:
        run()
        done += 1
    results.put(done * amount / (time.perf_counter() - start))


def rate(make, name: str, mode: str = "", *, processes: int = 2, threads: int = 1, seconds: float = 3.0) -> float:
    """Trainings (or billions of operations) a second of all processes together."""
    context = get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    arguments = ((make, name, mode), threads, seconds, barrier, results)
    workers = [context.Process(target=_worker, args=arguments) for _ in range(processes)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers) and results.qsize() < processes:
        time.sleep(0.05)
        if any(worker.exitcode for worker in workers):
            barrier.abort()
    for worker in workers:
        worker.join()
    return sum(results.get(timeout=1) for _ in workers)


def measured(name: str, rounds: int = 3) -> dict[str, float]:
    """The best of some rounds of each contestant, in turns, so that a busy machine disturbs all of them alike."""
    threads = os.cpu_count() or 1
    best: dict[str, float] = {}
    for _ in range(rounds):
        now = {"written": rate(theirs, name, "hooks", processes=1, threads=threads)}
        now |= {mode: rate(theirs, name, mode) for mode in ("hooks", "ew", "ghost")}
        now |= {"ours": rate(ours, name), "sgemm": rate(sgemm, name)}
        best = {key: max(value, best.get(key, 0.0)) for key, value in now.items()}
    return best


@pytest.mark.parametrize("name", CASES)
def test_faster_than_opacus(name: str) -> None:
    case, rates = CASES[name], measured(name)
    speed, written = rates["ours"], rates["written"]
    mode = max(("hooks", "ew", "ghost"), key=rates.__getitem__)
    share = speed * 2 * case.multiplications * case.records * STEPS / 1e9 / rates["sgemm"]
    print(
        f"\n{name}: {speed:.3g} trainings/s, {share:.0%} of sgemm ({rates['sgemm']:.0f} GFLOP/s); "
        f"Opacus as written {written:.3g} ({speed / written:.3g} times), "
        f"best variant {mode} {rates[mode]:.3g} ({speed / rates[mode]:.3g} times)"
    )
    assert speed >= case.as_written * written
    assert speed >= case.best * rates[mode]
