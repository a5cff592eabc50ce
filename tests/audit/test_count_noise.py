"""A clipping norm that follows a count: the count's noise is the claimed one, or the training is less private."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deniable.examination.claim import Adaptive, Flat
from deniable.examination.diagnostics.moving_norms import count_noise

CLAIMED, TRIALS, STEPS, RECORDS = 2.0, 24, 8, 24


def evidence(seed: int, noise: float, *, rate: float = 1.0, by_share: bool = False, most: float = np.inf) -> Any:
    """Norms that follow counts of gradients, given as a share of the records or of the batch, and bounded."""
    generator = np.random.default_rng(seed)
    size = generator.binomial(RECORDS, rate, (TRIALS, STEPS))
    below = generator.binomial(size, generator.uniform(0.2, 0.9, (TRIALS, STEPS)))
    noisy = below + noise * generator.normal(size=size.shape)
    share = noisy / (np.maximum(size, 1) if by_share else rate * RECORDS)
    clip = np.ones((TRIALS, STEPS))
    for step in range(STEPS - 1):
        clip[:, step + 1] = np.minimum(most, clip[:, step] * np.exp(-0.3 * (share[:, step] - 0.5)))
    batch = np.arange(RECORDS) < size[:, :, None]
    trials = SimpleNamespace(clip=clip, clipped=1 - below / np.maximum(size, 1), batch=batch)
    return SimpleNamespace(claim=SimpleNamespace(recipe=SimpleNamespace(clipping=Adaptive(CLAIMED))), trials=trials)


SHAPES: list[dict[str, Any]] = [{}, {"rate": 0.4}, {"rate": 0.4, "by_share": True}, {"most": 1.1}]


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_with_the_claimed_noise_pass(shape: dict[str, Any]) -> None:
    found = [count_noise(evidence(seed, CLAIMED, **shape)).p_value for seed in range(200)]
    assert np.mean(np.array(found) < 0.05) <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_without_noise_are_found(shape: dict[str, Any]) -> None:
    found = count_noise(evidence(0, 0.0, **shape))
    assert found.p_value < 1e-10
    assert "has no noise" in found.sentence
    assert found.weakens


def test_half_the_noise_is_told_with_its_share() -> None:
    found = [count_noise(evidence(seed, CLAIMED / 2)) for seed in range(20)]
    assert max(one.p_value for one in found) < 1e-6
    assert np.mean([float(one.observed.split()[0]) for one in found]) == pytest.approx(0.5, rel=0.05)


def test_a_norm_that_stays_or_is_not_claimed_tells_nothing() -> None:
    still = evidence(0, 0.0)
    still.trials.clip = np.ones((TRIALS, STEPS))
    assert not count_noise(still).checked
    still.claim.recipe.clipping = Flat()
    assert count_noise(still).p_value == 1.0
