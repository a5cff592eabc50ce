"""Which randomizer suits a data set, and the data set perturbed by it."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

import numpy as np

from deniable.data import Dataset
from deniable.local.laplace_noise import BoundedLaplace
from deniable.local.mixed_table import OneHotResponse, TableRandomizer
from deniable.local.pixels import ImagePixelization
from deniable.local.randomizer import Randomizer
from deniable.local.response import BinaryResponse


def suitable_randomizer(dataset: Dataset, epsilon: float) -> Randomizer:
    """The randomizer that Bernau 2021b uses for such data, with `epsilon` for each value.

    Bits: randomized response. Grey images: pixelization with cells of one pixel and the neighbourhood
    m = sqrt(height x width) (Bernau 2021b, Section 4). Tables: randomized response on every one-hot category, Laplace
    noise on every number, which must lie between 0 and 1 (`adult` is scaled by its training part's range, taken as
    public).
    """
    if dataset.kind == "binary":
        return BinaryResponse(epsilon)
    if dataset.kind == "image":
        height, width = dataset.features.shape[-2:]
        return ImagePixelization(epsilon, pixels=max(1, isqrt(height * width)))
    return _table(dataset, epsilon)


def _table(dataset: Dataset, epsilon: float) -> Randomizer:
    columns = dataset.features.shape[1]
    parts: list[tuple[tuple[int, int], Randomizer]] = [(block, OneHotResponse(epsilon)) for block in dataset.one_hot]
    starts = [0, *(stop for _, stop in dataset.one_hot)]
    stops = [*(start for start, _ in dataset.one_hot), columns]
    numbers = [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]
    for start, stop in numbers:
        if not np.all((dataset.features[:, start:stop] >= 0) & (dataset.features[:, start:stop] <= 1)):
            raise ValueError(
                f"the numbers of {dataset.name} must be scaled to 0..1 by bounds that are known without the data, "
                "or use deniable.local.BoundedLaplace(epsilon, low, high)"
            )
    return TableRandomizer(tuple(sorted([*parts, *((span, BoundedLaplace(epsilon)) for span in numbers)], key=_first)))


def _first(part: tuple[tuple[int, int], Randomizer]) -> int:
    return part[0][0]


def perturb_dataset(dataset: Dataset, randomizer: Randomizer, seed: int | None = None) -> Dataset:
    """The data set with its features perturbed and its labels kept; `seed` is for audits only."""
    return replace(dataset, features=randomizer.perturb(dataset.features, seed))
