from __future__ import annotations

import pytest
from games import neighbours
from torch import nn

from deniable.training.engine import _BLOCK_NUMBERS, usual_block
from deniable.training.networks.usual_models import MODELS

SHAPES = {"adult": (104,), "digits": (64,), "location30": (446,), "mnist": (1, 28, 28), "purchase100": (600,)}


@pytest.mark.parametrize(
    ("name", "records", "size"),
    [("digits", 100, 100), ("adult", 1000, 100), ("purchase100", 1000, 20), ("mnist", 100, 10), ("mnist", 2000, 1)],
)
def test_small_models_get_large_blocks(name: str, records: int, size: int) -> None:
    assert usual_block(MODELS[name](), neighbours(records, SHAPES[name]), 1.0) == size


def test_a_block_is_never_empty_and_fits() -> None:
    wide = nn.Linear(2000, 2000)
    assert usual_block(wide, neighbours(10, (2000,)), 1.0) * 5 * 4_002_000 <= _BLOCK_NUMBERS
    assert usual_block(nn.Linear(2**13, 2**12), neighbours(4, (2**13,)), 1.0) == 1


def test_smaller_batches_allow_larger_blocks() -> None:
    model, game = MODELS["purchase100"](), neighbours(1000, (600,))
    assert usual_block(model, game, 0.1) > usual_block(model, game, 1.0)
