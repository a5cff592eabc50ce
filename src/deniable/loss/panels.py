"""Quadrature for integrands that live on two scales: narrow near 0, and slowly dying out far away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.effort import still_affordable

__all__ = ["PLACES", "Panels", "graded", "growing_panels", "unresolved", "unresolved_where_smooth"]


_NODES, _WEIGHTS = leggauss(16)
PLACES = (1 + _NODES) / 2  # of the points, in widths of a panel from its lower end
_HIGHEST = (np.arange(14, 16) + 0.5) * legvander(_NODES, 15)[:, 14:] * _WEIGHTS[:, None]
_MOST = 2**15  # points


@dataclass(frozen=True)
class Panels:
    """Points and weights on [0, end], sixteen to a panel, the function's values there, and the integral's error."""

    points: Floats
    weights: Floats
    values: Complexes
    error: float  # disagreement of the panels with their halves, for the integrand they were made for


def unresolved(terms: Complexes, weights: Floats) -> float:
    """Estimated error of the sum of `terms` (weights times integrand on panels): what the highest Legendre
    coefficients on each panel would still contribute. Large where the panels are too wide for the integrand."""
    return float(_heads(terms, weights) @ weights.reshape(-1, _NODES.size).sum(1))


def unresolved_where_smooth(terms: Complexes, weights: Floats) -> float:
    """The same where the integrand is analytic around every panel, so that its coefficients fall like r^-n.

    Sixteen points integrate all of degree 31 exactly: the error is about head^2 / size, with `head` the coefficients
    of degree 14 and 15; head^1.5 / size^.5 is on the safe side of that.
    """
    heads = _heads(terms, weights)
    sizes = np.abs((terms / weights).reshape(-1, _NODES.size)).max(1)
    shares = np.sqrt(np.minimum(heads / np.maximum(sizes, 1e-300), 1.0))
    return float((heads * shares) @ weights.reshape(-1, _NODES.size).sum(1))


def _heads(terms: Complexes, weights: Floats) -> Floats:
    return np.asarray(np.abs((terms / weights).reshape(-1, _NODES.size) @ _HIGHEST).sum(1))


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


def _halves(edges: Floats) -> Floats:
    middle = edges.mean(1)
    return np.concatenate([np.stack([edges[:, 0], middle], 1), np.stack([middle, edges[:, 1]], 1)])


def graded(
    values: Callable[[Floats], Complexes], integrand: Callable[[Floats, Complexes], Complexes], first: float, end: float
) -> Panels:
    """Panels that double in width from `first` to `end`, halved wherever a panel and its halves disagree.

    `values` is the costly function; `integrand(points, values)` is what must be integrated accurately.
    """
    marks = [0.0, min(first, end)]
    while marks[-1] < end:
        marks.append(2 * marks[-1])
    active = np.stack([marks[:-1], marks[1:]], 1)
    points = _points(active)
    known = values(points.ravel()).reshape(points.shape)
    kept: list[tuple[Floats, Floats, Complexes]] = []
    error, total, count = 0.0, 0.0, points.size
    while active.size:
        still_affordable()
        sums = _integrals(active, integrand(points, known))
        total = max(total, float(np.abs(_integrals(active, np.abs(integrand(points, known)))).sum()))
        halves = _halves(active)
        finer = _points(halves)
        fine = values(finer.ravel()).reshape(finer.shape)
        split = _integrals(halves, integrand(finer, fine)).reshape(2, -1)
        gaps = np.abs(sums - split.sum(0))
        count += finer.size
        open_ = gaps > 1e-13 * total if count < _MOST else np.zeros(gaps.size, dtype=bool)
        error += float(gaps[~open_].sum())
        both = np.concatenate([open_, open_])
        kept.append((halves[~both], finer[~both], fine[~both]))
        active, points, known = halves[both], finer[both], fine[both]
    edges, nodes, found = (np.concatenate([part[i] for part in kept]) for i in range(3))
    weights = (edges[:, 1:] - edges[:, :1]) / 2 * _WEIGHTS
    return Panels(nodes.ravel(), weights.ravel(), found.ravel(), error)


def _integrals(edges: Floats, values: Numbers) -> Complexes:
    return np.asarray((values.astype(np.complex128) @ _WEIGHTS) * (edges[:, 1] - edges[:, 0]) / 2)
