"""Shadow models by the vectorised engine against the same recipe in a plain PyTorch loop.

Both train on halves of the same 4,000 records (2,000 each) with Adam in shuffled batches of 32; ours 32 models at once,
the loop one after the other, timed on a few of its models. Ratios are of CPU time of one thread each, in one run, and
of the time that a person waits, where either side uses the cores as it does by itself: the engine a process for each,
the loop PyTorch's threads.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn

from deniable.adversaries.shadow_models import draw_halves
from deniable.data import Dataset
from deniable.training.attacked.targets import TargetSettings
from deniable.training.networks.usual_models import dense
from deniable.training.subset_models import train_subsets
from deniable.training.threads import one_thread
from ratios import Ratio

RECORDS, SHADOWS, BATCH, EPOCHS, LOOPS = 4000, 32, 32, 3, 2
STEPS = EPOCHS * -(-RECORDS // 2 // BATCH)


def cnn() -> nn.Module:
    """56,714 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def drawn(shape: tuple[int, ...], classes: int, set_bits: float | None = None) -> Dataset:
    """Random records, numbers or bits of which a share is set: only the time is of interest."""
    generator = np.random.default_rng(0)
    features = generator.random((RECORDS, *shape), dtype=np.float32)
    if set_bits is not None:
        features = (features < set_bits).astype(np.float32)
    return Dataset(
        "drawn", features, generator.integers(0, classes, RECORDS), classes, "table" if len(shape) == 1 else "image"
    )


def ours(model: Callable[[], nn.Module], records: Dataset) -> float:
    """CPU seconds for one step of one model."""
    settings = TargetSettings(model, batch=BATCH, epochs=1, patience=None)
    inside = draw_halves(SHADOWS, RECORDS, 0)
    before = time.process_time()
    next(train_subsets(settings, records, inside, seed=0, block=0, steps=STEPS))
    return (time.process_time() - before) / (STEPS * SHADOWS)


def loop(model: Callable[[], nn.Module], records: Dataset) -> float:
    """The same, one model after the other."""
    inputs, labels = torch.from_numpy(records.inputs), torch.from_numpy(records.labels)
    before = time.process_time()
    for _ in range(LOOPS):
        network = model()
        optimizer = torch.optim.Adam(network.parameters(), 0.001)
        order = torch.randperm(RECORDS)[: RECORDS // 2]
        epochs = [order[torch.randperm(len(order))].split(BATCH) for _ in range(EPOCHS)]
        for batch in chain(*epochs):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    return (time.process_time() - before) / (STEPS * LOOPS)


@dataclass(frozen=True)
class Case:
    name: str
    model: Callable[[], nn.Module]
    shape: tuple[int, ...]
    classes: int
    bar: float
    """Of CPU time. Large networks are bound by products and by Adam, small ones by calls: docs/decisions/kernels.md."""
    clock_bar: float
    """Of the time that a person waits, on two cores."""
    set_bits: float | None = None


CASES = (
    Case("CNN, 57,000 weights", cnn, (28, 28), 10, 4.5, 5.0),
    Case("Adult 104-6-6-2", partial(dense, 104, 6, 6, 2), (104,), 2, 20.0, 20.0),
    Case("dense 104-32-2", partial(dense, 104, 32, 2), (104,), 2, 20.0, 20.0),
    Case("446-128-30 of numbers", partial(dense, 446, 128, 30), (446,), 30, 5.0, 8.0),
    Case("446-128-30 of bits, as Location", partial(dense, 446, 128, 30), (446,), 30, 7.5, 11.0, set_bits=0.12),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shadow_trainings(record: Callable[[Ratio], None], case: Case) -> None:
    records = drawn(case.shape, case.classes, case.set_bits)
    with one_thread():
        for warm in (ours, loop):
            warm(case.model, records)
        mine, theirs = (min(run(case.model, records) for _ in range(3)) for run in (ours, loop))
    record(Ratio(f"shadows: {case.name}", "plain PyTorch loop", mine, theirs))
    assert theirs / mine >= case.bar


def wait_for_shadows(case: Case, places: slice) -> float:
    """Seconds by the clock for some of the shadows, in a process that is warm."""
    settings = TargetSettings(case.model, batch=BATCH, epochs=1, patience=None)
    records = drawn(case.shape, case.classes, case.set_bits)
    inside = draw_halves(SHADOWS, RECORDS, 0)[places]
    with one_thread():
        next(train_subsets(settings, records, inside, seed=0, block=0, steps=8))
        before = time.perf_counter()
        next(train_subsets(settings, records, inside, seed=0, block=0, steps=STEPS))
    return time.perf_counter() - before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_person_waits(record: Callable[[Ratio], None], case: Case) -> None:
    cores = multiprocessing.cpu_count()
    parts = [slice(core, None, cores) for core in range(cores)]
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        mine = max(pool.map(partial(wait_for_shadows, case), parts, chunksize=1))
    records = drawn(case.shape, case.classes, case.set_bits)
    loop(case.model, records)
    before = time.perf_counter()
    loop(case.model, records)
    theirs = (time.perf_counter() - before) * SHADOWS / LOOPS
    record(Ratio(f"32 shadows by the clock, {case.name}, {cores} cores", "plain PyTorch loop", mine, theirs))
    assert theirs / mine >= case.clock_bar
