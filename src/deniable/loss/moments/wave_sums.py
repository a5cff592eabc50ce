"""Sums of weights_i (e^{i omega L_i} - 1) over a few nodes i, at many frequencies omega.

Exponentials are dear, products are not. The frequencies of a line are evenly spaced, or the points of panels, or a few
octaves apart, so that nearly all of the numbers needed are products of a few of them:

    (1 + a)(1 + b) - 1 = a + b + a b,      (1 + a)^2 - 1 = a (2 + a),

which keep the digits of small exponents. Each product adds one rounding; after eight octaves the exponentials are
computed anew, so that round-off stays that of the exponents themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.effort import spend, still_affordable
from deniable.loss.arrays import Complexes, Floats, Numbers, multiply
from deniable.loss.moments.elementary import expm1
from deniable.loss.moments.panels import PLACES

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
