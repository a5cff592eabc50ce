"""Pairs that are about as telling as another one and much quicker: where searches begin."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np

from deniable.loss.compose.composed_pair import ComposedPair
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import Grid
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.pair import Pair
from deniable.loss.pairs.step import Step
from deniable.search import falls_to

_NEGLIGIBLE = 1e-40
_APART = 100.0  # standard deviations
_OFTEN = 0.9  # probability of taking part, from which on a release is taken for one without sampling
_LOG_MUS = -20.0, 4.0
_SLIGHT = 1e-2  # relative error of an overlap that is guessed with


def rough_pair(pair: Pair) -> Pair | None:
    """About the same losses in one direction; None where there is no such thing."""
    if not isinstance(pair, ComposedPair | Step):
        return None
    parts = [(pair, 1)] if isinstance(pair, Step) else pair.composition.parts
    alike = [(step.alike or (step, 1), count) for step, count in parts]
    if any(step.alike for step, _ in parts):
        smooth = all(step.smooth for (step, _), _ in alike)
        return Contour(Composition([(step, times * count) for (step, times), count in alike])) if smooth else None
    if isinstance(pair, Contour):
        return _one_release(pair.composition)
    return pair.with_fewer_points() if isinstance(pair, Grid) else None


def _one_release(composition: Composition) -> Step:
    """One Gaussian release whose P and Q overlap as much: sums of many small losses are nearly Gaussian.

    Where the person may never be sampled at all, one on a sample that holds the person with that probability.
    """
    overlap = composition.saddle(0.5).value  # logarithm; inf where it cannot be had, as it hardly is any
    mu = sqrt(8 * max(-overlap, _NEGLIGIBLE)) if overlap < inf else _APART
    present = composition.presence
    if overlap == inf or present > _OFTEN:
        return GaussianStep(mu)

    def rare(log_mu: float) -> Step:
        return composition.parts[0][0].sampled_like(exp(log_mu), present)

    def overlaps(log_mu: float) -> float:
        return exp(float(rare(log_mu).tilted_moments(np.array([0.5]))[0, 0]))

    start = log(mu / present), 0.5
    log_mu = falls_to(overlaps, exp(overlap), start, within=_LOG_MUS, close=_SLIGHT * abs(overlap))
    return rare(min(max(log_mu, _LOG_MUS[0]), _LOG_MUS[1]))
