"""The law of ln S, S the mean of many independent lognormal variables, by doubling.

With g_m the density of ln S_m, S_m the mean of m variables, that of a mean of m + n is an integral of positive terms,

    g_{m+n}(l) = integral of g_m(a) g_n(b) (1 + (n/m) e^{b-a}) db,      (m + n) e^l = m e^a + n e^b      (Lemma A2),

so nothing cancels: the density keeps its *relative* accuracy in both tails, 400 nats deep, however many variables there
are. A panel is halved until its last coefficients vanish; the number of panels (30 to 60) hardly depends on the number
of variables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, factorial, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from deniable.loss.arrays import Floats, multiply
from deniable.loss.moments.panel_law import SHARES, TO_COEFFICIENTS, PanelLaw, panel_points

Integers = NDArray[np.int64]

_DEPTH_NATS = 400.0  # below the density's top, as far as the panels reach: 28 deviations of a Gaussian
_LEFT_OUT_NATS = 46.0  # terms below e^-46 = 1e-20 of the largest one are left out
_FAR_NATS = 40.0  # below the point, where e^b adds nothing to a sum of 16 digits: a no longer depends on b
_WIDEST_NATS = 3.5  # width of a panel: e^b has the period 2 pi i
_MOST_BEND = 3.0  # second derivative of a logarithm over half a panel: 16 nodes integrate its exponential
_CLOSE = 1e-12  # last coefficients of a panel, absolute up to 20 nats and relative beyond
_MOST_HALVINGS = 6
_PROBES = 16, 48  # points left and right of the mode that tell how far a new law reaches
_LEAST_ERROR = 4e-14
_MOMENTS_INSIDE = 8.0  # mu from which on E[S^3] comes from beyond the panels


@dataclass(frozen=True, eq=False)
class MeanLaw(PanelLaw):
    """The law of ln S; its error is how far the closed forms of E[S], E[S^2] and E[S^3] are missed, and some more."""

    count: int = 1
    """Of the variables."""


def law_of_mean(mu: float, count: int) -> MeanLaw:
    """Of `count` variables e^{mu X - mu^2/2}, X standard normal, with E[S^0] = E[S^1] = 1 to round-off."""
    single = law = _single(mu)
    for bit in f"{count:b}"[1:]:
        law = _mean_of(law, law)
        law = _mean_of(law, single) if bit == "1" else law
    error = _LEAST_ERROR + 4 * _moment_error(law, mu)
    (null, null_mean), (own, own_mean) = law.cumulants(0.0), law.cumulants(1.0)
    lean = (own - null) / (own_mean - null_mean)
    return replace(law, values=law.values - null - lean * (law.nodes - null_mean), error=error)


def _moment_error(law: MeanLaw, mu: float) -> float:
    """The largest relative distance of E[S], E[S^2] and E[S^3] from their closed forms.

    ln E[e^{zS}] = count * ln of the sum of E[Y^k] (z / count)^k / k!, E[Y^k] = e^{mu^2 k (k-1) / 2}.
    """
    highest = 3 if mu < _MOMENTS_INSIDE else 1
    single = [exp(mu * mu * k * (k - 1) / 2) / factorial(k) for k in range(highest + 1)]
    power = [1.0]
    for n in range(1, highest + 1):  # coefficients of a power series to the power `count`
        terms = ((k * law.count - (n - k)) * single[k] * power[n - k] for k in range(1, n + 1))
        power.append(sum(terms) / n)
    known = [log(power[n] * factorial(n) / law.count**n) for n in range(1, highest + 1)]
    return max(abs(law.cumulants(n)[0] - value) for n, value in enumerate(known, 1))


def _single(mu: float) -> MeanLaw:
    """One variable: a Gaussian law of its logarithm, which reaches as far above P's mean as below Q's."""
    reach = sqrt(2 * _DEPTH_NATS) * mu + mu * mu / 2
    edges = np.linspace(-reach, reach, 1 + ceil(2 * reach / min(_WIDEST_NATS, 1.7 * mu)))
    nodes = panel_points(edges[:-1], edges[1:])
    return MeanLaw(edges, -((nodes + mu * mu / 2) ** 2) / (2 * mu * mu) - log(mu * sqrt(2 * pi)))


def _mean_of(one: MeanLaw, other: MeanLaw) -> MeanLaw:
    """The law of the mean of all variables of both, the first of which has no fewer: panels halved until they serve."""
    edges = _first_edges(one, other)
    lows, highs = edges[:-1], edges[1:]
    values = _joint(one, other, panel_points(lows, highs))
    for _ in range(_MOST_HALVINGS):
        rough = _are_rough(lows, highs, values)
        if not rough.any():
            break
        middles = 0.5 * (lows + highs)[rough]
        new = np.concatenate([lows[rough], middles]), np.concatenate([middles, highs[rough]])
        lows, highs = np.concatenate([lows[~rough], new[0]]), np.concatenate([highs[~rough], new[1]])
        values = np.concatenate([values[~rough], _joint(one, other, panel_points(*new))])
    order = lows.argsort()
    law = MeanLaw(np.append(lows[order], highs.max()), values[order], count=one.count + other.count)
    return replace(law, values=law.values - law.cumulants(0.0)[0])


def _are_rough(lows: Floats, highs: Floats, values: Floats) -> NDArray[np.bool_]:
    """Which panels are too wide: for the polynomial, for the nodes, or for e^b."""
    sizes = np.abs(multiply(TO_COEFFICIENTS, values.T))
    unresolved = sizes[-3:].max(axis=0) > _CLOSE * np.maximum(1.0, 0.05 * np.abs(values).max(axis=1))
    bend = 4 * sizes[2] + 16 * sizes[3] + 32 * sizes[4]
    return np.asarray(unresolved | (bend > _MOST_BEND) | (highs - lows > 1.001 * _WIDEST_NATS))


def _first_edges(one: MeanLaw, other: MeanLaw) -> Floats:
    """Those of the larger law, as few as serve it, drawn together by the square root of the growth in number."""
    low, high = _reach(one, other)
    growth, centre = sqrt((one.count + other.count) / one.count), one.mode
    apart = _fewer_edges(one) - centre
    right = np.maximum(apart, 0.0)
    apart = np.where(apart < 0, apart / growth, right - log(growth) + np.log1p((growth - 1) * np.exp(-right)))
    inner = centre + apart
    first, last = low + 0.3 * (inner[1] - inner[0]), high - 0.3 * (inner[-1] - inner[-2])
    edges = np.concatenate([[low], inner[(inner > first) & (inner < last)], [high]])
    pieces = np.ceil(np.diff(edges) / _WIDEST_NATS).astype(int)
    parts = zip(edges[:-1].tolist(), edges[1:].tolist(), pieces.tolist(), strict=True)
    starts = [np.linspace(start, end, count, endpoint=False) for start, end, count in parts]
    return np.concatenate([*starts, [high]])


def _reach(one: MeanLaw, other: MeanLaw) -> tuple[float, float]:
    """Between which ends the larger one of P's and Q's density is above e^-400 of its top."""
    left, right = _PROBES
    below, above = np.linspace(one.edges[0], one.mode, left)[:-1], np.linspace(one.mode, one.edges[-1], right)
    at = np.concatenate([below, above])
    heights = _joint(one, other, at[:, None])[:, 0] + np.maximum(at, 0.0)
    falls, top = heights.max() - heights, int(heights.argmax())
    low = np.interp(-_DEPTH_NATS, -falls[: top + 1], at[: top + 1])
    return float(low), float(np.interp(_DEPTH_NATS, falls[top:], at[top:]))


def _fewer_edges(law: MeanLaw) -> Floats:
    """Without those between two panels that one would do for."""
    edges, merged = law.edges, True
    while merged:
        merged = False
        for first in (0, 1):
            lows, highs = edges[first:-2:2], edges[first + 2 :: 2]
            if lows.size:
                serves = ~_are_rough(lows, highs, law.log_density(panel_points(lows, highs)))
                edges, merged = np.delete(edges, first + 1 + 2 * np.flatnonzero(serves)), merged or bool(serves.any())
    return edges


def _joint(one: MeanLaw, other: MeanLaw, at: Floats) -> Floats:
    """ln of the density of the mean of both: the integral over the part of the smaller one, then over the other's."""
    points = at.ravel()
    found = _part_of(one, other, points)
    found = found + log(2) if other is one else np.logaddexp(found, _part_of(other, one, points))
    return np.asarray(found.reshape(at.shape))


def _part_of(one: MeanLaw, other: MeanLaw, at: Floats) -> Floats:
    """ln of the integral over b, up to where a moves as fast as b does, both in units of their laws' widths."""
    ratio = other.count / one.count
    pull = one.width / other.width
    last = at + log(pull / ratio) - log((1 + pull) / (1 + ratio))
    last = np.minimum(last, other.edges[-1])
    place = np.clip(np.searchsorted(other.edges, last) - 1, 0, other.halves.size - 1)
    length = np.maximum(last - other.edges[place], 1e-12 * other.width)  # of a panel's part; never nothing
    cut = panel_points(last - length, last)
    log_masses = other.log_density(cut) + np.log(0.5 * length[:, None] * SHARES)
    partial = _log_terms(one, ratio, at[:, None], cut, log_masses)
    far = np.minimum(np.searchsorted(other.edges, at - _FAR_NATS, side="right") - 1, place).clip(min=0)
    constant = other.log_below[far] + one.log_density(at + log1p(ratio))
    rows, panels, heights = _heights(one, other, at, last, np.array([far, place]))
    tops = np.maximum(partial.max(axis=1), constant)
    np.maximum.at(tops, rows, heights)
    kept = heights > tops[rows] - _LEFT_OUT_NATS
    rows, panels = rows[kept], panels[kept]
    whole = _log_terms(one, ratio, at[rows, None], other.nodes[panels], other.log_masses[panels])
    sums = np.exp(partial - tops[:, None]).sum(axis=1) + np.exp(constant - tops)
    sums += np.bincount(rows, np.exp(whole - tops[rows, None]).sum(axis=1), at.size)
    with np.errstate(divide="ignore"):  # nothing at all is minus infinity
        return np.asarray(tops + np.log(sums))


def _partner(ratio: float, at: Floats, b: Floats) -> Floats:
    """a with (m + n) e^at = m e^a + n e^b, ratio = n / m, without cancellation."""
    return np.asarray(at + np.log1p(-ratio * np.expm1(b - at)))


def _log_terms(one: MeanLaw, ratio: float, at: Floats, b: Floats, log_masses: Floats) -> Floats:
    a = _partner(ratio, at, b)
    return np.asarray(log_masses + one.log_density(a) + np.log1p(ratio * np.exp(b - a)))


def _heights(
    one: MeanLaw, other: MeanLaw, at: Floats, last: Floats, between: Integers
) -> tuple[Integers, Integers, Floats]:
    """About the largest logarithm in panels of the other law: for every point, from one panel up to another.

    Returns the points' numbers, the panels' numbers and the logarithms, panel after panel and point after point.
    """
    corners, heights = other.corners
    rows, places = _ranges(2 * between[0], 2 * between[1] + 1)
    a = _partner(other.count / one.count, at[rows], np.minimum(corners[places], last[rows]))
    about = one.log_density_about(a) + heights[places]
    points, panels = _ranges(*between)
    first = 2 * np.arange(points.size) + points  # every point before has one corner more than twice its panels
    tops = np.maximum(np.maximum(about[first], about[first + 1]), about[first + 2])
    return points, panels, np.asarray(tops + np.log(other.halves[panels]))


def _ranges(starts: Integers, stops: Integers) -> tuple[Integers, Integers]:
    """All integers of every range, one after another, and the number of the range of each."""
    sizes = stops - starts
    rows = np.repeat(np.arange(sizes.size), sizes)
    return rows, np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes - starts, sizes)
