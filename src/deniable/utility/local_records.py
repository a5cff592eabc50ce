"""Records that are perturbed one by one before anybody trains on them: the other way to keep a promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from deniable.calibration import calibrate
from deniable.data import Dataset
from deniable.data.dataset import Kind
from deniable.data.encoding import LARGEST_SPREADS
from deniable.local import perturb_dataset, suitable_randomizer
from deniable.mechanisms import Adjacency, Mechanism
from deniable.promises import Promise
from deniable.utility.parts import Parts


def find_local_epsilons(parts: Parts, promises: Sequence[Promise]) -> tuple[float, ...]:
    """Epsilon of each value with which a whole record, perturbed by itself, keeps each promise (replace neighbours)."""
    if parts.task == "regression":
        raise ValueError("local noise is told for classifications: leave local out")
    dataset = _within_known_bounds(parts)
    shape = dataset.features.shape[1:]

    def release(noise: float) -> Mechanism:
        return suitable_randomizer(dataset, 1 / noise).cost(shape).mechanism

    return tuple(1 / float(calibrate(release, promise, Adjacency.REPLACE).value) for promise in promises)


def perturb_records(parts: Parts, epsilon: float, seed: int) -> NDArray[np.float32]:
    """The training records with noise of this epsilon for each value, as a model takes them."""
    dataset = _within_known_bounds(parts)
    noisy = perturb_dataset(dataset, suitable_randomizer(dataset, epsilon), seed=seed)
    features = noisy.features.copy()
    columns = list(parts.standardised)
    features[:, columns] = features[:, columns] * (2 * LARGEST_SPREADS) - LARGEST_SPREADS
    return replace(noisy, features=features).inputs


def _within_known_bounds(parts: Parts) -> Dataset:
    """Records from 0 to 1: numbers of a table were cut off at a known number of spreads, which gives the scale."""
    features = parts.train.numpy().copy()
    columns = list(parts.standardised)
    features[:, columns] = (features[:, columns] + LARGEST_SPREADS) / (2 * LARGEST_SPREADS)
    kind = cast(Kind, parts.kind)
    if kind == "image" and features.ndim == 4 and features.shape[1] == 1:
        features = features[:, 0]
    return Dataset(parts.name, features, parts.train_labels.numpy(), parts.outputs, kind, parts.one_hot)
