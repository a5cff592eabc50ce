from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from deniable.training.release import train
from deniable.training.settings import TrainingSettings

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 64)), RNG.integers(0, 10, 40)
SETTINGS = TrainingSettings("digits", noise=0.01, steps=100, clip=1.0, learning_rate=2.0, adjacency="add-remove")


def test_a_released_model_is_a_module_that_learned() -> None:
    for settings in (SETTINGS, replace(SETTINGS, rate=0.3), replace(SETTINGS, optimizer="adam", learning_rate=0.01)):
        model = train(settings, X, Y)
        assert isinstance(model, nn.Module)
        accuracy = (model(torch.tensor(X, dtype=torch.float32)).argmax(1).numpy() == Y).mean()
        assert accuracy > 0.8


def test_noise_cannot_be_repeated_even_with_equal_initial_weights() -> None:
    short = replace(SETTINGS, steps=1, noise=1.0, learning_rate=1e-9)
    first, second = (train(short, X, Y, weights_seed=3)[1].weight.detach() for _ in range(2))
    torch.testing.assert_close(first, second, atol=1e-6, rtol=0)  # the same start
    loud = replace(SETTINGS, steps=1, noise=1.0)
    first, second = (train(loud, X, Y, weights_seed=3)[1].weight.detach() for _ in range(2))
    assert float((first - second).abs().min()) > 0
    with pytest.raises(TypeError, match="seed"):
        train(loud, X, Y, seed=3)


def test_noise_on_a_released_model_has_the_promised_size() -> None:
    loud = replace(SETTINGS, steps=1, noise=5.0, learning_rate=40.0)
    first, second = (
        torch.cat([p.detach().flatten() for p in train(loud, X, Y, weights_seed=3).parameters()]) for _ in range(2)
    )
    assert float((first - second).std()) == pytest.approx(5.0 * 2**0.5, rel=0.1)  # learning rate / 40 records = 1


def test_local_sensitivity_is_refused() -> None:
    with pytest.raises(ValueError, match="local"):
        train(replace(SETTINGS, sensitivity="local"), X, Y)


def test_divergence_is_an_error() -> None:
    with pytest.raises(FloatingPointError, match="learning_rate"):
        train(replace(SETTINGS, learning_rate=1e38), X, Y)


@pytest.mark.parametrize(("model", "shape"), [("digits", (64,)), ("mnist", (1, 28, 28))])
def test_a_batch_may_be_empty(model: str, shape: tuple[int, ...]) -> None:
    """A Poisson sample often is; then noise alone moves the weights, here by next to nothing."""
    records = RNG.normal(size=(40, *shape))
    quiet = replace(SETTINGS, model=model, rate=1e-9, steps=2, noise=1e-9, learning_rate=1e-6)
    first, second = (list(train(quiet, records, Y, weights_seed=3).parameters()) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other)
        assert bool(torch.isfinite(one).all())
