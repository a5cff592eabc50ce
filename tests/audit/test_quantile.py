"""Limits of a quantile: right as often as they say, whatever the distribution, and honest where trials are few."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.evidence.limits import quantile_interval


@pytest.mark.parametrize(("number", "share"), [(1000, 0.99), (200, 0.95), (50, 0.9), (20, 0.5)])
@pytest.mark.parametrize("rounded", [False, True])
def test_each_limit_is_wrong_as_rarely_as_it_says(number: int, share: float, rounded: bool) -> None:
    generator, wrong, times = np.random.default_rng(number), np.zeros(2), 2000
    for _ in range(times):
        values = generator.random(number)
        truth = share
        if rounded:  # ties
            values, truth = np.ceil(values * 10) / 10, float(np.ceil(share * 10 - 1e-9) / 10)
        found = quantile_interval(values, share, 0.9)
        wrong += found.low > truth, found.high < truth
        assert found.low <= found.value <= found.high
    assert (wrong / times < 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)).all()


def test_few_values_bound_nothing() -> None:
    found = quantile_interval(np.array([0.6, 0.7, 0.8]), 0.99, 0.95)
    assert found.high == 1.0
    assert quantile_interval(np.array([0.5]), 0.01, 0.95).low == 0.0
    with pytest.raises(ValueError, match="share must be"):
        quantile_interval(np.array([0.5]), 1.0, 0.95)
