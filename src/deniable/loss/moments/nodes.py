"""Moments E_Q[e^{sL}] along a vertical line, as sums over a few nodes.

The sums are of weights_i (e^{i omega L_i} - 1) over the nodes i, at many frequencies omega. Exponentials are dear,
products are not. The frequencies of a line are evenly spaced, or the points of panels, or a few octaves apart, so that
nearly all of the numbers needed are products of a few of them:

    (1 + a)(1 + b) - 1 = a + b + a b,      (1 + a)^2 - 1 = a (2 + a),

which keep the digits of small exponents. Each product adds one rounding; after eight octaves the exponentials are
computed anew, so that round-off stays that of the exponents themselves.

Panels are for integrands that live on two scales: narrow near 0, and slowly dying out far away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

from deniable.effort import UnresolvedError, spend, still_affordable
from deniable.loss.arrays import Complexes, Floats, Numbers, expm1, log1p, multiply

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


_FEW = 16  # frequencies up to which structure is not looked for
_OCTAVES = 8  # squared one after the other before the exponentials are computed anew
_BLOCK = 2**20  # complex numbers held at a time
_CHUNK = 2**11  # nodes whose tables stay in the processor's cache
_PANEL_CHUNK = 2**14  # the same for panels, which are fewer, and have more nodes
_TURNS = 64  # frequencies up to which rows of nodes need no tables ...
_ROWS_TOGETHER = 2**13  # ... if so many nodes are turned at a time
_SAME = 1e-13  # relative


def sum_waves(losses: Numbers, weights: Numbers, omega: Floats) -> Complexes:
    """sum over i of weights_i (e^{i omega_j losses_i} - 1) for every frequency and every row of losses and weights.

    Losses and weights have the shape (..., nodes), the sums (..., frequencies).
    """
    if omega.size > _FEW:
        if evenly_spaced(omega):
            if losses.ndim == 2 and omega.size <= _TURNS:
                return _turn_by_turn(losses, weights, omega)
            parts = _nodes_at_a_time(losses, weights, _CHUNK)
            return np.asarray(sum(_evenly(*part, omega) for part in parts))
        if (panels := _as_panels(omega)) is not None:
            parts = _nodes_at_a_time(losses, weights, _PANEL_CHUNK)
            return np.asarray(sum(_on_panels(*part, *panels) for part in parts))
    return _octave_by_octave(losses, weights, omega)


def _nodes_at_a_time(losses: Numbers, weights: Numbers, count: int) -> Iterator[tuple[Numbers, Numbers]]:
    return ((losses[..., at : at + count], weights[..., at : at + count]) for at in range(0, losses.shape[-1], count))


def evenly_spaced(omega: Floats) -> bool:
    spaced = omega[0] + np.arange(omega.size) * (omega[1] - omega[0])
    return bool(np.abs(omega - spaced).max() <= _SAME * np.abs(omega[-1]))


def _evenly(losses: Numbers, weights: Numbers, omega: Floats) -> Complexes:
    """From two short tables, of small multiples of the spacing and of large ones."""
    width = int(np.ceil(np.sqrt(omega.size)))
    still_affordable()
    spend(losses.size * (4 + width // 8 + omega.size // 64))
    near = _powers(expm1(1j * (omega[1] - omega[0]) * losses), width + 1)
    far = _powers(near[..., -1, :], -(-omega.size // width))
    if omega[0] != 0:
        first = expm1(1j * omega[0] * losses)[..., None, :]
        far = first + far + first * far
    sums = _products(weights, far, near[..., :-1, :])
    return np.asarray(sums.reshape(*losses.shape[:-1], -1)[..., : omega.size])


def _turn_by_turn(losses: Numbers, weights: Numbers, omega: Floats) -> Complexes:
    """From each frequency to the next by one product, in place: for rows of nodes, whose tables would be large."""
    spend(losses.size * (4 + omega.size // 16))
    sums = np.empty((len(losses), omega.size), dtype=np.complex128)
    rows = max(_ROWS_TOGETHER // losses.shape[-1], 1)
    for at in range(0, len(losses), rows):
        part, weight = losses[at : at + rows], weights[at : at + rows]
        turn = expm1(1j * (omega[1] - omega[0]) * part)
        terms, more = weight * expm1(1j * omega[0] * part), weight * turn
        turn += 1
        for place in range(omega.size):
            terms.sum(axis=-1, out=sums[at : at + rows, place])
            terms *= turn
            terms += more
    return sums


def _products(weights: Numbers, starts: Complexes, offsets: Complexes) -> Complexes:
    """Sums at starts_j + offsets_k, an array (..., starts, offsets), from tables (..., starts or offsets, nodes)."""
    weighted, across = weights[..., None, :] * starts, offsets.swapaxes(-1, -2)
    grown = weighted + weights[..., None, :]
    return np.asarray(multiply(grown, across) + weighted.sum(axis=-1)[..., None])


def _powers(grown: Numbers, count: int) -> Complexes:
    """(1 + grown)^j - 1 for j from 0 to count - 1, along the last axis but one, by doubling."""
    found = np.zeros((*grown.shape[:-1], count, grown.shape[-1]), dtype=np.complex128)
    found[..., 1:2, :] = grown[..., None, :]
    known, top = 2, grown[..., None, :] * (2 + grown[..., None, :])
    while known < count:
        more = min(known, count - known)
        found[..., known : known + more, :] = top + found[..., :more, :] * (1 + top)
        known, top = known + more, top * (2 + top)
    return found


def _as_panels(omega: Floats) -> tuple[Floats, NDArray[np.int64]] | None:
    """Width of every panel and how many of that width lie below it; None where these are not the points of panels."""
    if omega.size % PLACES.size:
        return None
    rows = omega.reshape(-1, PLACES.size)
    widths = (rows[:, -1] - rows[:, 0]) / (PLACES[-1] - PLACES[0])
    widths = np.ldexp(widths.min(), np.rint(np.log2(widths / widths.min())).astype(int))
    below = np.rint(rows[:, 0] / widths - PLACES[0]).astype(np.int64)
    apart = np.abs((below[:, None] + PLACES) * widths[:, None] - rows)
    return (widths, below) if (apart <= _SAME * rows[:, -1:]).all() else None


def _on_panels(losses: Numbers, weights: Numbers, widths: Floats, below: NDArray[np.int64]) -> Complexes:
    """Panels of one width share the table of offsets, those of twice the width have its squares."""
    sums = np.empty((*losses.shape[:-1], widths.size, PLACES.size), dtype=np.complex128)
    for width, table in _tables(losses, np.append(PLACES, 1.0), np.unique(widths)):
        alike = np.flatnonzero(widths == width)
        for block in np.array_split(alike, 1 + alike.size * losses.size // _BLOCK):
            still_affordable()
            spend(losses.size * PLACES.size * (1 + block.size // 64))
            starts = _multiples(losses, table[..., -1, :], float(width), below[block])
            sums[..., block, :] = _products(weights, starts, table[..., :-1, :])
    return np.asarray(sums.reshape(*losses.shape[:-1], -1))


def _multiples(losses: Numbers, grown: Complexes, width: float, below: NDArray[np.int64]) -> Complexes:
    """e^{i below_j width L} - 1, where `grown` is that of a single width."""
    first, last = int(below.min()), int(below.max())
    spend(losses.size * (1 + below.size))
    if last - first > 4 * below.size:
        return np.asarray(expm1(1j * (below * width)[:, None] * losses[..., None, :]))
    powers = _powers(grown, max(last - first, 1) + 1)
    if first > 0:
        lowest = _powers(grown, first + 1)[..., -1:, :] if first < _FEW else _turns(losses, np.array([first * width]))
        powers = lowest + powers + lowest * powers
    return np.asarray(powers[..., below - first, :])


def _octave_by_octave(losses: Numbers, weights: Numbers, omega: Floats) -> Complexes:
    """Each by itself, but for those that are twice another one."""
    sums = np.empty((*losses.shape[:-1], omega.size), dtype=np.complex128)
    mantissas = np.frexp(omega)[0]
    for mantissa in np.unique(mantissas):
        alike = np.flatnonzero(mantissas == mantissa)
        for frequency, table in _tables(losses, np.ones(1), np.unique(omega[alike])):
            sums[..., alike[omega[alike] == frequency]] = (table * weights[..., None, :]).sum(axis=-1)
    return sums


def _turns(losses: Numbers, omega: Floats) -> Complexes:
    """e^{i omega_j losses_i} - 1, an array (..., frequencies, nodes)."""
    spend(losses.size * omega.size)
    return np.asarray(expm1(1j * omega[:, None] * losses[..., None, :]))


def _tables(losses: Numbers, places: Floats, sizes: Floats) -> Iterator[tuple[float, Complexes]]:
    """For each of the sizes, which are powers of two apart and rise, its e^{i size place_j L} - 1."""
    anew, now = 0.0, 0.0
    table: Complexes = np.empty(0, dtype=np.complex128)
    for size in sizes.tolist():
        if not now or size >= anew:
            now, anew, table = size, size * 2**_OCTAVES, _turns(losses, size * places)
        while now < size:
            now, table = 2 * now, table * (2 + table)
        yield size, table


NEGLIGIBLE_NATS = 44.0  # e^-44 = 8e-20 of the largest term: below double precision even after summing (Lemma C8)
BULK_NATS = 30.0  # moments up to about e^30 are summed as a difference from 1
SUNK_NATS = 10.0  # moments below about e^-10 are not
_VANISHED = 2.0**-52  # a moment that has cancelled to nothing
_SMALLEST = 1e-300
_FEW_NODES = 16  # frequencies
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
    if omega.size > _FEW_NODES:  # evenly spaced ones are much cheaper by themselves
        last, seen = (cumulant(c + 1j * part).real for part in (farther, omega))
    else:
        seen, last = np.split(cumulant(c + 1j * np.append(omega, farther)).real, [omega.size])
    return np.asarray(np.maximum.accumulate(np.append(seen, last)[::-1])[::-1][: omega.size])


def log_sums(logs: Floats) -> Floats:
    """Logarithms of the sums of e^logs over the last axis."""
    tops = logs.max(axis=-1, keepdims=True)
    return np.asarray(tops[..., 0] + np.log(np.exp(logs - tops).sum(axis=-1)))
