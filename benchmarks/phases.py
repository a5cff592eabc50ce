"""Cost of a schedule of 1,000 different sampled phases, and of sweeps: `python benchmarks/phases.py [seed]`.

Milliseconds of CPU of advantage, epsilon, belief and tpr, where noise and rate follow a curve and where they are a
random cloud (bars: advantage and epsilon <= 100), and points a second of epsilon over 1,000 settings (bar: 300).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import sin

import numpy as np

import deniable as dn
import deniable.loss  # else the first question imports it

PHASES = 1000


def noise_curve(_: np.random.Generator) -> dn.Mechanism:
    places = np.arange(PHASES) / PHASES
    return dn.compose(*(dn.Gaussian(1 + 0.5 * sin(3 * t) + 1e-4 * t).subsampled(0.01) for t in places))


def two_curves(_: np.random.Generator) -> dn.Mechanism:
    places = np.arange(PHASES) / PHASES
    return dn.compose(*(dn.Gaussian(1 + 0.5 * sin(3 * t) + 1e-4 * t).subsampled(0.01 + 0.005 * t) for t in places))


def cloud(generator: np.random.Generator) -> dn.Mechanism:
    noises, rates = generator.uniform(0.8, 2, PHASES), generator.uniform(0.002, 0.02, PHASES)
    return dn.compose(*(dn.Gaussian(z).subsampled(q) for z, q in zip(noises, rates, strict=True)))


SCORES: dict[str, Callable[[dn.PrivacyLoss], float]] = {
    "advantage": lambda loss: loss.advantage(),
    "epsilon": lambda loss: loss.epsilon(1e-5),
    "belief": lambda loss: loss.belief(1e-3),
    "tpr": lambda loss: loss.tpr(1e-3),
}
SWEEPS: dict[str, tuple[Callable[[float], dn.Mechanism], np.ndarray]] = {
    "noise": (lambda s: dn.Gaussian(s).subsampled(0.01).composed(1000), np.geomspace(0.5, 5, 1000)),
    "steps": (
        lambda s: dn.Gaussian(1.0).subsampled(0.01).composed(int(s)),
        np.unique(np.geomspace(100, 1e6, 1000).astype(int)),
    ),
    "rate": (lambda s: dn.Gaussian(1.0).subsampled(s).composed(1000), np.geomspace(1e-4, 0.1, 1000)),
}


def milliseconds(work: Callable[..., object], *given: object) -> float:
    start = time.process_time()
    work(*given)
    return 1e3 * (time.process_time() - start)


def ask(score: Callable[[dn.PrivacyLoss], float], mechanism: dn.Mechanism) -> float:
    return score(dn.privacy_loss(mechanism, "add-remove"))


def sweep(family: Callable[[float], dn.Mechanism], values: np.ndarray) -> None:
    dn.sweep(lambda value: ask(SCORES["epsilon"], family(value)), values)


def main() -> None:
    generator = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for make in (noise_curve, two_curves, cloud):
        mechanism = make(generator)
        for name, score in SCORES.items():
            taken = [milliseconds(ask, score, mechanism) for _ in range(3)]
            print(f"{make.__name__:12} {name:10} {min(taken):6.0f} to {max(taken):.0f} ms", flush=True)
    for name, (family, values) in SWEEPS.items():
        points = 1e3 * len(values) / milliseconds(sweep, family, values)
        print(f"sweep of epsilon over {name:6} {points:6.0f} points/s", flush=True)


if __name__ == "__main__":
    main()
