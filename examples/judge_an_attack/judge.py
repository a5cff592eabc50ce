"""Does an attack of your own refute a claim? python judge.py prints the verdict and writes verdict.html.

The attack here looks at one number of a noisy count, in 600 releases with the person and 600 without. The claim says
noise 2; the program adds noise 1, since its author took a variance for a standard deviation.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

import deniable as dn

CLAIMED_NOISE = 2.0
DELTA = 1e-5


def noisy_count(people: int, generator: random.Random) -> float:
    return people + generator.gauss(0.0, CLAIMED_NOISE / 2)  # the fault


def main() -> None:
    generator = random.Random(0)
    with Path("scores.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["score", "member"])
        table.writerows([noisy_count(100 + member, generator) - 100, member] for member in [1, 0] * 600)
    claimed = dn.explain(dn.Gaussian(CLAIMED_NOISE), delta=DELTA)
    found = dn.verdict(
        "scores.csv", claimed.scores.epsilon, DELTA, noise=CLAIMED_NOISE, rows_from="trainings", confidence=0.99
    )
    print(found.summary())
    found.report("verdict.html")


if __name__ == "__main__":
    main()
