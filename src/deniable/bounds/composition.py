"""Naive and advanced composition of (epsilon, delta) guarantees, and the seeds' way of applying them to DP-SGD."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import expm1, log, sqrt
from sys import float_info

from scipy.special import expit

from deniable.bounds.gaussian import proved_epsilon
from deniable.bounds.numeric import InapplicableError
from deniable.bounds.runs import amplified, base, gaussian_noise, pure_epsilon, runs, sampling
from deniable.bounds.tuning import Tuning
from deniable.checks import probability
from deniable.mechanisms import Adjacency, ApproximateDP, Mechanism, TotalVariation

__all__ = ["advanced_composition", "advanced_epsilon", "naive_composition", "naive_epsilon"]

Part = tuple[ApproximateDP, int]
GaussianStep = Callable[[float, float], float]
"""(noise, delta) -> epsilon of one Gaussian step."""


def naive_composition(parts: Iterable[Part]) -> ApproximateDP:
    """Epsilons add and deltas add, over (guarantee, number of runs) pairs that may be unlike (001 Theorem 2)."""
    parts = tuple(parts)
    epsilon = sum(steps * part.epsilon for part, steps in parts)
    return ApproximateDP(epsilon, min(1.0, sum(steps * part.delta for part, steps in parts)))


def advanced_composition(parts: Iterable[Part], slack: float) -> ApproximateDP:
    """sqrt(2 ln(1/slack) sum eps^2) + sum eps (e^eps - 1), at delta = slack + sum delta.

    Dwork, Rothblum and Vadhan 2010, Theorem III.3, which 004 calls advanced; its martingale argument (Azuma) allows
    unlike parts. Far above the naive sum where the single epsilons are large, as 004 Table 1 shows.
    """
    parts = tuple(parts)
    probability("slack", slack, open_ends=True)
    spread = sqrt(2 * -log(slack) * sum(steps * part.epsilon * part.epsilon for part, steps in parts))
    drift = sum(steps * part.epsilon * _expm1(part.epsilon) for part, steps in parts)
    delta = min(1.0, slack + sum(steps * part.delta for part, steps in parts))
    # The naive sum is valid too and finite, so the largest float is as true a bound as an overflowing one.
    return ApproximateDP(min(spread + drift, float_info.max), delta)


def naive_epsilon(
    mechanism: Mechanism,
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    gaussian_step: GaussianStep = proved_epsilon,
) -> float:
    """Epsilon at delta: each Gaussian step at delta_0 = delta / (rate steps), amplified by sampling, times steps.

    004 Table 1's naive column, with `gaussian_step=classic_epsilon`; that formula is not proved for the column's last
    two rows (step epsilon 5 and 13), so the default replaces it where it is not. Guarantee, with the default: the
    release is (result, delta)-DP. Supports every mechanism; a bare (epsilon, delta) part spends its own delta.
    """
    found = runs(mechanism, Adjacency(adjacency))
    return naive_composition(_parts(found, _budget(found, delta), gaussian_step)).epsilon


def advanced_epsilon(
    mechanism: Mechanism,
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    gaussian_step: GaussianStep = proved_epsilon,
    tuning: Tuning | None = None,
) -> float:
    """Epsilon at delta by `advanced_composition`, delta split between the steps and the slack in the best proportion.

    004 Table 1's advanced column, with `gaussian_step=classic_epsilon`. Halves would give its first two rows but
    44,179 and 5.4e8 in the last two; the best split gives all five within the rounding of the printed noise.
    Guarantee and support as for `naive_epsilon`.
    """
    found = runs(mechanism, Adjacency(adjacency))
    budget = _budget(found, delta)
    if budget <= 0:
        raise InapplicableError(f"advanced: delta must be above what the bare guarantees spend, got {delta!r}")

    def at(logit_of_slack_share: float) -> float:
        slack = budget * float(expit(logit_of_slack_share))
        rest = budget * float(expit(-logit_of_slack_share))
        return advanced_composition(_parts(found, rest, gaussian_step), slack).epsilon

    if not any(gaussian_noise(part) is not None for part, _ in found):
        return advanced_composition(_parts(found, 0.0, gaussian_step), budget).epsilon
    return (tuning or Tuning()).least("slack", at)


def _budget(found: Sequence[tuple[Mechanism, int]], delta: float) -> float:
    """What is left of delta for the Gaussian steps and the slack once the bare guarantees have spent theirs."""
    probability("delta", delta)
    spent = naive_composition(_parts(found, 0.0, lambda noise, share: 0.0)).delta
    if spent > delta or (spent == delta and any(gaussian_noise(part) is not None for part, _ in found)):
        raise InapplicableError(
            f"delta must be above {spent:g}, which the guarantees composed here spend, got {delta!r}"
        )
    return delta - spent


def _parts(found: Sequence[tuple[Mechanism, int]], budget: float, gaussian_step: GaussianStep) -> list[Part]:
    share = budget / max(1, sum(steps for part, steps in found if gaussian_noise(part) is not None))
    return [(_step(part, share, gaussian_step), steps) for part, steps in found]


def _step(mechanism: Mechanism, share: float, gaussian_step: GaussianStep) -> ApproximateDP:
    """The guarantee of one run, a Gaussian one spending `share` of delta after sampling."""
    rate = sampling(mechanism)
    noise = gaussian_noise(mechanism)
    if noise is not None:
        epsilon = gaussian_step(noise, share / rate) if share < rate else 0.0  # everything is (0, 1)-DP
        return ApproximateDP(amplified(epsilon, rate), share)
    match base(mechanism):
        case ApproximateDP(epsilon, delta):
            return ApproximateDP(amplified(epsilon, rate), rate * delta)
        case TotalVariation(alpha):
            return ApproximateDP(0.0, rate * alpha)
    pure = pure_epsilon(mechanism)
    if pure is None:
        raise InapplicableError(f"naive and advanced composition know no (epsilon, delta) for {mechanism}")
    return ApproximateDP(pure)


def _expm1(x: float) -> float:
    return expm1(x) if x < 700 else float_info.max
