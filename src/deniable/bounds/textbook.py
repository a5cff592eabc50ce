"""The textbook's formulas: the Gaussian mechanism, and naive and advanced composition, also as applied to DP-SGD.

`noise` is sigma / sensitivity throughout; k steps of noise z without sampling are one step of noise z / sqrt(k). The
Gaussian mechanism has the classic calibration, Bernau 2021's Theorem 3, and the Renyi form of it.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import exp, expm1, log, sqrt
from sys import float_info

from scipy.special import erfinv

from deniable.bounds.divergences import epsilon_to_rho, rho_to_epsilon_classic
from deniable.bounds.numeric import InapplicableError, gaussian_rho
from deniable.bounds.risk_bounds import belief_to_epsilon
from deniable.bounds.runs import Tuning, amplify_epsilon, base, gaussian_noise, pure_epsilon, runs_between, sampling
from deniable.bounds.variation import shift_tvd
from deniable.checks import positive, probability, whole
from deniable.mechanisms import Adjacency, ApproximateDP, Mechanism, TotalVariation, named_adjacency


def classic_noise(epsilon: float, delta: float) -> float:
    """sqrt(2 ln(1.25/delta)) / epsilon (Jia 2023, Theorem 2); a guarantee only where `classic_is_proved(epsilon)`."""
    return _classic_factor(delta) / positive("epsilon", epsilon)


def classic_epsilon(noise: float, delta: float) -> float:
    """The epsilon that the classic formula claims for `noise`; a guarantee only where `classic_is_proved` for it."""
    return _classic_factor(delta) / positive("noise", noise)


def classic_is_proved(epsilon: float) -> bool:
    """Whether the classic formula is proved at this epsilon: it is up to 1, and is false for large ones (erratum 3)."""
    return positive("epsilon", epsilon, zero=True) <= 1


def proved_epsilon(noise: float, delta: float) -> float:
    """The classic epsilon where it is proved, else rho + 2 sqrt(rho ln(1/delta)) with rho = 1/(2 noise^2).

    Guarantee: one Gaussian step of this noise is (result, delta)-DP for every noise and every delta in (0, 1].
    """
    if delta >= 1:
        return 0.0
    classic = classic_epsilon(noise, delta)
    return classic if classic_is_proved(classic) else rho_to_epsilon_classic(gaussian_rho(noise), delta)


def least_classic_delta(noise: float) -> float:
    """1.25 e^(-noise^2 / 2): below it `proved_epsilon` jumps from the classic formula to the other."""
    return min(1.0, 1.25 * exp(-0.5 * noise * noise))


def epsilon_to_advantage(epsilon: float, delta: float) -> float:
    """Bernau 2021, Theorem 3: advantage 2 Phi(eps / (2 sqrt(2 ln(1.25/delta)))) - 1 of the classically calibrated
    Gaussian.

    It is exact for the noise `classic_noise(epsilon, delta)`; noise chosen in another way has another advantage
    (erratum 6).
    """
    return shift_tvd(positive("epsilon", epsilon, zero=True) / _classic_factor(delta))


def advantage_to_epsilon(advantage: float, delta: float) -> float:
    """Inverse of Theorem 3, with the factor 2 that Bernau 2021 (Eq. 6) lacks (erratum 1)."""
    if probability("advantage", advantage) == 1:
        raise ValueError("advantage must be below 1, got 1: no finite epsilon of a Gaussian gives it")
    return 2 * _classic_factor(delta) * sqrt(2) * float(erfinv(advantage))


def renyi_to_advantage(order: float, divergence: float) -> float:
    """2 Phi(sqrt(divergence / (2 order))) - 1: the exact advantage of Gaussian steps with this total Renyi divergence.

    Bernau 2021, Section 4.4, where the Gaussian's divergence is order k / (2 noise^2), so the result is free of the
    order.
    """
    return shift_tvd(sqrt(2 * positive("divergence", divergence, zero=True) / positive("order", order)))


def noise_for_belief(belief: float, delta: float, steps: int = 1, prior: float = 0.5) -> float:
    """Noise of each of `steps` Gaussian steps that Renyi DP with the classic conversion demands for a belief bound.

    The way Bernau 2020, Section 5 and Bernau 2021, Section 5 calibrate (Eq. 5, then RDP), converting once (erratum 5):
    minimised over the order, rho + 2 sqrt(rho ln(1/delta)) = epsilon with rho = steps / (2 noise^2), which has a closed
    inverse.
    """
    rho = epsilon_to_rho(belief_to_epsilon(belief, prior), delta)
    return sqrt(whole("steps", steps) / (2 * rho))


def _classic_factor(delta: float) -> float:
    return sqrt(2 * (log(1.25) - log(probability("delta", delta, open_ends=True))))


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
