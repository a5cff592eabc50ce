"""What is said of a release beside its scores: Gaussian DP, singling out, and what some data are known to reach.

The tightest Gaussian DP, and how well it fits: Gomez 2026, Section 3. Singling out, re-identification, attribute
inference and reconstruction are one point of the trade-off curve each. Of some samplings only bounds are known: beside
them stands the largest epsilon that some data are known to have.

A sampling without a better proof than no sampling, or with a bound that is not attained, may be much more private than
its bound, or not: the value from below tells how much of it is real.
"""

from __future__ import annotations

from math import exp, expm1, inf, isfinite, log, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from deniable.checks import of_kind, probability, whole
from deniable.loss.pairs.gaussian import GaussianStep
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
from deniable.results.shared import GaussianFit, SinglingOut
from deniable.scores import PrivacyLoss, privacy_loss

LEAST_RATE = 1e-10
"""Attacks with fewer false alarms, or with fewer misses, are left aside: of them no sampled release is Gaussian."""
POOR_FIT = 1e-2
"""From this regret on the curve is to be shown in place of mu."""
_LINES = 80
_CLOSER = 12
_GRID = 2001
_STEEPEST = 600.0
Floats = NDArray[np.float64]


def fit_gaussian(loss: PrivacyLoss) -> GaussianFit:
    """The least mu with which no attack does better than against N(0, 1) and N(mu, 1), and the regret of telling it.

    Every (epsilon, delta) of the release is a tangent of its ROC curve. The curve lies below all tangents, and what
    lies below a Gaussian ROC curve is convex, so the corners of the tangents bound mu from above; an attack reaches
    `mu` - `error`. The regret is the least k with f(a + k) - k <= G_mu(a) for all a, f being the trade-off curve; it is
    read off the tangents, to about 1e-3.

    Args:
        loss: Of the release.

    Returns:
        `mu` with its `error`, and the regret.

    Examples:
        >>> import deniable as dn
        >>> round(dn.fit_gaussian(dn.privacy_loss(dn.Laplace(2.0))).mu, 3)
        0.562
    """
    _check_loss(loss)
    if isinstance(loss.pair, GaussianStep):
        return GaussianFit(mu=loss.pair.mu, error=0.0, regret=0.0, least_rate=LEAST_RATE)
    steepest = min(max(float(pair.null_exceeded(LEAST_RATE)) for pair in loss._directions), _STEEPEST)
    slopes = np.linspace(0.0, max(steepest if isfinite(steepest) else _STEEPEST, 1e-3), _LINES)
    heights = np.array([float(loss.delta(k)) for k in slopes])
    for _ in range(2):
        best = int(np.argmax(_shifts(*_corners(slopes, heights))[:-1]))
        closer = np.linspace(slopes[max(best - 1, 0)], slopes[min(best + 2, len(slopes) - 1)], _CLOSER + 2)[1:-1]
        slopes = np.concatenate([slopes, closer])
        heights = np.concatenate([heights, [float(loss.delta(k)) for k in closer]])
        order = np.argsort(slopes)
        slopes, heights = slopes[order], heights[order]
    fpr, tpr = _corners(slopes, heights)
    mu = float(np.max(_shifts(fpr, tpr), initial=0.0))
    reached = _least_mu(loss, slopes[[int(np.argmax(_shifts(fpr, tpr)[:-1])), -1]])
    return GaussianFit(mu=mu, error=max(mu - reached, 0.0), regret=_regret(fpr, tpr, mu), least_rate=LEAST_RATE)


def _corners(slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """Where neighbouring tangents meet, from slope 1 on, and the point at the least rate as the last one."""
    rise = np.exp(slopes)
    met = np.maximum(-np.diff(heights), 0.0) / np.maximum(np.diff(rise), 1e-300)
    fpr = np.append(np.maximum(met, LEAST_RATE), LEAST_RATE)
    tpr = np.min(heights[:, None] + rise[:, None] * fpr[None, :], axis=0)
    return fpr, np.minimum(tpr, 1.0)


def _shifts(fpr: Floats, tpr: Floats) -> Floats:
    """The mu whose ROC curve goes through a point; none where an attack guesses blindly."""
    with np.errstate(invalid="ignore"):
        found = -ndtri(fpr) + ndtri(tpr)
    return np.where(np.isfinite(found) | (tpr >= 1), np.nan_to_num(found, nan=0.0, posinf=inf), 0.0)


def _least_mu(loss: PrivacyLoss, thresholds: Floats) -> float:
    """The mu that tests at these thresholds, and the one with the least rate, have at least."""
    found = loss.tpr(LEAST_RATE).least
    best = float(-ndtri(LEAST_RATE) + ndtri(found)) if LEAST_RATE < found < 1 else 0.0
    for pair in loss._directions:
        for threshold in thresholds:
            wrong, right = float(pair.null_tail(float(threshold))), max(pair.tail(float(threshold)).least, 0.0)
            if LEAST_RATE <= wrong < right < 1:
                best = max(best, float(-ndtri(wrong) + ndtri(right)))
    return best


def _regret(fpr: Floats, tpr: Floats, mu: float) -> float:
    """By bisection; the curve is the mirror image of itself."""
    if not isfinite(mu):
        return 1.0
    right = np.concatenate([[0.0], fpr[::-1], 1 - tpr, [1.0]])
    up = np.concatenate([[tpr[-1]], tpr[::-1], 1 - fpr, [1.0]])
    order = np.argsort(right, kind="stable")
    right, up = right[order], np.maximum.accumulate(up[order])
    at = np.linspace(0.0, 1.0, _GRID)
    with np.errstate(invalid="ignore"):
        gaussian = ndtr(np.nan_to_num(-ndtri(at), posinf=40.0, neginf=-40.0) - mu)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        missed = 1 - np.interp(np.minimum(at + middle, 1.0), right, up) - middle
        low, high = (low, middle) if np.all(missed <= gaussian + 1e-12) else (middle, high)
    return high


def singling_out(loss: PrivacyLoss, weight: float, people: int) -> SinglingOut:
    """By how much the release helps to single out: predicates that fit a share `weight` of all people (Cohen 2020).

    Targeted, at one person: success(weight) - weight. Untargeted, at anybody among the `people` in the data, by a union
    over them: people * success(weight) - b, where b = people * weight * (1 - weight)^(people - 1) is what a predicate
    that is chosen without the release isolates. For neighbours that differ by one record exchanged.

    Args:
        loss: Of the release.
        weight: The share of all people that a description fits.
        people: How many people are in the data.

    Returns:
        What the release adds, `targeted` and `untargeted`, both at most.

    Examples:
        >>> import deniable as dn
        >>> round(dn.singling_out(dn.privacy_loss(dn.Gaussian(4.0)), weight=1e-3, people=1000).targeted, 5)
        0.00125
    """
    _check_loss(loss)
    probability("weight", weight, open_ends=True)
    whole("people", people)
    success = float(loss.success(weight))
    blind = people * weight * exp((people - 1) * log1p(-weight))
    return SinglingOut(
        weight=weight,
        people=people,
        targeted=success - weight,
        untargeted=min(1.0, max(people * success - blind, 0.0)),
    )


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


def _check_loss(value: object) -> PrivacyLoss:
    """A privacy loss; anything else is refused."""
    example = "for example deniable.privacy_loss(deniable.Gaussian(1.0))"
    return of_kind("loss", value, PrivacyLoss, "a privacy loss", example)
