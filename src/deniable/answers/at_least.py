"""Samplings of which only bounds are known: the largest epsilon that some data are known to have.

A sampling without a better proof than no sampling, or with a bound that is not attained, may be much more private than
its bound, or not: the value from below tells how much of it is real.
"""

from __future__ import annotations

from math import expm1, inf, log, log1p

import numpy as np
from scipy.special import log_ndtr

from deniable.mechanisms import (
    Adjacency,
    Composed,
    FixedSize,
    Gaussian,
    Mechanism,
    RandomAllocation,
    Sampled,
    Shuffled,
)
from deniable.scores import privacy_loss

_POINTS = 2001  # thresholds that are tried, twice
_ROUNDOFF = 1e-12
_LEAST_PROBABILITY = 1e-250  # below it, differences from 1 have lost their digits


def epsilon_at_least(mechanism: Mechanism, delta: float, adjacency: Adjacency) -> float | None:
    """An epsilon below which the release is not (epsilon, delta)-DP; None where the loss itself is exact."""
    parts = mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)
    known = [
        _of_run(part.sampling, part.mechanism.noise, runs, delta, adjacency)
        for part, runs in parts
        if isinstance(part, Sampled)
        and isinstance(part.sampling, FixedSize | Shuffled)
        and isinstance(part.mechanism, Gaussian)
    ]
    return max(known, default=None) if delta > 0 else None


def _of_run(sampling: FixedSize | Shuffled, noise: float, runs: int, delta: float, adjacency: Adjacency) -> float:
    """Of one part alone, which whatever else is released does not lower."""
    if isinstance(sampling, FixedSize):
        rate = _chance_of_draw(sampling)
        return _least_epsilon(Gaussian(noise).subsampled(rate).composed(runs), delta)
    epochs = Gaussian(noise).subsampled(RandomAllocation(sampling.steps_per_epoch)).composed(runs)
    alone = _least_epsilon(epochs, delta)
    if adjacency is Adjacency.REPLACE:
        return alone
    return max(alone, shuffled_epsilon(noise, sampling.steps_per_epoch, delta))


def _chance_of_draw(sampling: FixedSize) -> float:
    """That a record is in a batch. With replacement it may be there several times, which only helps the observer:
    the best test accuses where the sums are large, and they are larger then.
    """
    if sampling.replacement:
        return -expm1(sampling.batch * log1p(-1 / sampling.records)) if sampling.records > 1 else 1.0
    return min(1.0, sampling.batch / sampling.records)


def _least_epsilon(mechanism: Mechanism, delta: float) -> float:
    return max(privacy_loss(mechanism, Adjacency.ADD_REMOVE).epsilon(delta).least, 0.0)


def shuffled_epsilon(noise: float, steps: int, delta: float) -> float:
    """Of one shuffled pass, zero-out: all other records pull one way (Chua 2024, Lemma A5).

    The event is that some step's sum exceeds a threshold, and the best threshold is sought.
    """
    mu = 1 / noise
    low, high = -2.0, 2 * mu + 12.0
    best = -inf
    for _ in range(2):
        at = np.linspace(low, high, _POINTS)
        values = _event_epsilon(at, mu, steps, delta)
        place = int(values.argmax())
        best = max(best, float(values[place]))
        low, high = at[max(place - 1, 0)], at[min(place + 1, _POINTS - 1)]
    return max(best * (1 - _ROUNDOFF), 0.0)


def _event_epsilon(at: np.ndarray, mu: float, steps: int, delta: float) -> np.ndarray:
    """ln of (P - delta) / Q of the event, where P and Q are 1 - Phi(c - shift) Phi(c)^(steps - 1).

    Where Q is too small for a number, the sum over the steps bounds it.
    """
    own, null = (-np.expm1(log_ndtr(at - shift) + (steps - 1) * log_ndtr(at)) for shift in (2 * mu, mu))
    every = np.logaddexp(log_ndtr(mu - at), log(steps) + log_ndtr(-at))
    more, seen = own > delta, null > _LEAST_PROBABILITY
    log_null = np.where(seen, np.log(np.where(seen, null, 1.0)), every)
    return np.where(more, np.log(np.where(more, own - delta, 1.0)) - log_null, -inf)
