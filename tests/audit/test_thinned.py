"""Rules that are told from some weights of large layers are those that all weights tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deniable.examination import thinned
from deniable.examination.residuals import _Direction, _exchange_directions
from deniable.examination.trainer import AppliedStep, WatchedTraining, watch_steps
from deniable.examination.updates.learning_rates import rates_of_any_rule


def training() -> WatchedTraining:
    torch.manual_seed(2)
    weights = [torch.nn.Parameter(torch.randn(40, 30)), torch.nn.Parameter(torch.randn(40))]
    optimizer, steps = torch.optim.Adam(weights, lr=0.05), []
    for _ in range(4):
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        steps.append(AppliedStep(weights, [w.grad for w in weights if w.grad is not None]))
        optimizer.step()
    return watch_steps(steps, dict(enumerate(weights)))  # type: ignore[arg-type]


def test_rates_are_told_from_some_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = training()
    (every,) = rates_of_any_rule(seen)
    monkeypatch.setattr(thinned, "MOST_A_LAYER", 64)
    assert [w.shape for w in thinned.thin(seen).weights] == [torch.Size([4, 64]), torch.Size([4, 40])]
    assert thinned.thin_vector(torch.zeros(1240), seen).shape == (104,)
    (some,) = rates_of_any_rule(seen)
    np.testing.assert_allclose(some, every, rtol=1e-3)
    assert np.isfinite(some[:-1]).all()


def test_exchanged_directions_hold_fresh_numbers_alone() -> None:
    """Naive twin: along every direction the residual's component is gone, and across them it is as it was."""
    drawn = torch.Generator().manual_seed(1)
    residual, one = (torch.randn(3, 50, generator=drawn) for _ in range(2))
    nearly, tiny = one + 1e-3 * torch.randn(3, 50, generator=drawn), 1e-9 * torch.randn(3, 50, generator=drawn)
    everywhere = torch.ones(3, dtype=torch.bool)
    directions = [_Direction(one, everywhere), _Direction(nearly, everywhere), _Direction(tiny, ~everywhere)]
    noise, used = _exchange_directions(residual, directions, torch.Generator().manual_seed(5))
    other, _ = _exchange_directions(residual + 7 * one - 3 * nearly, directions, torch.Generator().manual_seed(5))
    torch.testing.assert_close(noise, other, rtol=1e-4, atol=1e-4)
    assert used[:, 1].tolist() == [2, 2, 2]
    span = torch.linalg.qr(torch.stack([one, nearly], 2).double())[0]
    across = noise - residual.double()
    torch.testing.assert_close(across, (span @ (span.mT @ across.unsqueeze(2))).squeeze(2), rtol=1e-5, atol=1e-5)
    inside = (span.mT @ noise.unsqueeze(2)).square().sum((1, 2))
    torch.testing.assert_close(inside, used[:, 0], rtol=1e-4, atol=1e-5)
