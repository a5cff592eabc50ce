"""Quick and about right: pairs with which searches begin, and tails at many points at once, to be looked at.

Compositions that a Gaussian smooths are inverted by the formula of Gil-Pelaez 1951 from their characteristic functions,

    P(L > t) = 1/2 + 1/pi * integral over w > 0 of Im(e^{-i w t} E[e^{i w L}]) / w dw,

with few frequencies and a Gaussian taper, which blurs L by a thousandth of its spread at most where those do not
suffice to resolve it. Figures to rely on come from `contour.py`, whose errors are bounded.
"""

from __future__ import annotations

from math import exp, inf, log, pi, sqrt

import numpy as np

from deniable.loss.arrays import Complexes, Floats, multiply
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


_WIDTHS = 6.0  # standard deviations of L that are drawn
_MOST_FREQUENCIES = 2**10
_FIRST_BLOCK = 32  # and then as many as before
_FAINT = 1e-6


def extent(pair: Pair) -> tuple[float, float]:
    """Losses between which nearly all outcomes lie, with the person and without."""
    if not isinstance(pair, Contour):
        width = _WIDTHS * pair.scale + 0.5 * pair.scale**2
        return -width, width
    law = pair.composition
    low, high = (law.saddle(c) for c in (0.0, 1.0))
    return low.slope - _WIDTHS * sqrt(low.bend), high.slope + _WIDTHS * sqrt(high.bend)


def drawn_tails(pair: Pair, losses: Floats) -> tuple[Floats, Floats]:
    """P(L > t) and Q(L > t) at every t of `losses`, of which some lie within `extent(pair)`."""
    if not isinstance(pair, Contour):
        at = losses.tolist()
        return np.array([float(pair.tail(t)) for t in at]), np.array([float(pair.null_tail(t)) for t in at])
    low, high = extent(pair)
    spacing = pi / (high - low)
    frequencies, found = _characteristics(pair.composition, spacing)
    taper = np.exp(-4 * (frequencies / (_MOST_FREQUENCIES * spacing)) ** 2)
    weighted = found * (taper / frequencies)[:, None]
    angles = np.outer(losses.clip(low, high), frequencies)
    integrals = (multiply(np.cos(angles), weighted.imag) - multiply(np.sin(angles), weighted.real)) / (high - low)
    tails = np.where(losses < low, 1.0, np.where(losses > high, 0.0, (0.5 + integrals.T).clip(0.0, 1.0)))
    return pair.escape + (1 - pair.escape) * tails[0], (1 - pair.mirror.escape) * tails[1]


def _characteristics(law: Composition, spacing: float) -> tuple[Floats, Complexes]:
    """w = spacing / 2, 3/2 spacing, ... until E[e^{i w L}] under P and Q (columns, of finite losses) stays faint."""
    blocks: list[Complexes] = []
    first, last = 0, _FIRST_BLOCK
    while first < _MOST_FREQUENCIES and not (blocks and np.abs(blocks[-1][-first // 4 :]).max() < _FAINT):
        frequencies = (np.arange(first, last) + 0.5) * spacing
        both = [np.exp(law.cumulant(c + 1j * frequencies) - law.saddle(c).value) for c in (1.0, 0.0)]
        blocks.append(np.stack(both, axis=1))
        first, last = last, 2 * last
    return (np.arange(first) + 0.5) * spacing, np.concatenate(blocks)
