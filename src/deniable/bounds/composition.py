"""Naive and advanced composition of (epsilon, delta) guarantees, and the seeds' way of applying them to DP-SGD."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import exp, expm1, log, sqrt
from sys import float_info

from deniable.bounds.gaussian_bounds import least_classic_delta, proved_epsilon
from deniable.bounds.numeric import InapplicableError
from deniable.bounds.runs import amplify_epsilon, base, gaussian_noise, pure_epsilon, runs_between, sampling
from deniable.bounds.tuning import Tuning
from deniable.checks import probability
from deniable.mechanisms import Adjacency, ApproximateDP, Mechanism, TotalVariation, named_adjacency

_TINY = 1e-6
_LEAST_DELTA = 1e-300
"""For Gaussian steps: a share of it, over 10^9 steps, is still above 0."""
Part = tuple[ApproximateDP, int]
GaussianStep = Callable[[float, float], float]
"""(noise, delta) -> epsilon of one Gaussian step."""


def naive_composition(parts: Iterable[Part]) -> ApproximateDP:
    """Epsilons add and deltas add, over (guarantee, number of runs) pairs that may be unlike.

    Bernau 2021, Theorem 2.
    """
    parts = tuple(parts)
    epsilon = sum(steps * part.epsilon for part, steps in parts)
    return ApproximateDP(epsilon, min(1.0, sum(steps * part.delta for part, steps in parts)))


def advanced_composition(parts: Iterable[Part], slack: float) -> ApproximateDP:
    """sqrt(2 ln(1/slack) sum eps^2) + sum eps (e^eps - 1), at delta = slack + sum delta.

    Dwork, Rothblum and Vadhan 2010, Theorem III.3, which Erlingsson 2019 calls advanced; its martingale argument
    (Azuma) allows unlike parts. Far above the naive sum where the single epsilons are large, as Erlingsson 2019, Table
    1 shows.
    """
    parts = tuple(parts)
    probability("slack", slack, open_ends=True)
    delta = min(1.0, slack + sum(steps * part.delta for part, steps in parts))
    return ApproximateDP(_compose_advanced([(part.epsilon, steps) for part, steps in parts], slack), delta)


def _compose_advanced(epsilons: Iterable[tuple[float, int]], slack: float) -> float:
    squares = drift = 0.0
    for epsilon, steps in epsilons:
        squares += steps * epsilon * epsilon
        drift += steps * epsilon * _expm1(epsilon)
    # The naive sum is valid too and finite, so the largest float is as true a bound as an overflowing one.
    return min(sqrt(2 * -log(slack) * squares) + drift, float_info.max)


def naive_epsilon(
    mechanism: Mechanism,
    delta: float,
    adjacency: Adjacency | str | None = None,
    gaussian_step: GaussianStep = proved_epsilon,
) -> float:
    """Epsilon at delta: each Gaussian step at delta_0 = delta / (rate steps), amplified by sampling, times steps.

    Erlingsson 2019, Table 1's naive column, with `gaussian_step=classic_epsilon`; that formula is not proved for the
    column's last two rows (step epsilon 5 and 13), so the default replaces it where it is not. Guarantee, with the
    default: the release is (result, delta)-DP. Supports every mechanism; a bare (epsilon, delta) part spends its own
    delta.
    """
    release = _Release(mechanism, delta, adjacency, gaussian_step)
    return sum(steps * epsilon for epsilon, steps in release.epsilons(release.budget))


def advanced_epsilon(
    mechanism: Mechanism,
    delta: float,
    adjacency: Adjacency | str | None = None,
    gaussian_step: GaussianStep = proved_epsilon,
    tuning: Tuning | None = None,
) -> float:
    """Epsilon at delta by `advanced_composition`, delta split between the steps and the slack in the best proportion.

    Erlingsson 2019, Table 1's advanced column, with `gaussian_step=classic_epsilon`. Halves would give its first two
    rows but 44,179 and 5.4e8 in the last two; the best split gives all five within the rounding of the printed noise.
    Guarantee and support as for `naive_epsilon`.
    """
    release = _Release(mechanism, delta, adjacency, gaussian_step)
    budget = release.budget
    if budget <= 0:
        raise InapplicableError(f"advanced: delta must be above what the bare guarantees spend, got {delta!r}")
    if not release.gaussian:
        return _compose_advanced(release.epsilons(0.0), budget)

    def at(logit: float) -> float:
        slack, rest = budget / (1 + exp(-logit)), budget / (1 + exp(logit))
        return _compose_advanced(release.epsilons(rest), slack)

    return (tuning or Tuning()).least("slack", at, [log(budget / rest - 1) for rest in release.jumps()])


def jumps(mechanism: Mechanism, delta: float, adjacency: Adjacency | None) -> list[float]:
    """Where below `delta` naive composition's epsilon jumps up as its delta falls."""
    release = _Release(mechanism, delta, adjacency, proved_epsilon)
    return [delta - release.budget + spent for spent in release.jumps()]


class _Release:
    """The runs as they are composed: those with a guarantee of their own, and the Gaussian ones that share a delta."""

    def __init__(
        self, mechanism: Mechanism, delta: float, adjacency: Adjacency | str | None, gaussian_step: GaussianStep
    ) -> None:
        probability("delta", delta)
        self.bare: list[Part] = []
        self.gaussian: list[tuple[float, float, int]] = []  # noise, rate, steps
        self._gaussian_step = gaussian_step
        for part, steps in runs_between(mechanism, named_adjacency(mechanism, adjacency)):
            noise = gaussian_noise(part)
            if noise is None:
                self.bare.append((_bare(part), steps))
            else:
                self.gaussian.append((noise, sampling(part), steps))
        self._steps = sum(steps for _, _, steps in self.gaussian)
        self.budget = self._left(delta)

    def _left(self, delta: float) -> float:
        """What is left of delta for the Gaussian steps and the slack once the bare guarantees have spent theirs."""
        spent = naive_composition(self.bare).delta
        if spent > delta or (spent == delta and self.gaussian):
            raise InapplicableError(
                f"delta must be above {spent:g}, which the guarantees composed here spend, got {delta!r}"
            )
        if self.gaussian and delta - spent < _LEAST_DELTA:
            raise InapplicableError(f"delta must leave {_LEAST_DELTA:g} for the Gaussian steps, got {delta!r}")
        return delta - spent

    def epsilons(self, budget: float) -> list[tuple[float, int]]:
        """Of all runs, with their counts; each Gaussian step spends the same share of the budget after sampling."""
        share = budget / max(1, self._steps)
        gaussian = [(self._step(noise, rate, share), steps) for noise, rate, steps in self.gaussian]
        return [*((part.epsilon, steps) for part, steps in self.bare), *gaussian]

    def jumps(self) -> list[float]:
        """The parts of the budget, if not tiny, with which the steps of one noise just have the classic formula."""
        spent = (self._steps * rate * least_classic_delta(noise) for noise, rate, _ in self.gaussian)
        return [part for part in spent if _TINY * self.budget < part < self.budget]

    def _step(self, noise: float, rate: float, share: float) -> float:
        epsilon = self._gaussian_step(noise, share / rate) if share < rate else 0.0  # everything is (0, 1)-DP
        return amplify_epsilon(epsilon, rate)


def _bare(mechanism: Mechanism) -> ApproximateDP:
    """The guarantee of one run that is not Gaussian."""
    rate = sampling(mechanism)
    match base(mechanism):
        case ApproximateDP(epsilon, delta):
            return ApproximateDP(amplify_epsilon(epsilon, rate), rate * delta)
        case TotalVariation(alpha):
            return ApproximateDP(0.0, rate * alpha)
    pure = pure_epsilon(mechanism)
    if pure is None:
        raise InapplicableError(f"naive and advanced composition know no (epsilon, delta) for {mechanism}")
    return ApproximateDP(pure)


def _expm1(x: float) -> float:
    return expm1(x) if x < 700 else float_info.max
