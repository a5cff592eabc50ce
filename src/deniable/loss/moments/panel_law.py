"""A law of losses by its density on panels: masses of both sides, moments on a vertical line.

The logarithm of the density under Q is a polynomial on every panel, known by its values at 16 Gauss-Legendre nodes,
which also integrate it; elsewhere it is read off pieces of the panel. All integrals are sums of positive terms: they
have the density's relative error (Lemma A3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebpts1, chebval, chebvander
from numpy.polynomial.legendre import leggauss

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Complexes, Floats, multiply
from deniable.loss.moments.nodes import NEGLIGIBLE_NATS, Nodes, is_inside, log_moments, tilted_moments

_PLACES, SHARES = leggauss(16)
"""Of one panel: nodes on [-1, 1] and their weights."""
TO_COEFFICIENTS = np.linalg.inv(chebvander(_PLACES, _PLACES.size - 1))
"""From a panel's values to its Chebyshev coefficients."""
_PIECES, _DEGREE = 32, 5  # of a panel, on which its polynomial of degree 15 is one of degree 5 to round-off
_PANEL_RADIANS = 8.0  # |s| times the width of a panel, up to which 16 nodes serve
_MOST_NODES = 2**19
_CHUNK = 2**12  # points whose coefficients stay in the processor's cache
_POINT_COST = 4  # exponentials that a value of the density is worth
_SUMMED_NATS = 60.0  # moments up to about e^30 are summed as differences from 1
_SLACK_NATS = 6.0  # by which a panel's inside may exceed its edges and middle


def _to_pieces() -> Floats:
    """From a panel's values to the powers' coefficients on its pieces, each on [-1, 1]: (coefficient, piece, value)."""
    places = chebpts1(_DEGREE + 1)
    at = (2 * np.arange(_PIECES)[:, None] + 1 + places) / _PIECES - 1
    to_powers = np.linalg.inv(np.vander(places, increasing=True))
    return np.asarray(np.einsum("cp,spk,kv->csv", to_powers, chebvander(at, _PLACES.size - 1), TO_COEFFICIENTS))


_TO_PIECES = _to_pieces()


def panel_points(lows: Floats, highs: Floats) -> Floats:
    """The nodes of panels, one row a panel."""
    return np.asarray(0.5 * (lows + highs)[:, None] + 0.5 * (highs - lows)[:, None] * _PLACES)


@dataclass(frozen=True, eq=False)
class PanelLaw:
    """The density of a loss under Q, by the logarithms of its values at the nodes of panels."""

    edges: Floats
    values: Floats
    """One row a panel."""
    error: float = 0.0
    """Relative, of the density."""

    @cached_property
    def nodes(self) -> Floats:
        return panel_points(self.edges[:-1], self.edges[1:])

    @cached_property
    def log_masses(self) -> Floats:
        """Logarithms of the quadrature weights times the density, one row a panel."""
        return self.values + np.log(self.halves[:, None] * SHARES)

    @cached_property
    def log_below(self) -> Floats:
        """Logarithms of the mass under Q below every edge."""
        return np.append(-inf, np.logaddexp.accumulate(np.logaddexp.reduce(self.log_masses, axis=1)))

    @cached_property
    def halves(self) -> Floats:
        return np.diff(self.edges) / 2

    @cached_property
    def _middles(self) -> Floats:
        return self.edges[:-1] + self.halves

    @cached_property
    def _coefficients(self) -> Floats:
        return np.asarray(multiply(TO_COEFFICIENTS, self.values.T))

    @cached_property
    def mode(self) -> float:
        return float(self.nodes.ravel()[self.values.argmax()])

    @cached_property
    def width(self) -> float:
        """The standard deviation of a Gaussian with as high a peak."""
        return exp(-float(self.values.max())) / sqrt(2 * pi)

    def log_density(self, x: Floats) -> Floats:
        """By Horner's rule, chunk by chunk; beyond the panels a parabola goes on."""
        flat, found = x.ravel(), np.empty(x.size)
        for start in range(0, x.size, _CHUNK):
            found[start : start + _CHUNK] = self._log_density(flat[start : start + _CHUNK])
        return found.reshape(x.shape)

    def _log_density(self, x: Floats) -> Floats:
        place = np.clip(np.searchsorted(self.edges, x) - 1, 0, self.halves.size - 1)
        inside = np.clip((x - self.edges[place]) * self._pieces_a_nat[place], 0.0, _PIECES)
        piece = np.minimum(inside.astype(np.int64), _PIECES - 1)
        inside = 2 * (inside - piece) - 1
        rows = self._pieces.take(place * _PIECES + piece, axis=1)
        found = rows[-1]
        for row in rows[-2::-1]:
            found *= inside
            found += row
        for end, sign, (value, slope, bend) in self._ends:
            outside = np.flatnonzero(x > end if sign > 0 else x < end)
            beyond = x[outside] - end
            found[outside] = value + beyond * (slope + beyond * min(bend, 0.0) / 2)
        return np.asarray(found)

    @cached_property
    def _pieces_a_nat(self) -> Floats:
        return np.asarray(_PIECES / (2 * self.halves))

    @cached_property
    def _pieces(self) -> Floats:
        """Coefficients (rows) of all pieces of all panels; a panel's mean is left out until last, for its digits."""
        means = self.values.mean(axis=1)
        found = np.tensordot(_TO_PIECES, self.values - means[:, None], axes=(2, 1)).transpose(0, 2, 1)
        found[0] += means[:, None]
        return np.ascontiguousarray(found.reshape(_DEGREE + 1, -1))

    @cached_property
    def _ends(self) -> list[tuple[float, float, Floats]]:
        """Both ends, which way is out, and the logarithm with its first two derivatives there."""
        rows = []
        for place, sign in ((0, -1.0), (-1, 1.0)):
            parts = [chebval(sign, chebder(self._coefficients[:, place], order)) for order in range(3)]
            rows.append((float(self.edges[place]), sign, np.array(parts) / self.halves[place] ** np.arange(3)))
        return rows

    def log_density_about(self, x: Floats) -> Floats:
        """The same to a few nats, much quicker: by chords."""
        return np.interp(x, *self._chords)

    @cached_property
    def _chords(self) -> tuple[Floats, Floats]:
        far = 100.0 + np.zeros(1)
        (low, _, (first, rise, _)), (high, _, (last, fall, _)) = self._ends
        heights = [first - far * abs(rise), self.values.ravel(), last - far * abs(fall)]
        return np.concatenate([low - far, self.nodes.ravel(), high + far]), np.concatenate(heights)

    @cached_property
    def corners(self) -> tuple[Floats, Floats]:
        """Edges and middles of all panels in turn, and about the logarithms there."""
        points = np.empty(2 * self.halves.size + 1)
        points[::2], points[1::2] = self.edges, self._middles
        return points, self.log_density_about(points)

    def cumulants(self, c: float) -> tuple[float, float]:
        """ln E_Q[e^{cL}] and its derivative, where the panels resolve e^{cL}."""
        heights = self.log_masses + c * self.nodes
        top = float(heights.max())
        terms = np.exp(heights - top)
        return top + log(terms.sum()), float((terms * self.nodes).sum() / terms.sum())

    @cached_property
    def _latest(self) -> dict[str, tuple[bytes, Floats]]:
        """Masses that were asked for last: on a grid both sides ask for the same ones, three times."""
        return {}

    def _remember(self, side: str, find: Callable[[Floats], Floats], k: Floats) -> Floats:
        asked = k.tobytes()
        if side not in self._latest or self._latest[side][0] != asked:
            self._latest[side] = asked, find(k)
        return self._latest[side][1]

    def above(self, k: Floats) -> Floats:
        """Q(L > k), E_Q[e^L - 1; L > k] and E_Q[e^L; L > k] (rows): whole panels, and the part of one that k cuts."""
        return self._remember("above", self._find_above, k)

    def below(self, k: Floats) -> Floats:
        """The same over L < k."""
        return self._remember("below", self._find_below, k)

    def _find_above(self, k: Floats) -> Floats:
        at, place = self._find_panel(k)
        return np.asarray(self._right[:, place + 1] + self._integrals(at, self.edges[place + 1]))

    def _find_below(self, k: Floats) -> Floats:
        at, place = self._find_panel(k)
        return np.asarray(self._left[:, place] + self._integrals(self.edges[place], at))

    def _find_panel(self, k: Floats) -> tuple[Floats, Any]:
        at = np.clip(k, self.edges[0], self.edges[-1])
        return at, np.clip(np.searchsorted(self.edges, at, side="right") - 1, 0, self.halves.size - 1)

    def _integrals(self, low: Floats, high: Floats) -> Floats:
        points = panel_points(low, high)
        spend(_POINT_COST * points.size)
        return _sums_of(np.exp(self.log_density(points)) * (0.5 * (high - low)[:, None] * SHARES), points)

    @cached_property
    def _sums(self) -> Floats:
        """Of every panel."""
        return _sums_of(np.exp(self.log_masses), self.nodes)

    @cached_property
    def _right(self) -> Floats:
        """Above every edge."""
        return np.concatenate([np.cumsum(self._sums[:, ::-1], axis=1)[:, ::-1], np.zeros((3, 1))], axis=1)

    @cached_property
    def _left(self) -> Floats:
        """Below every edge."""
        return np.concatenate([np.zeros((3, 1)), np.cumsum(self._sums, axis=1)], axis=1)

    def cumulant(self, s: Complexes) -> Complexes:
        """ln E_Q[e^{sL}] for s on one vertical line."""
        c = float(s[0].real)
        nodes = self.moment_nodes(c, float(np.abs(s.imag).max()))
        return log_moments(nodes, s)

    def tilted_moments(self, c: Floats) -> Floats:
        """The same and its first two derivatives (rows) at every real c; inf where it comes from an end."""
        found = np.full((3, c.size), inf)
        for place, point in enumerate(c.tolist()):
            heights = self.corners[1] + point * self.corners[0]
            if is_inside(heights, heights.max()):
                nodes = self.moment_nodes(point, 0.0)
                found[:, place] = tilted_moments(nodes, c[place : place + 1])[:, 0]
        return found

    def moment_nodes(self, c: float, fastest: float) -> Nodes:
        """Nodes for moments at c + i omega, omega up to `fastest`: panels that matter, cut where e^{sL} turns fast.

        Those that matter to the mass are kept as well, as moments near 1 are summed as differences from it.
        """
        points, heights = self.corners
        tilted = heights + c * points
        kept = self._matter(tilted) | (self._matter(heights) if tilted.max() - heights.max() < _SUMMED_NATS else False)
        cuts = np.ceil(2 * self.halves * (abs(c) + fastest) / _PANEL_RADIANS).clip(min=1).astype(np.int64)
        cuts = cuts[kept]
        if cuts.sum() * SHARES.size > _MOST_NODES:
            raise UnresolvedError(f"{cuts.sum()} panels needed at frequency {fastest:g}")
        place = np.repeat(np.flatnonzero(kept), cuts)
        part = np.arange(cuts.sum()) - np.repeat(np.cumsum(cuts) - cuts, cuts)
        width = 2 * self.halves[place] / np.repeat(cuts, cuts)
        lows = self.edges[place] + part * width
        if (cuts == 1).all():
            losses, logs = self.nodes[kept], self.log_masses[kept]
        else:
            losses = panel_points(lows, lows + width)
            spend(_POINT_COST * losses.size)
            logs = self.log_density(losses) + np.log(0.5 * width[:, None] * SHARES)
        return Nodes(losses.ravel(), logs.ravel())

    def _matter(self, heights: Floats) -> Any:
        """Which panels have a term that is not negligible, from heights at their edges and middles."""
        tops = np.maximum(np.maximum(heights[:-2:2], heights[1::2]), heights[2::2])
        return tops > heights.max() - NEGLIGIBLE_NATS - _SLACK_NATS


def _sums_of(masses: Floats, losses: Floats) -> Floats:
    """Q-mass, E_Q[e^L - 1] and E_Q[e^L] of every row: near 0 the second has more digits, far below 0 the third."""
    return np.array([(masses * weight).sum(axis=1) for weight in (1.0, np.expm1(losses), np.exp(losses))])
