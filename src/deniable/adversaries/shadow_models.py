"""Shadow models and what is kept of them: each one's confidence in every record of a pool.

Shadows are trained in pairs on complementary halves of the pool, so every record is in half of them and out of the
other half (Carlini 2022, Section VI-A). Only confidences are kept: 64 shadows of 10,000 records take 2.6 MB.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deniable.adversaries.membership import Half
from deniable.adversaries.model_observation import errors, margins, outputs, share_explained
from deniable.adversaries.shadow_recipes import ShadowRecipe
from deniable.checks import whole
from deniable.data import Dataset

_MOVES_PIXELS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1))


@dataclass(frozen=True)
class ShadowBlock:
    """What is kept of shadows that were trained together."""

    confidence: NDArray[np.float32]
    """(shadows, queries, records); of a regression, errors of the prediction."""
    inside: NDArray[np.bool_]
    """(shadows, records)."""
    right: NDArray[np.float64]
    """(shadows, 2): the share of its own records, and of the others, that each shadow classifies correctly; of a
    regression, the share of variance that it explains."""


Shadows = ShadowBlock
"""All blocks together."""


def pool_of(members: Dataset, non_members: Dataset) -> Dataset:
    """All records, the members first."""
    return Half(members, non_members).records


def draw_halves(shadows: int, records: int, seed: int) -> NDArray[np.bool_]:
    """Which records each shadow is trained on, (shadows, records): pairs of complementary halves, drawn at random.

    Of an odd number one record is in neither half of a pair, another one in each pair.
    """
    whole("shadows", shadows, low=2)
    drawn = np.zeros((ceil(shadows / 2), 2, records), dtype=bool)
    for number, pair in enumerate(drawn):
        order = np.random.default_rng([seed, 6, number]).permutation(records)
        if records % 2:
            order = order[order != number % records]
        for row, half in zip(pair, np.split(order, 2), strict=True):
            row[half] = True
    return drawn.reshape(-1, records)[:shadows]


def count_blocks(recipe: ShadowRecipe, shadows: int) -> int:
    """How many blocks have all shadows."""
    return ceil(shadows / recipe.shadows_at_once)


def train_block(
    recipe: ShadowRecipe, pool: Dataset, *, shadows: int, queries: int, seed: int, block: int
) -> ShadowBlock:
    """One block of `shadows` in all; it depends on the arguments alone."""
    rows = draw_halves(shadows, len(pool), seed)[block * recipe.shadows_at_once :][: recipe.shadows_at_once]
    trained = recipe.train(pool, rows, seed, block)
    read = [_read(model, row, pool, queries) for model, row in zip(trained, rows, strict=True)]
    return ShadowBlock(np.stack([each[0] for each in read]), rows, np.stack([each[1] for each in read]))


def _read(model: Any, row: NDArray[np.bool_], pool: Dataset, queries: int) -> tuple[Any, Any]:
    if pool.regression:
        found = errors(model, pool)
        quality = [share_explained(found[part], pool.labels[part]) for part in (row, ~row)]
        return query(model, pool, queries).astype(np.float32), np.array(quality)
    plain = outputs(model, pool)
    right = plain.argmax(1).numpy() == pool.labels
    confidence = query(model, pool, queries, plain).astype(np.float32)
    return confidence, np.array([right[row].mean(), right[~row].mean()])


def query(model: Any, records: Dataset, queries: int = 1, plain: Tensor | None = None) -> NDArray[np.float64]:
    """The model's confidence ln p / (1 - p) in every record's class, (queries, records); more than one for images.

    Of a regression, the errors of its predictions: how close they are is told once all of them are known.

    The queries of an image are itself, its mirror image, and it moved by a pixel. `plain` are the model's outputs for
    the records themselves, where they are known already.
    """
    most = 2 + len(_MOVES_PIXELS) if records.kind == "image" else 1
    if whole("queries", queries) > most:
        raise ValueError(f"queries must be at most {most} for such records, got {queries}")
    shown = (_show(records, number) for number in range(queries))
    if records.regression:
        return np.stack([errors(model, each) for each in shown])
    given = (plain if plain is not None and each is records else outputs(model, each) for each in shown)
    return np.stack([margins(each, records.labels).numpy() for each in given])


def _show(records: Dataset, number: int) -> Dataset:
    if number == 0:
        return records
    pixels = records.features
    if number == 1:
        return replace(records, features=np.ascontiguousarray(pixels[..., ::-1]))
    return replace(records, features=np.roll(pixels, _MOVES_PIXELS[number - 2], axis=(-2, -1)))


def join_blocks(blocks: list[ShadowBlock]) -> Shadows:
    """All shadows in one."""
    read = partial(_join, blocks)
    return ShadowBlock(read("confidence"), read("inside"), read("right"))


def _join(blocks: list[ShadowBlock], name: str) -> Any:
    return np.concatenate([getattr(block, name) for block in blocks])
