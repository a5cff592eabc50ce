"""The tightest Gaussian DP of a release, and how well it fits (Gomez 2026, Section 3)."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from deniable.checks import of_kind
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.results.shared import GaussianFit
from deniable.scores import PrivacyLoss

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
    of_kind("loss", loss, PrivacyLoss, "a privacy loss", "for example deniable.privacy_loss(deniable.Gaussian(1.0))")
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
