"""How long a campaign takes on 1 to 10,000 workers, and what limits it: bounds, and the simulation that checks them.

A driver hands out blocks, two a worker, and keeps their results one after another. No order of blocks is faster than
the work shared evenly, nor slower than that and the longest block (list scheduling).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, exp, log, log2, sqrt

import numpy as np
from scipy.special import ndtri

__all__ = ["Cluster", "Prediction", "predict", "simulate"]

WINDOW = 2
"""Blocks under way for each worker."""


@dataclass(frozen=True)
class Cluster:
    """Costs in seconds and bytes; the defaults were measured on one machine (docs/scale.md)."""

    workers: int
    driver_seconds: float
    """CPU and disk of the driver for one block: hand it out, receive it, keep it."""
    start_seconds: float = 0.0
    """From the first task to a worker that plays: Python, torch, the work."""
    data_bytes: float = 0.0
    """Put into the cluster once."""
    result_bytes: float = 0.0
    bytes_a_second: float = 1e9
    """Of the driver's network."""
    workers_a_node: int = 32


@dataclass(frozen=True)
class Prediction:
    """Seconds: every part alone, and bounds on the whole."""

    work: float
    """Blocks shared evenly."""
    driver: float
    transfer: float
    """Of the results, which all pass the driver's network."""
    begin: float
    """The data on its way to every node (from node to node, as a tree), and the workers' start."""
    longest: float
    """The longest block, for which all others may have to wait."""

    @property
    def low(self) -> float:
        """No order of blocks is faster."""
        return self.begin + max(self.work, self.driver, self.transfer, self.longest)

    @property
    def high(self) -> float:
        """No order of blocks is slower."""
        return self.begin + max(self.work, self.driver, self.transfer) + self.longest

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max(("work", "driver", "transfer", "begin", "longest"), key=lambda name: getattr(self, name))


def predict(blocks: int, seconds: float, spread: float, cluster: Cluster) -> Prediction:
    """Of so many blocks that take `seconds` in the mean, lognormal with a relative standard deviation of `spread`."""
    deviation = sqrt(log(1 + spread**2))
    longest = seconds * exp(deviation * float(ndtri(1 - 1 / (2 * blocks))) - deviation**2 / 2)
    nodes = ceil(cluster.workers / cluster.workers_a_node)
    return Prediction(
        work=blocks * seconds / cluster.workers,
        driver=blocks * cluster.driver_seconds,
        transfer=blocks * cluster.result_bytes / cluster.bytes_a_second,
        begin=cluster.start_seconds + cluster.data_bytes / cluster.bytes_a_second * ceil(log2(nodes + 1)),
        longest=longest,
    )


def simulate(blocks: int, seconds: float, spread: float, cluster: Cluster, seed: int = 0) -> float:
    """Seconds until the last result is kept, event by event; the driver does one thing at a time."""
    times = iter(_times(blocks, seconds, spread, seed))
    begin = predict(blocks, seconds, spread, cluster).begin
    cost = max(cluster.driver_seconds, cluster.result_bytes / cluster.bytes_a_second)
    free = [begin] * cluster.workers
    handed = deque([begin] * min(blocks, WINDOW * cluster.workers))
    left, driver = blocks - len(handed), begin
    ending: list[float] = []
    for _ in range(blocks):
        while handed and free:
            heappush(ending, max(heappop(free), handed.popleft()) + next(times))
        at = heappop(ending)
        heappush(free, at)
        driver = max(driver, at) + cost
        if left:  # for a block that is kept, another one is handed out
            handed.append(driver)
            left -= 1
    return driver


def _times(blocks: int, seconds: float, spread: float, seed: int) -> list[float]:
    if not spread:
        return [seconds] * blocks
    deviation = sqrt(log(1 + spread**2))
    drawn = np.random.default_rng(seed).normal(-(deviation**2) / 2, deviation, blocks)
    return list(seconds * np.exp(drawn))
