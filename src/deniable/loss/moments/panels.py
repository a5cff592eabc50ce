"""Quadrature for integrands that live on two scales: narrow near 0, and slowly dying out far away."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from deniable.loss.arrays import Complexes, Floats, multiply

_NODES, _WEIGHTS = leggauss(16)
PLACES = (1 + _NODES) / 2  # of the points, in widths of a panel from its lower end
_HIGHEST = (np.arange(14, 16) + 0.5) * legvander(_NODES, 15)[:, 14:] * _WEIGHTS[:, None]


def unresolved_where_smooth(terms: Complexes, weights: Floats) -> float:
    """Estimated error of the sum of `terms`, weights times an integrand that is analytic around every panel.

    Its Legendre coefficients fall like r^-n, and sixteen points integrate all of degree 31 exactly: the error is about
    head^2 / size, with `head` the coefficients of degree 14 and 15; head^1.5 / size^.5 is on the safe side of that.
    """
    values = (terms / weights).reshape(-1, _NODES.size)
    heads, sizes = np.abs(multiply(values, _HIGHEST)).sum(axis=1), np.abs(values).max(axis=1)
    shares = np.sqrt(np.minimum(heads / np.maximum(sizes, 1e-300), 1.0))
    return float((heads * shares) @ weights.reshape(-1, _NODES.size).sum(axis=1))


def growing_panels(first: float, end: float, widest: float) -> tuple[Floats, Floats]:
    """Points and weights on [0, end] of panels half as wide as what lies below them, from about `first` on.

    Two of every width up to `widest`, which are powers of two apart, and as many of that as it takes to reach the end.
    """
    octaves = max(0, ceil(log2(2 * widest / first)))
    widths = np.ldexp(widest, np.arange(-octaves, 1))
    last = [4] * octaves + [ceil(end / widest)]
    below = [np.arange(2 if place else 0, count) for place, count in enumerate(last)]
    lows = np.concatenate([width * numbers for width, numbers in zip(widths, below, strict=True)])
    highs = np.concatenate([width * (numbers + 1) for width, numbers in zip(widths, below, strict=True)])
    edges = np.stack([lows, highs], 1)[lows < end]
    return _points(edges).ravel(), ((edges[:, 1:] - edges[:, :1]) / 2 * _WEIGHTS).ravel()


def _points(edges: Floats) -> Floats:
    """Gauss-Legendre points of the panels [edges[:, 0], edges[:, 1]], one row a panel."""
    middle, half = edges.mean(1, keepdims=True), (edges[:, 1:] - edges[:, :1]) / 2
    return np.asarray(middle + half * _NODES)
