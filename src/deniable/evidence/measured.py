"""What the trials show: beliefs, advantage, how often the promise was exceeded, and epsilon, each with its meaning.

Trials are read from their blocks with NumPy alone. Epsilon of the noise that was really added, relative to the local
sensitivities: Bernau 2021, Section 5.3, first way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import inf, isfinite, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from deniable.bounds.textbook import advantage_to_epsilon
from deniable.checks import LEAST_NOISE, MOST_NOISE, probability
from deniable.evidence.attack_scores import Errors, Scores
from deniable.evidence.bound import Assumption, Bound, epsilon_of_mu
from deniable.evidence.estimators import (
    AdvantageBound,
    GaussianCurve,
    MechanismCurve,
    Region,
    credible_bound,
    read_bound,
)
from deniable.evidence.intervals import advantage_interval
from deniable.evidence.likelihood import likelihood, separation
from deniable.evidence.limits import Interval, interval, quantile_interval
from deniable.evidence.thresholds import Limits, shift
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, Training, compose
from deniable.scores import beliefs, privacy_loss


@dataclass(frozen=True)
class Trials:
    """What all trials gave; rows are trials, columns are steps (see `BlockResult`)."""

    trained_on_d: NDArray[np.bool_]
    log_likelihood_ratio: NDArray[np.float64]
    local_sensitivity: NDArray[np.float64]
    sigma: NDArray[np.float64]

    @classmethod
    def join_blocks(cls, blocks: Iterable[Mapping[str, NDArray[Any]]], count: int) -> Self:
        """The first `count` trials of blocks in order; what the last one has too many is left out."""
        ordered = list(blocks)
        columns = {field.name: [block[field.name] for block in ordered] for field in fields(cls)}
        return cls(**{name: np.concatenate(parts)[:count] for name, parts in columns.items()})

    def __len__(self) -> int:
        return len(self.trained_on_d)


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Measured:
    """What the trials of one campaign show; None where a figure is infinite or undefined."""

    trials: int
    confidence: float
    advantage: Interval
    largest_belief: float
    belief_bound: float
    """The belief whose exceeding is counted."""
    violations: Interval
    belief_at_delta: Interval
    """The belief in the truth that only a share delta of the trials exceeds: what a promised belief is a bound on."""
    quantiles: dict[str, float]
    epsilon_from_sensitivity: float | None
    """Exact loss of the noise really added, relative to the local sensitivities: see `epsilon_from_sensitivity`."""
    epsilon_from_belief: float | None
    """ln(b / (1 - b)) of the largest belief b (Bernau 2021, Eq. 5; erratum 2): no statement of confidence."""
    epsilon_from_advantage: float | None
    """Of the Gaussian release with the measured advantage: an estimate, no statement of confidence."""
    epsilon_by_theorem_3: float | None
    """Inverse of Bernau 2021 (Theorem 3) with the factor 2 it lacks (erratum 1): an estimate under the classic
    calibration."""
    epsilon_lower_bound: float
    """Guarantee: above the true epsilon with probability at most 1 - confidence."""
    estimators: tuple[Bound, ...] = ()
    """Every estimator's bound, at the threshold belief = prior where it needs one."""
    provable_epsilon: float = inf
    """The largest lower bound that as many trials give, by the estimators of the verdict: see `provable_epsilon`."""

    def bound(self, name: str) -> Bound | None:
        """The bound of the estimator with this name, if a verdict may rest on it."""
        return next((bound for bound in self.estimators if bound.method == name and bound.decides), None)

    def tells(self, scores: Scores) -> bool:
        """Whether scores like these would be told from guessing, at this confidence."""
        return Limits.of(scores.errors(0.0), self.confidence).lower(shift) > 0


def measure(
    trials: Trials,
    training: Training,
    *,
    delta: float,
    belief_bound: float,
    scheduled: bool = False,
    confidence: float = 0.95,
) -> Measured:
    """Everything the trials of `training` show, at the campaign's delta and for the belief not to be exceeded.

    Where its noise is `scheduled`, another one in each step, the estimator that needs the noise is left out.
    """
    probability("confidence", confidence, open_ends=True)
    errors, signed = Errors.of(trials), _loss_of_truth(trials)
    sure = belief_in_truth(trials)
    advantage = advantage_interval(errors, confidence)
    return Measured(
        trials=len(trials),
        confidence=confidence,
        advantage=advantage,
        largest_belief=float(sure.max()),
        belief_bound=belief_bound,
        violations=interval(int(np.sum(sure > belief_bound)), len(trials), confidence),
        belief_at_delta=quantile_interval(sure, min(1 - delta, 1 - 2**-53), confidence),
        quantiles={f"{q:g}": float(value) for q, value in zip(QUANTILES, np.quantile(sure, QUANTILES), strict=True)},
        epsilon_from_sensitivity=epsilon_from_sensitivity(trials, delta, training.rate, training.adjacency),
        epsilon_from_belief=max(0.0, float(signed.max())),
        epsilon_from_advantage=gaussian_epsilon(advantage.value, delta),
        epsilon_by_theorem_3=_theorem_3(advantage.value, delta),
        epsilon_lower_bound=epsilon_lower_bound(errors, delta, confidence),
        estimators=tuple(_estimators(trials, delta, confidence, training, scheduled)),
        provable_epsilon=provable_epsilon(len(trials), None if scheduled else training, delta, confidence),
    )


def provable_epsilon(trials: int, training: Training | None, delta: float, confidence: float) -> float:
    """The epsilon that trials, half of each kind, prove of an observer who is never wrong.

    By `Region`, and by the exact trade-off curve where a `training` with one noise is claimed.
    """
    half = max(1, trials // 2)
    limits = Limits.of(Errors(0, half, 0, half), confidence)
    region = Region(delta).bound(limits).value
    return region if training is None else max(region, MechanismCurve.of(training, delta).bound(limits).value)


def _estimators(
    trials: Trials, delta: float, confidence: float, training: Training, scheduled: bool
) -> Iterator[Bound]:
    """Those at the fixed threshold share the limits on its two error rates, so that all of them are right together."""
    errors = Errors.of(trials)
    limits = Limits.of(errors, confidence)
    yield read_bound(Region(delta), limits)
    yield read_bound(AdvantageBound(delta), limits)
    sampled = training.rate < 1
    if not scheduled:
        yield read_bound(MechanismCurve.of(training, delta), limits)
    yield _unless(sampled, read_bound(GaussianCurve(delta), limits))
    yield credible_bound(errors, delta, confidence)
    final = trials.log_likelihood_ratio[:, -1]
    if errors.positives and errors.negatives and np.isfinite(final).all():
        scores = Scores.of(final, trials.trained_on_d)
        for estimator in (separation, likelihood):
            yield _unless(sampled, estimator(scores, delta, confidence))


def _unless(sampled: bool, bound: Bound) -> Bound:
    """A Gaussian estimator says nothing about sampled training, whose curve is another one."""
    if not sampled:
        return bound
    against = Assumption("every record is in every batch: the training claims to sample", False)
    return replace(bound, value=0.0, upper=inf, assumptions=(*bound.assumptions, against))


def belief_in_truth(trials: Trials) -> NDArray[np.float64]:
    """Each trial's final belief in the data set that was trained on."""
    return beliefs(_loss_of_truth(trials))


def _loss_of_truth(trials: Trials) -> NDArray[np.float64]:
    return np.where(trials.trained_on_d, 1.0, -1.0) * trials.log_likelihood_ratio[:, -1]


def epsilon_lower_bound(errors: Errors, delta: float, confidence: float) -> float:
    """A sound lower bound on epsilon at `delta`, from both error rates (errata 11 and 15).

    (epsilon, delta)-DP demands 1 - delta - FNR <= e^epsilon FPR, and the same with the rates exchanged. Both rates are
    replaced by Clopper and Pearson's upper limits, which hold together with `confidence` (`joint_tails`). The
    observer's threshold was fixed before the trials.
    """
    return Region(delta).bound(Limits.of(errors, confidence)).value


def gaussian_epsilon(advantage: float, delta: float) -> float | None:
    """Epsilon of the Gaussian release with this advantage: mu = 2 Phi^-1((advantage + 1) / 2)."""
    mu = 2 * float(ndtri((min(max(advantage, 0.0), 1.0) + 1) / 2))
    return epsilon_of_shift(mu, delta) if mu < inf else None


def _theorem_3(advantage: float, delta: float) -> float | None:
    return advantage_to_epsilon(max(advantage, 0.0), delta) if advantage < 1 else None


SHIFT_LEVELS = 8
"""Unlike steps of sampled batches are rounded up to so many; more cost more time than they gain precision."""


def epsilon_from_sensitivity(trials: Trials, delta: float, rate: float, adjacency: Adjacency) -> float | None:
    """The largest over the trials; None where it is infinite or the sensitivities do not decide it.

    A step whose neighbours differ by `mu` standard deviations of its noise is a Gaussian release of this mu. Full
    batches: a trial's steps together are one Gaussian release, and the result is exact. Sampled batches, add-remove: a
    trial is the composition of its sampled Gaussian releases; the steps' mu are rounded up to a few levels, so the
    result is at least the exact value. It is computed for the trial with the largest sum of e^{mu^2} - 1, to which
    the loss's variance is proportional.

    Sampled batches, replace: the distance between the two records' gradients does not bound the loss. If both lie far
    from zero, and so from what is seen when neither is drawn, the observer sees which steps count; the noise that
    hides them depends on their lengths, which the distance says nothing about.
    """
    shifts = _shifts(trials)
    if rate == 1:
        return epsilon_of_shift(largest_shift(trials), delta)
    if adjacency == Adjacency.REPLACE or not np.isfinite(shifts).all():
        return None
    with np.errstate(over="ignore"):
        most = shifts[np.expm1(np.square(shifts)).sum(axis=1).argmax()]
    if most.max() > 1 / LEAST_NOISE:
        return None
    return _finite(float(privacy_loss(_sampled_steps(most, rate), adjacency).epsilon(delta)))


def largest_shift(trials: Trials) -> float:
    """The largest sqrt(sum (sensitivity / sigma)^2) of a trial: its steps together are a Gaussian of this mu."""
    return sqrt(float(np.square(_shifts(trials)).sum(axis=1).max()))


def epsilon_of_shift(mu: float, delta: float) -> float | None:
    """Exact epsilon of a Gaussian release of this mu."""
    return _finite(epsilon_of_mu(mu, delta, at_most=True))


def _shifts(trials: Trials) -> NDArray[np.float64]:
    """Sensitivity / sigma of every step; 0 where the neighbours agree and no noise was added, which tells nothing."""
    silent = trials.local_sensitivity == 0
    with np.errstate(divide="ignore"):
        return np.where(silent, 0.0, trials.local_sensitivity / np.where(silent, 1.0, trials.sigma))


def _sampled_steps(shifts: NDArray[np.float64], rate: float) -> Mechanism:
    groups = np.array_split(np.sort(shifts[shifts > 0]), SHIFT_LEVELS)
    steps = (
        Gaussian(min(1 / float(group[-1]), MOST_NOISE)).subsampled(rate).composed(len(group))
        for group in groups
        if len(group)
    )
    return compose(*steps)


def _finite(epsilon: float) -> float | None:
    return epsilon if isfinite(epsilon) else None
