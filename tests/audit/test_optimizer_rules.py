"""Replayed optimizers against torch's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import optim

from deniable.examination.diagnostics.noise_spread import _slope
from deniable.examination.updates import optimizer_rules as rules
from deniable.examination.updates.learning_rates import _first_move
from deniable.examination.updates.optimizer_rules import RULES, OptimizerRule
from deniable.examination.updates.update_rules import is_adaptive, is_linear

STEPS, NUMBERS = 7, 30


def trained(kind: Any, gradients: torch.Tensor, **settings: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights before each step, and moves, of torch's optimizer."""
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, NUMBERS).double())
    optimizer, weights = kind([parameter], lr=0.03, **settings), [parameter.detach().clone()]
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
        weights.append(parameter.detach().clone())
    every = torch.stack(weights)
    return every[:-1], every[1:] - every[:-1]


def gradients() -> torch.Tensor:
    return torch.randn(STEPS, NUMBERS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


KINDS: list[tuple[Any, dict[str, Any], OptimizerRule]] = [
    (optim.Adam, {}, rules._adam),
    (optim.Adam, {"betas": (0.5, 0.9)}, partial(rules._adam, first=0.5, second=0.9)),
    (optim.Adam, {"weight_decay": 0.05}, partial(rules._adam, weight_decay=0.05)),
    (optim.Adam, {"amsgrad": True, "betas": (0.9, 0.9)}, partial(rules._amsgrad, second=0.9)),
    (optim.NAdam, {}, rules._nadam),
    (optim.Adamax, {}, rules._adamax),
    (optim.Adagrad, {}, rules._adagrad),
    (optim.RMSprop, {"alpha": 0.9, "momentum": 0.5}, partial(rules._rmsprop, alpha=0.9, momentum=0.5)),
]


@pytest.mark.parametrize(("kind", "settings", "rule"), KINDS)
def test_a_rule_moves_as_torch_does(kind: Any, settings: dict[str, Any], rule: OptimizerRule) -> None:
    given = gradients()
    weights, moves = trained(kind, given, **settings)
    towards = rule(given, weights)
    scale = (moves * towards).sum(1, keepdim=True) / towards.square().sum(1, keepdim=True)
    assert torch.allclose(moves, scale * towards, rtol=1e-4, atol=1e-6)
    assert is_adaptive([moves], [given], [weights])


@pytest.mark.parametrize("decay", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("corrected", [True, False])
def test_averages_are_those_of_a_loop(decay: float, corrected: bool) -> None:
    """More rows than are averaged by one product."""
    values = torch.randn(3 * rules._BLOCK_STEPS + 5, 4, generator=torch.Generator().manual_seed(2)).double()
    running, expected = torch.zeros(4).double(), []
    for step, row in enumerate(values, start=1):
        running = decay * running + (1 - decay) * row
        expected.append(running / (1 - decay**step) if corrected else running)
    assert torch.allclose(
        rules.running_average(values, decay, corrected), torch.stack(expected), rtol=1e-12, atol=1e-14
    )


def test_weight_decay_beside_adam_is_known_and_a_hidden_gradient_is_not() -> None:
    given = gradients()
    weights, moves = trained(optim.AdamW, given, weight_decay=0.3)
    assert is_adaptive([moves], [given], [weights])
    hidden = moves + 0.1 * moves.norm(dim=1, keepdim=True) * torch.nn.functional.normalize(given.roll(3, 1), dim=1)
    assert not is_adaptive([hidden], [given], [weights])
    assert not is_linear([moves], [given], [weights])


def test_no_rule_fits_random_moves() -> None:
    given, moves = gradients(), gradients().flip(1)
    weights = torch.ones_like(given)
    assert len(RULES) > 60
    assert not is_adaptive([moves], [given], [weights])


def test_rounding_of_long_moves_is_no_weight_decay() -> None:
    """Weights that move by a thousand times their size are rounded by more than they were."""
    for seed in range(20):
        random = torch.Generator().manual_seed(seed)
        weight, gradient = (scale * torch.randn(60, generator=random) for scale in (0.1, 500.0))
        move = (weight - 0.2 * gradient).double() - weight.double()
        found = _first_move(move, gradient.double(), weight.double())
        assert abs(found.rate - 0.2) <= 1e-5
        assert abs(found.decay) <= 3 * found.decay_error < 1e-2


def test_what_a_rule_leaves_is_no_weight_decay() -> None:
    """A rule that is known but for the small number in its denominator moves a layer otherwise by so much."""
    random = torch.Generator().manual_seed(3)
    weight, gradient = (torch.randn(50, generator=random, dtype=torch.float64) for _ in range(2))
    move = -0.01 * gradient / (gradient.abs() + 3e-6)
    found = _first_move(move, gradient.sign(), weight)
    assert np.isfinite(found.error)
    assert 1e-8 < abs(found.decay) < 3 * found.decay_error


@pytest.mark.parametrize("power", [1, -1, 0])
def test_noise_that_follows_the_batch_is_told_also_of_few_weights(power: int) -> None:
    random = np.random.default_rng(4)
    sizes = random.binomial(30, 0.25, (24, 10)).clip(1).astype(float)
    chance = np.sqrt(random.chisquare(9, sizes.shape) / 9)
    assert _slope(sizes, chance * sizes**power) == power
