"""Percentiles of the cost over random realistic trainings: `python benchmarks/tails.py [trainings] [seed]`.

Noise .5 to 5, rate 1e-4 to .1 and 100 to 10^6 steps (all log-uniform), add-remove and replace in turn; every score,
and every promise calibrated over noise, steps and rate. Reported in milliseconds of CPU with the training that took the
longest; the bars are p99 <= 100 for a score and <= 500 for a calibration.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import exp, log

import numpy as np

import deniable as dn
import deniable.loss  # else the first question imports it

SCORES: dict[str, Callable[[dn.PrivacyLoss], float]] = {
    "advantage": lambda loss: loss.advantage(),
    "accuracy": lambda loss: loss.accuracy(0.3),
    "epsilon": lambda loss: loss.epsilon(1e-5),
    "delta": lambda loss: loss.delta(1.0),
    "belief": lambda loss: loss.belief(1e-3),
    "tpr": lambda loss: loss.tpr(1e-3),
    "ppv": lambda loss: loss.ppv(1e-3, 0.01),
    "success": lambda loss: loss.success(0.1),
}
TARGETS: dict[str, dn.Promise] = {
    "advantage": dn.Advantage(0.1),
    "accuracy": dn.Accuracy(0.6),
    "epsilon": dn.Epsilon(1.0, 1e-5),
    "belief": dn.Belief(0.9, 1e-3),
    "tpr": dn.TruePositiveRate(0.02, 0.01),
    "ppv": dn.PositivePredictiveValue(0.2, 0.01, 0.1),
    "success": dn.Success(0.2, 0.1),
}
RANGES = (0.5, 5), (1e-4, 0.1), (100, 1e6)
Settings = tuple[float, float, float, str]


def milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def training(noise: float, rate: float, steps: float) -> dn.Mechanism:
    return dn.Gaussian(noise).subsampled(rate).composed(int(steps))


def questions(noise: float, rate: float, steps: float, adjacency: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every question about one training; nothing is remembered between them."""
    families: dict[str, Callable[[float], dn.Mechanism]] = {
        "noise": lambda s: training(s, rate, steps),
        "steps": lambda s: training(noise, rate, s),
        "rate": lambda s: training(noise, s, steps),
    }
    for name, score in SCORES.items():
        yield name, lambda score=score: score(dn.privacy_loss(training(noise, rate, steps), adjacency))
    for name, target in TARGETS.items():
        for over, family in families.items():
            yield f"{over} for {name}", partial(_calibrate, family, target, adjacency, over)


def _calibrate(family: Callable[[float], dn.Mechanism], target: dn.Promise, adjacency: str, over: str) -> None:
    with suppress(dn.checks.RefusedError, ValueError):  # a single step, or any rate, may break the promise
        dn.calibrate(family, target, adjacency, over=over)


def costs(trainings: int, seed: int) -> dict[str, list[tuple[float, Settings]]]:
    """CPU milliseconds of every question about every training."""
    generator = np.random.default_rng(seed)
    found: dict[str, list[tuple[float, Settings]]] = defaultdict(list)
    for number in range(trainings):
        noise, rate, steps = (exp(generator.uniform(log(low), log(high))) for low, high in RANGES)
        settings = noise, rate, steps, ("add-remove", "replace")[number % 2]
        for name, question in questions(*settings):
            found[name].append((milliseconds(question), settings))
    return found


def main() -> None:
    trainings, seed = (int(text) for text in (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :]))
    for name, taken in costs(trainings, seed).items():
        middle, high = np.quantile([time for time, _ in taken], [0.5, 0.99])
        longest, (noise, rate, steps, adjacency) = max(taken)
        where = f"noise {noise:.4g}, rate {rate:.4g}, {int(steps)} steps, {adjacency}"
        print(f"{name:20} median {middle:6.1f}  p99 {high:6.1f}  longest {longest:6.1f} ms: {where}")


if __name__ == "__main__":
    main()
