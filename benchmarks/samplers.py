"""Samplers against their peers, in one run: `python benchmarks/samplers.py [--opake PYTHON] [--sweep N] [--seed S]`.

Needs the extra `bench` and `pld-accounting` 2.0 (in an environment of its own: `pip install --target DIR`, then
PYTHONPATH). Rust's opake-dpsgd runs on Python 3.13 only: `--opake` names an interpreter that has it. CPU seconds, the
shortest of a few; what is not installed is said and left out. The bars (issue 17): allocation at least 100 times as
fast as pld-accounting and between its bounds; the sampled Gaussian at least 30 times as fast as each peer; batches
without replacement never looser than dp-accounting's RDP; allocation's scores within 1e-8 and under 1 s each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

import numpy as np
from dp_accounting import NeighboringRelation, dp_event, pld, rdp
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

import deniable as dn
from deniable.upper import Upper

Found = TypeVar("Found")
DELTA = 1e-5
OWN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # of another Python
ALLOCATIONS = [(1.907073, 100, 20), (1.310146, 500, 40), (0.834432, 500, 10)]  # sigma, steps an epoch, epochs
TRAININGS = [(1.0, 0.01, 10**3), (1.0, 0.01, 10**5), (0.8, 0.001, 10**4)]  # noise, rate, steps
FIXED = [
    (0.78762, 100, 100_000, 10**4),
    (1.56267, 1000, 100_000, 10**3),
    (3.0, 6000, 60_000, 512),
]  # noise, batch, n, T
OPAKE = """
import time, opake.dpsgd.accounting as acc
times = []
for round in range(5):  # with another noise each time: opake remembers what it was asked before
    start = time.process_time()
    value = (acc.poisson(acc.gaussian({noise} + 1e-9 * round), {rate}) * {steps}).epsilon_at({delta})
    times.append(time.process_time() - start)
print(min(times), value)
"""
SCORES: dict[str, Callable[[dn.PrivacyLoss], Upper]] = {
    "belief": lambda loss: loss.belief(1e-3),
    "tpr": lambda loss: loss.tpr(1e-3),
    "ppv": lambda loss: loss.ppv(1e-3, 0.1),
    "epsilon": lambda loss: loss.epsilon(DELTA),
    "advantage": lambda loss: loss.advantage(),
}


def timed(call: Callable[[], Found], rounds: int = 3) -> tuple[float, Found]:
    """CPU seconds, the shortest of a few, and the result; what takes long is asked once."""
    times: list[float] = []
    while len(times) < rounds and sum(times) < 10:
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return min(times), found


def allocated(sigma: float, steps: int, epochs: int) -> dn.PrivacyLoss:
    release = dn.Gaussian(sigma).subsampled(dn.RandomAllocation(steps)).composed(epochs)
    return dn.privacy_loss(release, "add-remove")


def forget() -> None:
    """Laws of epochs are kept between questions; a race starts without them."""
    from deniable.loss.pairs import allocated as room  # noqa: PLC0415

    room._mean_law.cache_clear()


def race_allocation() -> None:
    if find_spec("PLD_accounting") is None:
        print("allocation: pld-accounting is not installed")
        return
    for row in ALLOCATIONS:
        _race_allocation(*row)


def _race_allocation(sigma: float, steps: int, epochs: int) -> None:
    from PLD_accounting import gaussian_allocation_epsilon_range  # noqa: PLC0415

    def ours() -> float:
        forget()
        return allocated(sigma, steps, epochs).epsilon(DELTA)

    def theirs() -> tuple[float, float]:
        return gaussian_allocation_epsilon_range(delta=DELTA, sigma=sigma, num_steps=steps, num_epochs=epochs)

    (our_time, value), (their_time, (high, low)) = timed(ours), timed(theirs, 1)
    inside = "inside" if low <= value <= high else "OUTSIDE"
    print(
        f"allocation sigma {sigma}, {steps} steps, {epochs} epochs: {value:.6f} {inside} [{low:.6f}, {high:.6f}];"
        f" {1e3 * our_time:.0f} ms against {their_time:.1f} s, {their_time / our_time:.0f} times",
        flush=True,
    )


def race_poisson(noise: float, rate: float, steps: int, opake: str | None) -> None:
    release = dn.Gaussian(noise).subsampled(rate).composed(steps)
    our_time, value = timed(lambda: dn.privacy_loss(release, "add-remove").epsilon(DELTA), 7)
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    peers: dict[str, Callable[[], float]] = {
        "dp-accounting": lambda: pld.PLDAccountant().compose(event, steps).get_epsilon(DELTA),
        "riskcal's way": lambda: _dots(noise, rate, steps),
    }
    times = {name: timed(peer)[0] for name, peer in peers.items()}
    if opake:
        code = OPAKE.format(noise=noise, rate=rate, steps=steps, delta=DELTA)
        told = subprocess.run([opake, "-c", code], capture_output=True, text=True, check=True, env=OWN).stdout.split()
        times["opake"] = float(told[0])
    shown = ", ".join(f"{name} {their / our_time:.0f} times ({their:.3g} s)" for name, their in times.items())
    print(
        f"Poisson noise {noise}, rate {rate}, {steps} steps: {value:.8f} in {1e3 * our_time:.1f} ms; {shown}",
        flush=True,
    )


def _dots(noise: float, rate: float, steps: int) -> float:
    """As riskcal's accountant: connected dots, a grid of 1e-4."""
    one = from_gaussian_mechanism(noise, sampling_prob=rate, use_connect_dots=True, value_discretization_interval=1e-4)
    return float(one.self_compose(steps).get_epsilon_for_delta(DELTA))


def race_fixed(noise: float, batch: int, records: int, steps: int) -> None:
    """Noise is relative to the sensitivity, 2C under replace, on both sides."""
    release = dn.Gaussian(noise).subsampled(dn.FixedSize(batch, records)).composed(steps)
    value = dn.privacy_loss(release, "replace").epsilon(1e-6)
    event = dp_event.SampledWithoutReplacementDpEvent(records, batch, dp_event.GaussianDpEvent(noise))
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    theirs = accountant.compose(event, steps).get_epsilon(1e-6)
    looser = "no looser" if value <= theirs else "LOOSER"
    print(f"fixed noise {noise}, {batch} of {records}, {steps} steps: {value:.4f}, RDP {theirs:.4f}: {looser}")


def sweep_allocation(count: int, seed: int) -> None:
    """Random (steps, epochs, sigma): the largest stated error and the longest CPU time of every score."""
    generator = np.random.default_rng(seed)
    worst = dict.fromkeys(SCORES, (0.0, 0.0))
    for _ in range(count):
        steps, epochs = int(10 ** generator.uniform(0.3, 5)), int(10 ** generator.uniform(0, 3))
        limit = np.sqrt(1 / np.log1p(steps / epochs * 10 ** generator.uniform(-2, 1)))  # mu of the limit .1 to 3
        for name, score in SCORES.items():
            forget()
            taken, value = timed(
                partial(lambda score, *row: score(allocated(*row)), score, float(limit), steps, epochs), 1
            )
            error = value.error / max(1.0, float(value))
            worst[name] = max(worst[name][0], error), max(worst[name][1], taken)
            if error > 1e-8 or taken > 1:
                print(
                    f"   {name} of sigma {limit:.5g}, {steps} steps, {epochs} epochs: error {error:.1g}, {taken:.2f} s"
                )
    for name, (error, taken) in worst.items():
        print(f"allocation sweep of {count}: {name:9} error <= {error:.1e}, {taken:.2f} s at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--opake", help="an interpreter that has opake-dpsgd")
    parser.add_argument("--sweep", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for training in TRAININGS:
        race_poisson(*training, given.opake)
    for batches in FIXED:
        race_fixed(*batches)
    race_allocation()
    sweep_allocation(given.sweep, given.seed)


if __name__ == "__main__":
    main()
