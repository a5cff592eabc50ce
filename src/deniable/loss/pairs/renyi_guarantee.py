"""A bare Renyi or zCDP guarantee: the largest trade-off curve that it allows, as a pair of masses (Lemma M2)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from deniable.loss.arrays import Floats
from deniable.loss.pairs.masses import MassStep, step_of_masses

__all__ = ["ORDERS", "Curve", "add_guarantees", "concentrated_orders", "divergences_at", "step_of_renyi"]

Curve = tuple[tuple[float, ...], tuple[float, ...]]

ORDERS = 1 + np.geomspace(3e-3, 1e3, 110)  # at which curves are looked at: with any of them the bound holds
_LEAST_RATE = 1e-290  # what an attack gains below this false positive rate is counted as told
_FAR_RATE = 1e-40  # below it rates lie farther apart
_RATES, _FAR_RATES = 1200, 240
_HALVINGS = 60
_DROPPED_EVERY = 4
_ROUNDING = 1e-13


def concentrated_orders(rho: float) -> Curve:
    """rho-zCDP at many orders."""
    return tuple(ORDERS.tolist()), tuple((rho * ORDERS).tolist())


def add_guarantees(one: Curve, other: Curve) -> Curve:
    """Of both releases together: divergences of one order add up (Mironov 2017); a lower order has no larger one."""
    orders = sorted(order for order in {*one[0], *other[0]} if order <= min(max(one[0]), max(other[0])))
    sums = divergences_at(one, np.array(orders)) + divergences_at(other, np.array(orders))
    return tuple(orders), tuple(sums.tolist())


def divergences_at(curve: Curve, orders: Floats) -> Floats:
    """At other orders: that of the next larger known one; infinite beyond the last."""
    known, epsilons = np.array(curve[0]), np.array(curve[1])
    place = known.argsort()
    least = np.minimum.accumulate(epsilons[place][::-1])[::-1]
    return np.append(least, np.inf)[np.searchsorted(known[place], orders)]


@lru_cache(maxsize=32)
def step_of_renyi(orders: tuple[float, ...], epsilons: tuple[float, ...]) -> MassStep:
    """The curve at many rates, rounded up, and around it the polygon of its chords drawn on (Lemma M2)."""
    far = np.geomspace(_LEAST_RATE, _FAR_RATE, _FAR_RATES, endpoint=False)
    fpr = np.append(far, np.geomspace(_FAR_RATE, 0.6, _RATES))
    tpr = np.minimum(_largest_tpr(fpr, np.array(orders), np.array(epsilons)) * (1 + _ROUNDING), 1.0)
    x, y = _up_to_diagonal(*_outside(fpr, np.maximum.accumulate(tpr)))
    null, own = np.diff(x, prepend=0.0), np.diff(y, prepend=0.0)
    both = [np.concatenate([first, second[::-1]]) for first, second in ((own, null), (null, own))]
    return replace(step_of_masses(both[0] / both[0].sum(), both[1] / both[1].sum()), symmetric=True, slip=1.0)


def _largest_tpr(fpr: Floats, orders: Floats, epsilons: Floats) -> Floats:
    """The largest true positive rate at every false positive rate that no order forbids, by halving.

    Every few halvings those orders are dropped that surely allow more than another one does.
    """
    place, order = (axis.ravel() for axis in np.indices((fpr.size, orders.size)))
    low, high, least = np.log(fpr)[place], np.zeros(place.size), np.zeros(fpr.size)
    for turn in range(_HALVINGS):
        middle = 0.5 * (low + high)
        forbidden = _divergence(np.exp(middle), fpr[place], orders[order]) > epsilons[order]
        low, high = np.where(forbidden, low, middle), np.where(forbidden, middle, high)
        if turn % _DROPPED_EVERY == 0:
            np.minimum.at(least, place, high)
            left = low <= least[place]
            place, order, low, high = place[left], order[left], low[left], high[left]
    np.minimum.at(least, place, high)
    return np.asarray(np.exp(least))


def _divergence(y: Floats, x: Floats, order: Floats) -> Floats:
    """The larger one of both Renyi divergences between coins that show heads with probability y and x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads, tails = np.log(y) - np.log(x), np.log1p(-y) - np.log1p(-x)
        forth = np.logaddexp(np.log(y) + (order - 1) * heads, np.log1p(-y) + (order - 1) * tails)
        back = np.logaddexp(np.log(x) - (order - 1) * heads, np.log1p(-x) - (order - 1) * tails)
    found = np.fmax(forth, back) / (order - 1)
    return np.where(y >= 1.0, np.inf, found)


def _outside(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Corners of a polygon around a concave curve through these points: where chords drawn on from both sides meet."""
    slopes = np.diff(y) / np.diff(x)
    before, after = slopes[:-2], slopes[2:]
    gap, rise = x[2:-1] - x[1:-2], y[2:-1] - y[1:-2]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((rise - after * gap) / ((before - after) * gap), 0.0, 1.0)
    share = np.where(np.isfinite(share), share, 0.0)
    corner_x = x[1:-2] + share * gap
    corner_y = np.minimum(y[1:-2] + before * share * gap, y[2:-1])
    return np.append(0.0, corner_x), np.maximum.accumulate(np.append(y[1], corner_y))


def _up_to_diagonal(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners with x + y < 1 and the point where the sum is 1; beyond, the curve is its own mirror image."""
    last = int(np.argmax(x + y >= 1))
    before, after = 1 - x[last - 1] - y[last - 1], x[last] + y[last] - 1
    middle = x[last - 1] + (x[last] - x[last - 1]) * before / (before + after)
    return np.append(x[:last], middle), np.append(y[:last], 1 - middle)
