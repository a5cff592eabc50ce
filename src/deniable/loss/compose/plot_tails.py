"""Tails of the privacy loss at many points at once, to be looked at: quick, and right to about a pixel.

Compositions that a Gaussian smooths are inverted by the formula of Gil-Pelaez 1951 from their characteristic functions,

    P(L > t) = 1/2 + 1/pi * integral over w > 0 of Im(e^{-i w t} E[e^{i w L}]) / w dw,

with few frequencies and a Gaussian taper, which blurs L by a thousandth of its spread at most where those do not
suffice to resolve it. Figures to rely on come from `contour.py`, whose errors are bounded.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from deniable.loss.arrays import Complexes, Floats, multiply
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.cumulants import Composition
from deniable.loss.pairs.pair import Pair

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
