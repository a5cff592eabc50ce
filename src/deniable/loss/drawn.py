"""Tails of the privacy loss at many points at once, to be looked at: quick, and right to about a pixel.

Compositions that a Gaussian smooths are inverted by Gil-Pelaez's formula (1951) from their characteristic functions,

    P(L > t) = 1/2 + 1/pi * integral over w > 0 of Im(e^{-i w t} E[e^{i w L}]) / w dw,

with few frequencies and a Gaussian taper, which blurs L by a thousandth of its spread at most where those do not
suffice to resolve it. Figures to rely on come from `loss.contour`, whose errors are bounded.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.contour import Contour
from deniable.loss.pair import Pair
from deniable.loss.saddle import Composition

__all__ = ["drawn_tails", "extent"]

_WIDTHS = 6.0  # standard deviations of L that are drawn
_MOST_FREQUENCIES = 2**10
_BLOCK = 128  # of them at a time
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
    law, ends = pair.composition, extent(pair)
    with_person = pair.escape + (1 - pair.escape) * _inverted(law, 1.0, losses, ends)
    return with_person, (1 - pair.mirror.escape) * _inverted(law, 0.0, losses, ends)


def _inverted(law: Composition, c: float, losses: Floats, ends: tuple[float, float]) -> Floats:
    """The share of finite losses above each t, under P (c = 1) or Q (c = 0)."""
    low, high = ends
    spacing = pi / (high - low)
    found = _characteristic(law, c, spacing)
    frequencies = (np.arange(found.size) + 0.5) * spacing
    taper = np.exp(-4 * (frequencies / (_MOST_FREQUENCIES * spacing)) ** 2)
    phases = np.exp(-1j * np.outer(losses.clip(low, high), frequencies))
    tails = 0.5 + (phases * (found * taper / frequencies)).imag.sum(axis=1) * spacing / pi
    return np.asarray(np.where(losses < low, 1.0, np.where(losses > high, 0.0, tails.clip(0.0, 1.0))))


def _characteristic(law: Composition, c: float, spacing: float) -> Complexes:
    """E[e^{i w L}] at w = spacing / 2, 3/2 spacing, ... until it is faint."""
    blocks: list[Complexes] = []
    for first in range(0, _MOST_FREQUENCIES, _BLOCK):
        frequencies = (first + np.arange(_BLOCK) + 0.5) * spacing
        blocks.append(np.exp(law.cumulant(c + 1j * frequencies) - law.saddle(c).value))
        if np.abs(blocks[-1]).max() < _FAINT:
            break
    return np.concatenate(blocks)
