"""The p-value of kurtoses: right noise is left in peace as often as is said, other noise is found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from deniable.examination.diagnostics.p_values import kurtosis_cumulants, kurtosis_p_value

Array = NDArray[np.float64]


def kurtoses(numbers: Array) -> Array:
    """Of the last axis."""
    return np.asarray(np.mean(numbers**4, axis=-1) / np.mean(numbers**2, axis=-1) ** 2)


@pytest.mark.parametrize("count", [5, 30, 200])
def test_its_cumulants_are_those_of_simulated_ones(count: int) -> None:
    drawn = kurtoses(np.random.default_rng(3).standard_normal((100_000, count)))
    mean, variance, third = kurtosis_cumulants(np.array(float(count)))
    away = drawn - mean
    for power, exact in ((1, 0.0), (2, float(variance)), (3, float(third))):
        moments = away**power
        assert moments.mean() == pytest.approx(exact, abs=5 * moments.std() / np.sqrt(len(drawn)))


@pytest.mark.parametrize(("count", "steps", "runs"), [(100, 10, 10_000), (1000, 1, 10_000), (30, 40, 8_000)])
def test_right_noise_raises_no_more_alarms_than_it_says(count: int, steps: int, runs: int) -> None:
    """At 1e-3 the normal law would raise four times as many."""
    drawn = kurtoses(np.random.default_rng(4).standard_normal((runs, steps, count)))
    numbers = np.full(steps, float(count))
    p_values = np.array([kurtosis_p_value(row, numbers) for row in drawn])
    for level in (0.05, 0.01, 0.001):
        assert np.sum(p_values <= level) <= binom.isf(1e-3, runs, 1.2 * level)


@pytest.mark.parametrize("shape", ["laplace", "uniform"])
def test_other_noise_is_found(shape: str) -> None:
    generator = np.random.default_rng(5)
    drawn = generator.laplace(size=(20, 200)) if shape == "laplace" else generator.uniform(-1, 1, (20, 200))
    assert kurtosis_p_value(kurtoses(drawn), np.full(20, 200.0)) < 1e-9
