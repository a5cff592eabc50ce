"""Epsilon of the noise that was really added, relative to the local sensitivities.

Bernau 2021, Section 5.3, first way.
"""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from deniable.checks import LEAST_NOISE, MOST_NOISE
from deniable.evidence.bound import epsilon_of_mu
from deniable.evidence.played_trials import Trials
from deniable.mechanisms import Adjacency, Gaussian, Mechanism, compose
from deniable.scores import privacy_loss

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
