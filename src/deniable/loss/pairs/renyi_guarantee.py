"""Releases known by their Renyi divergences: bare Renyi and zCDP guarantees, and the best of a random number of runs.

A guarantee is the largest trade-off curve that it allows, as a pair of masses (Lemma M2). Tuning: Papernot, Steinke
2022.

"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, expm1, inf, isfinite, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from deniable.loss.arrays import Floats
from deniable.loss.pairs.masses import MassStep
from deniable.loss.pairs.pair import PRECISION, STICK, TAIL, Functional
from deniable.loss.pairs.step import Step
from deniable.search import falls_to
from deniable.upper import Upper


class RenyiCurve(NamedTuple):
    """Renyi divergences at some orders; beside steps that end at an order, rho times the order holds at all of them."""

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    rho: float = 0.0

    def times(self, runs: int) -> RenyiCurve:
        """Of so many releases: divergences of one order add up (Mironov 2017)."""
        return RenyiCurve(self.orders, tuple(runs * epsilon for epsilon in self.epsilons), runs * self.rho)


ORDERS = 1 + np.geomspace(3e-3, 1e3, 110)  # at which curves are looked at: with any of them the bound holds
_CLOSE_ORDERS = 1 + np.geomspace(3e-3, 1e3, 330)  # at which the error of looking at the others is found
_TINY_RHO, _FEW_ORDERS = 1e-22, 4
_NOTHING_TOLD = 1e-18  # nats: round-off hides such divergences
_LEAST_LOG, _MOST_RATE = -667.0, 0.6  # a true positive rate below e^-667 is counted as told
_RATES, _RATES_AT_FIRST = 2400, 240
_LOGITS = -50.0, 34.0  # of true positive rates that are told apart from 0 and from 1
_MOST_LOGIT = 80.0  # of a true positive rate that is counted as 1
_COARSE_LOGITS = 20.0  # between two rates; then more of them are needed there
_MOST_TURNS = 8
_WIDTHS_NATS = (0.05, 0.2, 1.0, 5.0)  # over which a slope of the divergence is taken
_HALVINGS = 60
_DROPPED_EVERY = 4
_ROUNDING = 1e-13


def concentrated_orders(rho: float) -> RenyiCurve:
    """rho-zCDP at many orders; where rho is tiny the last ones forbid the most, and the others the same but slower."""
    orders = ORDERS if rho > _TINY_RHO else ORDERS[-_FEW_ORDERS:]
    return RenyiCurve(tuple(orders.tolist()), tuple((rho * orders).tolist()), rho)


def add_guarantees(one: RenyiCurve, other: RenyiCurve) -> RenyiCurve:
    """Of both releases together: divergences of one order add up (Mironov 2017); a lower order has no larger one."""
    orders = sorted(order for order in {*one.orders, *other.orders} if order <= min(max(one.orders), max(other.orders)))
    sums = divergences_at(one, np.array(orders)) + divergences_at(other, np.array(orders))
    return RenyiCurve(tuple(orders), tuple(sums.tolist()), one.rho + other.rho)


def divergences_at(curve: RenyiCurve, orders: Floats) -> Floats:
    """At other orders: that of the next larger known one; infinite beyond the last."""
    return _next_larger(np.array(curve.orders), np.array(curve.epsilons), orders)


def _next_larger(known: Floats, epsilons: Floats, orders: Floats) -> Floats:
    place = known.argsort()
    least = np.minimum.accumulate(epsilons[place][::-1])[::-1]
    return np.append(least, np.inf)[np.searchsorted(known[place], orders)]


@dataclass(frozen=True)
class GuaranteedStep(MassStep):
    """The polygon around the largest curve that a guarantee allows; the one inside of it tells how close that is."""

    inside: MassStep | None = field(default=None, compare=False, repr=False)
    curve: RenyiCurve | None = field(default=None, compare=False, repr=False)

    def enough(self, delta: float) -> Upper:
        """Where the round-off of very large losses is above delta, Markov's inequality for e^{(a - 1) L} answers."""
        found = super().enough(delta)
        if isfinite(found) or self.curve is None:
            return found
        orders, epsilons = (np.array(values) for values in self.curve[:2])
        most = float((epsilons - log(delta) / (orders - 1)).min()) * (1 + _ROUNDING)
        told = super().enough(min(2 * self.escape, 1.0))  # of a larger delta, so no larger one
        return Upper.between(min(told.least, most) if isfinite(told) else 0.0, most)

    def _round_outwards(self, functional: Functional, k: float) -> Upper:
        found = super()._round_outwards(functional, k)
        if self.inside is None or not isfinite(k):
            return found
        least = self.inside.hockey_stick(k).least if functional.shift else 0.0
        if functional is not STICK:
            gained = self._least_gain(k)
            least += gained if functional is TAIL else exp(min(log(gained) - k, 0.0)) if gained > 0 else 0.0
        return Upper.between(min(max(least, 0.0), found.least), found)

    def _least_gain(self, k: float) -> float:
        """At least e^k Q(L > k): by the divergence's slope, which is convex in e^k."""
        assert self.inside is not None
        here = self.inside.hockey_stick(k).least
        falls = [(here - float(self.hockey_stick(k + width))) / expm1(width) for width in _WIDTHS_NATS]
        return max(0.0, *falls)

    def _where(
        self, tail: Functional, failure: float, precision: float = PRECISION, hint: float | None = None
    ) -> Upper:
        return Step._where(self, tail, failure, precision or PRECISION, hint)


@lru_cache(maxsize=32)
def step_of_renyi(curve: RenyiCurve) -> GuaranteedStep:
    """The curve at many rates, rounded up, and around it the polygon of its chords drawn on (Lemma M2)."""
    known = np.array(curve.orders), np.array(curve.epsilons)
    log_fpr = _log_rates(*known)
    rounding = _ROUNDING * (1 - log_fpr / 100)
    logits = _largest_logits(log_fpr, *known)
    tpr = np.maximum.accumulate(np.minimum(expit(logits) * (1 + rounding), 1.0))
    least = np.maximum.accumulate(expit(_logits_at_all_orders(log_fpr, logits, curve)) * (1 - rounding))
    around, inside = (_step_of_curve(*at) for at in (_outside(log_fpr, tpr), (log_fpr, least)))
    return GuaranteedStep(
        f"guarantee {curve.orders!r} {curve.epsilons!r}",
        around.losses,
        around.log_null_masses,
        around.hidden,
        around.null_hidden,
        symmetric=True,
        slip=1.0,
        inside=inside,
        curve=curve,
    )


def _log_rates(orders: Floats, epsilons: Floats) -> Floats:
    """ln of false positive rates x, close where the curve rises: half of them even in ln x, half in logit y.

    From where some order leaves e^-667 to the true positive rate y: ln y <= (a - 1)/a (e_a + ln x).
    """
    least = float((_LEAST_LOG * orders / (orders - 1) - epsilons).max())
    found = np.linspace(least, log(_MOST_RATE), _RATES_AT_FIRST)
    for turn in range(1, 1 + _MOST_TURNS):
        logits = np.clip(_largest_logits(found, orders, epsilons), *_LOGITS)
        last = turn == _MOST_TURNS or float(np.diff(logits).max()) <= _COARSE_LOGITS
        path = sum((along - along[0]) / (along[-1] - along[0]) for along in (found, logits) if along[-1] > along[0])
        found = np.interp(np.linspace(0.0, path[-1], _RATES if last else _RATES_AT_FIRST), path, found)
        if last:
            break
    return np.unique(found)


def _logits_at_all_orders(log_fpr: Floats, logits: Floats, curve: RenyiCurve) -> Floats:
    """Of true positive rates, at most the given ones, that no order forbids, also none between those of the curve.

    (a - 1) D_a of two coins is convex in the order a, so it lies below its chords; (a - 1) rho a lies below a chord of
    length h by rho h^2/4 at most. Below the first order D_a is no larger than there; beyond the last one it is at most
    D_inf, which may be what the last one allows.
    """
    if curve.rho == 0:
        return logits
    if max(curve.epsilons) < _NOTHING_TOLD:
        return _logit(log_fpr)  # of a guess, which no order forbids
    known = np.array(curve.orders)
    orders = np.unique(np.concatenate([known, _CLOSE_ORDERS[known.max() > _CLOSE_ORDERS]]))
    gaps = np.diff(orders)
    chords = np.maximum(np.append(0.0, gaps), np.append(gaps, 0.0))
    ended = _next_larger(known, np.array(curve.epsilons) - curve.rho * known, orders)
    held = np.append(1.0, (orders - chords**2 / (4 * (orders - 1)))[1:])
    epsilons = (curve.rho * held + ended) * (1 - _ROUNDING)
    if known.max() == ORDERS[-1]:
        logits = np.minimum(logits, _logit(np.minimum(log_fpr + epsilons[-1], -1e-300)))
    return _largest_logits(log_fpr, orders, epsilons, logits)


def _largest_logits(log_fpr: Floats, orders: Floats, epsilons: Floats, most: Floats | None = None) -> Floats:
    """Of the largest true positive rate, up to `most`, at every false positive rate that no order forbids.

    By halving; every few times those orders are dropped that surely allow more than another one does.
    """
    start = _logit(log_fpr)
    least = np.full(log_fpr.size, _MOST_LOGIT) if most is None else np.maximum(most, start)
    place, order = np.nonzero(_divergence(least[:, None], log_fpr[:, None], orders) > epsilons)
    low, high = start[place], least[place]
    for turn in range(_HALVINGS):
        middle = 0.5 * (low + high)
        forbidden = _divergence(middle, log_fpr[place], orders[order]) > epsilons[order]
        low, high = np.where(forbidden, low, middle), np.where(forbidden, middle, high)
        if turn % _DROPPED_EVERY == 0:
            np.minimum.at(least, place, high)
            left = low <= least[place]
            place, order, low, high = place[left], order[left], low[left], high[left]
    np.minimum.at(least, place, high)
    return least


def _logit(log_rate: Floats) -> Floats:
    return np.asarray(log_rate - np.log(-np.expm1(log_rate)))


def _divergence(logit_y: Floats, log_x: Floats, order: Floats) -> Floats:
    """The larger one of both Renyi divergences between coins that show heads with probability y and x."""
    log_y, y_tails, x_tails = -np.logaddexp(0.0, -logit_y), -np.logaddexp(0.0, logit_y), np.log1p(-np.exp(log_x))
    heads, tails = log_y - log_x, y_tails - x_tails
    forth = np.logaddexp(log_y + (order - 1) * heads, y_tails + (order - 1) * tails)
    back = np.logaddexp(log_x - (order - 1) * heads, x_tails - (order - 1) * tails)
    return np.asarray(np.maximum(forth, back) / (order - 1))


def _outside(log_x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Corners of a polygon around a concave curve through these points: where chords drawn on from both sides meet.

    The first is what an attack gains that accuses nobody wrongly.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rise, log_gap = np.diff(y), _log_differences(log_x)
        slopes = np.log(rise) - log_gap
        before, after, gap = slopes[:-2], slopes[2:], log_gap[1:-1]
        fall = np.exp(np.minimum(after - before, 0.0))  # of the slope
        share = np.clip((rise[1:-1] * np.exp(-before - gap) - fall) / (1 - fall), 0.0, 1.0)
        share = np.where(np.isfinite(share), share, 0.0)
        corner_x = np.logaddexp(log_x[1:-2], np.log(share) + gap)
        corner_y = np.minimum(y[1:-2] + share * np.exp(np.minimum(before + gap, 1.0)), y[2:-1])
    return np.append(-inf, corner_x), np.maximum.accumulate(np.append(y[1], corner_y))


def _log_differences(log_x: Floats) -> Floats:
    """ln of the differences of ascending numbers."""
    return np.asarray(log_x[1:] + np.log(-np.expm1(np.minimum(log_x[:-1] - log_x[1:], 0.0))))


def _step_of_curve(log_fpr: Floats, tpr: Floats) -> MassStep:
    """From the corners of one half of a polygon, which is its own mirror image (x -> 1 - y, y -> 1 - x)."""
    log_x, y = _up_to_diagonal(log_fpr, tpr)
    with np.errstate(divide="ignore"):
        log_null = np.append(log_x[0], _log_differences(log_x))
        log_own = np.log(np.maximum(np.diff(y, prepend=0.0), 0.0))
    seen = np.isfinite(log_null) & np.isfinite(log_own)
    if not seen.any():
        return MassStep("all is told", np.zeros(1), np.array([-1e300]), 1.0, 1.0, symmetric=True, slip=1.0)
    hidden = float(np.exp(np.logaddexp.reduce(np.where(seen, -inf, np.logaddexp(log_own, log_null)))))
    both = [np.concatenate([one[seen], other[seen]]) for one, other in ((log_own, log_null), (log_null, log_own))]
    total = log(float(np.exp(both[1]).sum()) + hidden)
    losses, places = np.unique(both[0] - both[1], return_inverse=True)
    masses = np.full(losses.size, -inf)
    np.logaddexp.at(masses, places, both[1] - total)
    return MassStep("polygon", losses, masses, hidden, hidden, symmetric=True, slip=1.0)


def _up_to_diagonal(log_x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners with x + y < 1 and the point where the sum is 1; beyond, the curve is its own mirror image."""
    x = np.exp(log_x)
    last = int(np.argmax(x + y >= 1))
    if last == 0:
        return np.array([-inf]), np.ones(1)
    before, after = 1 - x[last - 1] - y[last - 1], x[last] + y[last] - 1
    share = before / (before + after)
    middle = x[last - 1] + (x[last] - x[last - 1]) * share
    log_middle = log(middle) if middle > 0 else log_x[last - 1] + (log_x[last] - log_x[last - 1]) * share
    return np.append(log_x[:last], log_middle), np.append(y[:last], 1 - middle)


def selected_divergences(
    orders: Floats, epsilons: Floats, mean: float, shape: float, delta: Callable[[float], float]
) -> Floats:
    """Renyi divergences of the released run at all orders, those of one run being `epsilons`.

    `delta` gives the smallest delta of one run by epsilon; a Poisson number of runs (infinite shape) needs it.
    """
    spread = np.log(mean) / (orders - 1)
    if shape == inf:  # Theorem 6
        deltas = np.array([delta(log1p(1 / (order - 1))) for order in orders])
        return np.asarray(epsilons + mean * deltas + spread)
    stop = -log(stopping_probability(mean, shape))  # Theorem 2
    other = (1 - 1 / orders) * epsilons + stop / orders
    return np.asarray(epsilons + (1 + shape) * other.min() + spread)


def stopping_probability(mean: float, shape: float) -> float:
    """gamma of the truncated negative binomial law with this mean, from below."""
    if shape == 1:
        return 1 / mean
    found = falls_to(lambda x: _mean_of_runs(x, shape), mean, (-log(mean), 1.0), within=(-700.0, -1e-12))
    return float(np.exp(found - 1e-9))


def _mean_of_runs(log_gamma: float, shape: float) -> float:
    """eta (1 - gamma) / (gamma (1 - gamma^eta)), by ln gamma; it falls as gamma rises."""
    rise = -np.expm1(log_gamma) * np.exp(-log_gamma)
    return float(rise / -log_gamma if shape == 0 else shape * rise / -np.expm1(shape * log_gamma))
