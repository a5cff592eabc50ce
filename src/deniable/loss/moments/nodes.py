"""Moments E_Q[e^{sL}] along a vertical line, as sums over a few nodes."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Complexes, Floats, Numbers, multiply
from deniable.loss.moments.elementary import expm1, log1p
from deniable.loss.moments.wave_sums import sum_waves

NEGLIGIBLE_NATS = 44.0  # e^-44 = 8e-20 of the largest term: below double precision even after summing (Lemma C8)
BULK_NATS = 30.0  # moments up to about e^30 are summed as a difference from 1
SUNK_NATS = 10.0  # moments below about e^-10 are not
_VANISHED = 2.0**-52  # a moment that has cancelled to nothing
_SMALLEST = 1e-300
_FEW = 16  # frequencies
_PANEL_NODES, _PANEL_WEIGHTS = leggauss(64)
_PANEL_WIDTH = 8.0  # in base losses, where a mixture's loss is singular no nearer than pi from the real axis
_PANEL_PHASE = 64.0  # radians over one panel: 64 nodes are exact to double precision well beyond
_MOST_PANELS = 256
_NODE_COST = 8  # exponentials that a node's loss and weight are worth


class Nodes(NamedTuple):
    """Losses and the logarithms of their weights."""

    losses: Numbers
    log_weights: Numbers
    missing: float | None = 0.0
    """What the weights' sum lacks to 1; None where it is nowhere near 1."""


def _log(x: Complexes) -> Complexes:
    return np.asarray(np.log(np.where(x == 0, _VANISHED, x)))


def panel_rule(low: float, high: float, fastest: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [low, high], as many as e^{sL(x)} needs for all |s L'(x)| <= `fastest`.

    Panels of 64 nodes are at most 8 wide and 64 radians long. With L analytic within pi of the axis the error of a
    panel is below 1e-16 of the integrand's size (Trefethen 2013, Theorem 19.3).
    """
    width = min(_PANEL_WIDTH, _PANEL_PHASE / max(fastest, 1e-300))
    if (high - low) / width > _MOST_PANELS:
        raise UnresolvedError(f"more than {_MOST_PANELS} panels needed at frequency {fastest:g}")
    edges = np.linspace(low, high, 1 + max(1, 2 ** ceil(log2((high - low) / width))))
    spend(_NODE_COST * (edges.size - 1) * _PANEL_NODES.size)
    half = 0.5 * (edges[1] - edges[0])
    middles = edges[:-1, None] + half
    return (middles + half * _PANEL_NODES).ravel(), np.tile(half * _PANEL_WEIGHTS, edges.size - 1)


def log_moments(nodes: Nodes, s: Complexes) -> Complexes:
    """log sum_i e^{log_weights_i + s losses_i} for points s on one vertical line.

    Where the moment is near 1 it is summed as 1 + E[e^{sL} - 1] - missing, so that its millionth power stays accurate.
    """
    losses, log_weights, missing = nodes
    c = float(s[0].real)
    peaks = log_weights + c * losses
    top = float(peaks.real.max())
    weights = np.exp(peaks - top)
    near = missing is not None and _near_one(top)
    gained = sum_waves(losses, weights, s.imag)
    if near:
        return np.asarray(log1p(_gain(losses, log_weights, c).sum() - missing + np.exp(top) * gained))
    return np.asarray(top + _log(weights.sum() + gained))


def _near_one(tops: Floats | float) -> Any:
    """Whether moments with these largest terms (logarithms) are best summed as differences from 1."""
    return (tops > -SUNK_NATS) & (tops < BULK_NATS)


def _gain(losses: Numbers, log_weights: Numbers, s: Numbers | float) -> Numbers:
    """weight * (e^{s loss} - 1), also where the exponential alone would overflow."""
    exponent = losses * s
    mild = exponent.real < 30
    if mild.all():
        return np.asarray(np.exp(log_weights) * expm1(exponent), dtype=exponent.dtype)
    gentle = np.exp(log_weights) * expm1(np.where(mild, exponent, 0.0))
    return np.asarray(np.where(mild, gentle, np.exp(np.where(mild, 0.0, log_weights + exponent))))


def tilted_moments(nodes: Nodes, c: Floats) -> Floats:
    """K, K' and K'' at every real c: log of the moment, mean and variance of the loss tilted by e^{cL}."""
    spend(c.size * nodes.losses.size)
    peaks = nodes.log_weights + np.multiply.outer(c, nodes.losses)
    tops = peaks.max(axis=1)
    return tilted_sums(nodes, c, tops, np.exp(peaks - tops[:, None]))


def tilted_sums(nodes: Nodes, c: Floats, tops: Floats, terms: Floats) -> Floats:
    """The same from the terms of the moments, each row relative to its largest, whose logarithms are `tops`."""
    losses, log_weights, missing = nodes
    totals = terms.sum(axis=1)
    values = tops + np.log(totals)
    if missing is not None and (near := _near_one(tops)).any():
        values[near] = np.log1p(_gain(losses, log_weights, c[near, None]).sum(axis=1) - missing)
    means = multiply(terms, losses) / totals
    return np.array([values, means, (terms * (losses - means[:, None]) ** 2).sum(axis=1) / totals])


def is_coarse(terms: Numbers) -> NDArray[np.bool_]:
    """Whether every second term gives another sum (of a row) than all of them."""
    return np.asarray(np.abs(2 * terms[..., ::2].sum(axis=-1) / terms.sum(axis=-1) - 1) > 1e-9)


def is_inside(heights: Numbers, tops: Numbers) -> NDArray[np.bool_]:
    """Whether the largest term of a moment (a row) is finite and does not lie at the ends of the range."""
    ends = np.maximum(heights[..., 0], heights[..., -1])
    return np.asarray(np.isfinite(tops) & (ends <= tops - NEGLIGIBLE_NATS + 2))


def log_fall(turned: Floats, share: float) -> Floats:
    """ln of the largest t^share e^{-t turned} over all t >= 1 (Lemma C4)."""
    if share == 0:
        return -turned
    turned = np.maximum(turned, _SMALLEST)
    return np.where(turned >= share, -turned, share * (np.log(share / turned) - 1))


def seen_from(cumulant: Callable[[Complexes], Numbers], c: float, omega: Floats) -> Floats:
    """The largest ln |e^K| at these ascending frequencies, from each on, and at three half-octaves beyond the last."""
    farther = omega[-1] * 2 ** (np.arange(1, 4) / 2)
    if omega.size > _FEW:  # evenly spaced ones are much cheaper by themselves
        last, seen = (cumulant(c + 1j * part).real for part in (farther, omega))
    else:
        seen, last = np.split(cumulant(c + 1j * np.append(omega, farther)).real, [omega.size])
    return np.asarray(np.maximum.accumulate(np.append(seen, last)[::-1])[::-1][: omega.size])


def log_sums(logs: Floats) -> Floats:
    """Logarithms of the sums of e^logs over the last axis."""
    tops = logs.max(axis=-1, keepdims=True)
    return np.asarray(tops[..., 0] + np.log(np.exp(logs - tops).sum(axis=-1)))
