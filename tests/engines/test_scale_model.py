"""The model of docs/scale.md: its bounds hold the simulation, which is exact where the answer is known."""

from __future__ import annotations

from math import ceil

import pytest
from scale_model import Cluster, predict, simulate


@pytest.mark.parametrize("workers", [1, 3, 10, 100])
@pytest.mark.parametrize("blocks", [1, 7, 200])
def test_equal_blocks_take_whole_rounds(workers: int, blocks: int) -> None:
    assert simulate(blocks, 2.0, 0.0, Cluster(workers, 0.0)) == pytest.approx(2.0 * ceil(blocks / workers))


def test_a_slow_driver_keeps_one_result_after_another() -> None:
    assert simulate(500, 0.01, 0.0, Cluster(100, 0.1)) == pytest.approx(500 * 0.1 + 0.01)


@pytest.mark.parametrize("workers", [1, 10, 100, 1000, 10_000])
@pytest.mark.parametrize("seconds", [0.2, 2.0, 30.0])
def test_bounds_hold_the_simulation(workers: int, seconds: float) -> None:
    cluster = Cluster(workers, 0.002, start_seconds=5, data_bytes=1e8, result_bytes=7e4)
    blocks = max(2000, 3 * workers)
    found, bounds = simulate(blocks, seconds, 0.3, cluster, seed=1), predict(blocks, seconds, 0.3, cluster)
    assert 0.97 * bounds.low <= found <= 1.03 * bounds.high  # the draws' own mean and longest block vary


def test_what_limits_first() -> None:
    cluster = Cluster(1, 0.002, start_seconds=5)
    limits = [predict(10**5, 2.0, 0.3, Cluster(workers, 0.002, 5.0)).limit for workers in (1, 100, 500, 2000, 10_000)]
    assert limits == ["work", "work", "work", "driver", "driver"]
    assert predict(10**5, 2.0, 0.3, cluster).low == pytest.approx(200_005)
