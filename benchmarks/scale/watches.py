"""How often a watch errs, and how soon it catches: thousands of simulated campaigns a law.

    python benchmarks/scale/watches.py errors 2000      false alarms over 5,000 trials, claims that are kept
    python benchmarks/scale/watches.py catches 500      trials until a broken claim is refuted
    python benchmarks/scale/watches.py rows 500         the same of `verdict --watch`, files with few members

Looked at after each of the first 100 trials, then whenever there are 1 % more; an audit looks at 5 % more. Since the
bound of a confidence sequence lies above the truth exactly where the true claim is refuted, the share of false alarms
is also the share of campaigns in which some bound on the way was wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from deniable.evidence.anytime.sequential import THRESHOLDS, Tally, growth, hockey_sticks, log_wealth
from deniable.evidence.anytime.watch import expected_trials, looks, observer_tally
from deniable.evidence.anytime.watched_rows import watch_rows
from deniable.evidence.attack_scores import Scores
from deniable.mechanisms import ApproximateDP, Gaussian, GaussianDP, Laplace, Mechanism
from deniable.scores import privacy_loss

TRIALS, RISK = 5000, 0.05
LOOKS = np.array(looks(TRIALS, 1, 1.01))
_AT_ONCE = 32
Draw = Callable[[NDArray[np.bool_], np.random.Generator], NDArray[np.float64]]
"""Log-odds of an observer who believes the claim, from the coins."""


def gaussian(claim: float, true: float) -> Draw:
    """The observer computes with the claimed noise."""
    return lambda on_d, draw: claim**2 * (np.where(on_d, 0.5, -0.5) + draw.standard_normal(on_d.size) / true)


def response(claim: float, true: float) -> Draw:
    def odds(on_d: NDArray[np.bool_], draw: np.random.Generator) -> NDArray[np.float64]:
        return np.where(on_d == (draw.random(on_d.size) < 1 / (1 + exp(-true))), claim, -claim)

    return odds


def laplace(claim: float, true: float) -> Draw:
    """Sensitivity 1, noise of scale 1/true; clipped, since the low bits of the sum tell the data sets apart."""

    def odds(on_d: NDArray[np.bool_], draw: np.random.Generator) -> NDArray[np.float64]:
        seen = on_d + draw.laplace(0, 1 / true, on_d.size)
        return np.clip(claim * (np.abs(seen) - np.abs(seen - 1)), -claim, claim)

    return odds


def sampled(claim: float, true: float) -> Draw:
    """One sampled Gaussian step (rate .2, add-remove): log-odds of the mixture against noise alone."""

    def odds(on_d: NDArray[np.bool_], draw: np.random.Generator) -> NDArray[np.float64]:
        seen = (on_d & (draw.random(on_d.size) < 0.2)) + true * draw.standard_normal(on_d.size)
        return np.log1p(0.2 * np.expm1((seen - 0.5) / claim**2))

    return odds


LAWS: dict[str, tuple[Callable[[float], Mechanism], Callable[[float, float], Draw]]] = {
    "Gaussian, mu": (GaussianDP, gaussian),
    "randomized response, epsilon": (lambda epsilon: ApproximateDP(epsilon, 0.0), response),
    "Laplace, epsilon": (lambda epsilon: Laplace(1 / epsilon), laplace),
    "sampled Gaussian, noise": (lambda noise: Gaussian(noise).subsampled(0.2), sampled),
}
KEPT = {
    "Gaussian, mu": (0.3, 0.5, 1.0, 1.5, 2.0, 3.0),
    "randomized response, epsilon": (0.5, 1.0, 2.0, 4.0),
    "Laplace, epsilon": (0.5, 1.0, 3.0),
    "sampled Gaussian, noise": (0.5, 1.0),
}
BROKEN = {
    "Gaussian, mu": ((1.0, 2.0), (1.0, 1.5), (1.0, 1.25), (0.3, 0.6), (0.5, 1.0), (2.0, 3.0), (2.0, 4.0), (3.0, 5.0)),
    "randomized response, epsilon": ((0.5, 1.0), (1.0, 1.5), (1.0, 2.0), (2.0, 3.0), (2.0, 4.0), (4.0, 6.0)),
    "Laplace, epsilon": ((0.5, 1.0), (1.0, 2.0), (2.0, 4.0)),
    "sampled Gaussian, noise": ((1.0, 0.5),),
}


def refuted_after(law: str, claim: float, true: float, campaigns: int) -> NDArray[np.float64]:
    """Trials of each campaign until the claim is refuted; infinite where 5,000 do not do it."""
    mechanism, observer = LAWS[law]
    deltas, draw = hockey_sticks(privacy_loss(mechanism(claim), "add-remove")), observer(claim, true)
    generator, found = np.random.default_rng(1), np.full(campaigns, np.inf)
    for number in range(campaigns):
        on_d = generator.random(TRIALS) < 0.5
        counts = _counts(draw(on_d, generator), on_d)
        likely = np.flatnonzero(_largest_log(counts, deltas) >= log(1 / RISK))
        for part in np.split(likely, range(_AT_ONCE, likely.size, _AT_ONCE)):
            tallies = [Tally(int(LOOKS[place]), counts[:, :, place]) for place in part]
            refuted = np.flatnonzero(log_wealth(tallies, deltas) >= log(1 / RISK)) if tallies else part
            if refuted.size:
                found[number] = LOOKS[part[refuted[0]]]
                break
    return found


def _counts(log_odds: NDArray[np.float64], on_d: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What a `Tally` counts, at every look."""
    above, below = (sign * log_odds > np.array(THRESHOLDS)[:, None] for sign in (1, -1))
    named = np.stack([above & on_d, above & ~on_d, below & ~on_d, below & on_d], axis=1)
    return np.cumsum(named, axis=2)[:, :, LOOKS - 1]


def _largest_log(counts: NDArray[np.int64], deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the best bet at every look: the wealth is a mean, so that it need only be computed where this is large."""
    most = np.full(LOOKS.size, -np.inf)
    for cost, right, wrong in (
        (deltas, counts[:, 0] + counts[:, 2], counts[:, 1] + counts[:, 3]),
        (deltas / 2, counts[:, 0], counts[:, 1]),
        (deltas / 2, counts[:, 2], counts[:, 3]),
    ):
        factors = np.stack([factor.ravel() for factor in growth(cost)])
        for named in zip(right, wrong, strict=True):
            table = np.stack([*named, LOOKS - sum(named)], axis=1).astype(float)
            most = np.maximum(most, (table @ factors).max(axis=1))
    return most


def errors(campaigns: int) -> None:
    for law, values in KEPT.items():
        for value in values:
            alarms = np.isfinite(refuted_after(law, value, value, campaigns)).mean()
            error = 2 * (alarms * (1 - alarms) / campaigns) ** 0.5
            print(f"| {law} {value:g} | {100 * alarms:.2f} % (± {100 * error:.2f}) |", flush=True)


def catches(campaigns: int) -> None:
    for law, pairs in BROKEN.items():
        for claim, true in pairs:
            found = refuted_after(law, claim, true, campaigns)
            median, late = np.quantile(found, [0.5, 0.9], method="inverted_cdf")
            forecast = ""
            if law.startswith("Gaussian"):
                deltas = hockey_sticks(privacy_loss(GaussianDP(claim)))
                forecast = f"{expected_trials(observer_tally(true), deltas, RISK):,}"
            print(f"| {law} {claim:g} | {true:g} | {median:,.0f} | {late:,.0f} | {forecast} |", flush=True)


def rows(campaigns: int) -> None:
    """Files of 2,500 scores with so many members: coins of the watch's own choose the next row."""
    asked = [(law, true) for law in list(LAWS)[:2] for true in (1.0, 2.0)]
    for share in (0.1, 0.3, 0.5):
        for law, true in asked:
            found = [_refuted_row(law, true, share, seed) for seed in range(campaigns)]
            alarms, median = np.isfinite(found).mean(), np.quantile(found, 0.5, method="inverted_cdf")
            print(f"| {law} 1 | {true:g} | {100 * share:.0f} % | {100 * alarms:.1f} % | {median:g} |", flush=True)


def _refuted_row(law: str, true: float, share: float, seed: int) -> float:
    """After how many rows the claim of 1 is refuted."""
    mechanism, observer = LAWS[law]
    generator = np.random.default_rng(seed)
    member = generator.random(2500) < share
    scores = observer(1.0, true)(member, generator)
    watched = watch_rows(Scores(scores[member], scores[~member]), privacy_loss(mechanism(1.0)), RISK)
    return watched.refuted_after or np.inf


def main(words: list[str]) -> None:
    match words:
        case ["errors", campaigns]:
            errors(int(campaigns))
        case ["catches", campaigns]:
            catches(int(campaigns))
        case ["rows", campaigns]:
            rows(int(campaigns))
        case _:
            print(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
