"""Percentiles of the cost over random realistic trainings: `python benchmarks/tails.py [trainings] [seed]`.

Noise .5 to 5, rate 1e-4 to .1 and 100 to 10^6 steps (all log-uniform), add-remove and replace in turn. Reported in
milliseconds of CPU; the bars are p99 <= 100 for a score and <= 500 for a calibration.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from math import exp, log

import numpy as np

import deniable as dn

SCORES: dict[str, Callable[[dn.PrivacyLoss], float]] = {
    "advantage": lambda loss: loss.advantage(),
    "accuracy": lambda loss: loss.accuracy(0.3),
    "epsilon": lambda loss: loss.epsilon(1e-5),
    "delta": lambda loss: loss.delta(1.0),
    "belief": lambda loss: loss.belief(1e-3),
    "tpr": lambda loss: loss.tpr(1e-3),
    "ppv": lambda loss: loss.ppv(1e-3, 0.01),
}
TARGETS: dict[str, dn.Promise] = {
    "noise for advantage": dn.Advantage(0.1),
    "noise for accuracy": dn.Accuracy(0.6),
    "noise for epsilon": dn.Epsilon(1.0, 1e-5),
    "noise for belief": dn.Belief(0.9, 1e-3),
    "noise for tpr": dn.TruePositiveRate(0.02, 0.01),
    "noise for ppv": dn.PositivePredictiveValue(0.2, 0.01, 0.1),
}


def milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def training(noise: float, rate: float, steps: float) -> dn.Mechanism:
    return dn.Gaussian(noise).subsampled(rate).composed(int(steps))


def questions(noise: float, rate: float, steps: float, adjacency: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every question about one training; nothing is remembered between them."""
    for name, score in SCORES.items():
        yield name, lambda score=score: score(dn.privacy_loss(training(noise, rate, steps), adjacency))
    for name, target in TARGETS.items():
        yield name, lambda target=target: dn.calibrate(lambda s: training(s, rate, steps), target, adjacency)


def costs(trainings: int, seed: int) -> dict[str, list[float]]:
    """CPU milliseconds of every question about every training."""
    generator = np.random.default_rng(seed)
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(trainings):
        settings = [exp(generator.uniform(log(low), log(high))) for low, high in ((0.5, 5), (1e-4, 0.1), (100, 1e6))]
        for name, question in questions(*settings, ("add-remove", "replace")[number % 2]):
            found[name].append(milliseconds(question))
    return found


def main() -> None:
    trainings, seed = (int(text) for text in (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :]))
    for name, times in costs(trainings, seed).items():
        middle, high, highest = np.quantile(times, [0.5, 0.99, 1.0])
        print(f"{name:22} median {middle:7.1f}  p99 {high:7.1f}  largest {highest:7.1f} ms")


if __name__ == "__main__":
    main()
