"""One training of Bernau 2020, Figure 5.2: MNIST with many records, for the accuracy it reaches."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from deniable.bounds.textbook import noise_for_belief
from deniable.campaigns.campaign import exchange_records
from deniable.data import Dataset, load, most_dissimilar, split
from deniable.experiments.d53.mnist_figures import TESTED
from deniable.mechanisms import Adjacency
from deniable.training import Neighbours, TrainingSettings, run_block

BELIEF, DELTA, STEPS = 0.9, 0.01, 30
SEARCHED_INSIDE, SEARCHED_OUTSIDE = 50, 2000


def accuracy(*, records: int, sensitivity: Literal["local", "global"], adjacency: str, seed: int, number: int) -> float:
    """Test accuracy of training `number`; each has its own weights and noise, all have the same D and D'."""
    kind = Adjacency(adjacency)
    noise = noise_for_belief(BELIEF, DELTA, STEPS)
    settings = TrainingSettings(
        "mnist",
        noise,
        STEPS,
        optimizer="adam",
        sensitivity=sensitivity,
        adjacency=kind,
        trials_per_block=1,
    )
    found = run_block(settings, _neighbours(records, kind, seed), seed, number).accuracy
    assert found is not None  # test records are given
    return float(found[0])


@cache
def _neighbours(records: int, adjacency: Adjacency, seed: int) -> Neighbours:
    inside, outside, tests = _parts(records, seed)
    few, others = (_first(part, count) for part, count in ((inside, SEARCHED_INSIDE), (outside, SEARCHED_OUTSIDE)))
    found = exchange_records(inside, outside, most_dissimilar(few, others, adjacency)[0])
    other = None if found.other_record is None else (found.other_record.numpy(), found.other_label.numpy())  # type: ignore[union-attr]
    return Neighbours.of(inside.inputs, inside.labels, found.index, other, (tests.inputs, tests.labels))


@cache
def _parts(records: int, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """D, the other training records, and test records."""
    return *split(load("mnist", "train"), records, seed), split(load("mnist", "test"), TESTED, seed)[0]


def _first(dataset: Dataset, count: int) -> Dataset:
    return dataset.take(np.arange(min(count, len(dataset))))
