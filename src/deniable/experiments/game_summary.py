"""What one identifiability game shows: all that the tables and figures of Bernau 2020 and Bernau 2021 read of it."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import expit, ndtri

from deniable.results.base import Part


class MeanError(Part, frozen=True, kw_only=True):
    """A mean and its standard error."""

    mean: float
    error: float


class QuantileSpread(Part, frozen=True, kw_only=True):
    """A mean, and the quantiles 5, 25, 50, 75 and 95 %."""

    mean: float
    quantiles: tuple[float, ...]


class BeliefSpread(QuantileSpread, frozen=True, kw_only=True):
    """The final beliefs in the data that was trained on."""

    max: float


class StepSpread(Part, frozen=True, kw_only=True):
    """The same of every step: `quantiles` has a row for each of the five quantiles."""

    mean: list[float]
    quantiles: list[list[float]]


class SensitivitySpread(QuantileSpread, frozen=True, kw_only=True):
    """Local sensitivities of all steps together, and step by step."""

    steps: StepSpread


class EpsilonEstimates(Part, frozen=True, kw_only=True):
    """Epsilon by Bernau 2021, Section 5.3's three ways; by sensitivity with the paper's RDP and exactly."""

    sensitivity: float
    sensitivity_exact: float
    belief: float
    advantage: float


class GameSummary(Part, frozen=True, kw_only=True):
    """One campaign; what only attacked trainings have is None where none was attacked."""

    trials: int
    records: int
    delta: float
    epsilon: float
    noise: float
    dissimilarity: float
    exact_advantage: float
    advantage: float
    """Of A_DI, by its wins."""
    advantage_error: float
    expected_advantage: float
    """Of A_DI, by what its own beliefs expect it to win: with far less scatter."""
    expected_advantage_error: float
    belief: BeliefSpread
    beliefs: list[int]
    """How many beliefs lie in each of the equal bins of [0, 1]."""
    violations: float
    epsilon_from: EpsilonEstimates
    sensitivity: SensitivitySpread
    membership: MeanError | None
    """Advantage of A_MI."""
    membership_gain: MeanError | None
    """The same beyond what A_MI has on the untrained model."""
    accuracy: QuantileSpread | None

    @property
    def binomial_error(self) -> float:
        """The standard error of the measured advantage where the true one is that of the noise really added."""
        return sqrt((1 - self.exact_advantage**2) / self.trials)


class ExactBelief(Part, frozen=True, kw_only=True):
    """Mean and 95 % quantile of the belief in the truth, with the standard errors of as many trials."""

    mean: float
    mean_error: float
    high: float
    high_error: float


def exact_belief(advantage: float, trials: int) -> ExactBelief:
    """The belief in the truth, exactly, where the noise is scaled to the real sensitivity and admits this advantage.

    The privacy loss is then normal with mean mu^2/2 and deviation mu.
    """
    mu, top = 2 * ndtri((1 + advantage) / 2), 0.95
    normal = np.linspace(-8, 8, 4001)
    weight = np.exp(-(normal**2) / 2)
    weight /= weight.sum()
    belief = expit(mu**2 / 2 + mu * normal)
    mean, square = (float((weight * belief**power).sum()) for power in (1, 2))
    quantile = float(expit(mu**2 / 2 + mu * ndtri(top)))
    density = np.exp(-(ndtri(top) ** 2) / 2) / sqrt(2 * np.pi) / (mu * quantile * (1 - quantile))
    return ExactBelief(
        mean=mean,
        mean_error=sqrt((square - mean**2) / trials),
        high=quantile,
        high_error=float(sqrt(top * (1 - top) / trials) / density),
    )
