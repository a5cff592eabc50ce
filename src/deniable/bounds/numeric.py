"""What divergences are made of, accurate for tiny and for huge arguments; those of the sampled Gaussian mechanism.

Renyi and Kullback-Leibler divergences of a Poisson-sampled Gaussian mechanism come from one quadrature.

Pairs (noise z relative to the sensitivity, rate q; N(m) is a normal law of mean m and deviation z):

* `add-remove` and `zero-out`: P = (1-q) N(0) + q N(1) against Q = N(0). P against Q has the larger Renyi divergence
  of the two directions (Mironov, Talwar and Zhang 2019, Theorem 5).
* `replace`, sensitivity 2C: P = (1-q) N(0) + q N(1/2) against Q = (1-q) N(0) + q N(-1/2). No other pair of records
  is easier to tell apart. For gamma >= 1 the hockey-stick divergence of records x, y is the supremum over events S of
  q N_x(S) - (gamma-1)(1-q) N_0(S) - gamma q N_y(S). Fix N_x(S) = p. By Neyman and Pearson N_0(S) and N_y(S) are
  at least Phi(Phi^-1(p) - d/z) with d = |x| <= 1/2 and d = |x-y| <= 1, and at x = 1/2, y = -1/2 a half-line attains
  both least values at once. For gamma < 1 exchange P and Q, which is a reflection. Renyi and KL divergences grow
  with all hockey-stick divergences, so they too are largest for this pair.

With L = ln P/Q, a = order - 1 and excess(x) = e^x - 1 - x >= 0:

    e^(a D_order(P||Q)) - 1 = E_P[excess(a L)] + a KL(P||Q),   KL(P||Q) = E_P[excess(-L)],   KL(Q||P) = E_Q[excess(L)]

because E_P[e^-L] = 1. The integrands are analytic in a strip of half-width pi z^2 (where P first vanishes), so the
trapezoidal rule with step 0.4 z min(1, z) errs by about e^-45 (relative); rounding is covered by `_ROUNDING`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, copysign, factorial, inf, log, log1p, log2, sqrt

import numpy as np
import numpy.typing as npt

from deniable.mechanisms import Adjacency

Array = npt.NDArray[np.float64]
Point = tuple[float, float]
_HUGE = 500.0  # e^500 is finite, and so is its product with anything that stands beside it here
NEAR = 0.3  # below it the series' thirteen terms have all digits; above it the difference keeps all but one
_SERIES = [1 / factorial(k) for k in range(13, 1, -1)]
_STEP = 0.05
_WALL = 0.1  # a share of the lowest value; what is so far above it is not on the same parabola
_GOLDEN = 0.382
_NARROWEST = 1e-7
_TINY = 1e-12
_MOST_TURNS = 100


class InapplicableError(ValueError):
    """The analysis has no valid form for this mechanism, adjacency or delta."""


def gaussian_rho(noise: float) -> float:
    """1 / (2 noise^2): KL divergence and zCDP parameter of one Gaussian step, and its Renyi divergence per order."""
    return 0.5 / noise / noise


def log_mixture(rate: float, exponent: npt.ArrayLike) -> Array:
    """ln(1 - rate + rate e^exponent) for 0 < rate < 1, with full relative accuracy where the result is near 0."""
    x = np.asarray(exponent, dtype=float)
    near: Array = np.log1p(rate * np.expm1(np.minimum(x, _HUGE)))
    if x.max() < _HUGE:
        return near
    far = np.logaddexp(np.log1p(-rate), np.log(rate) + x)
    mixture: Array = np.where(x < _HUGE, near, far)
    return mixture


def log_excess(exponent: npt.ArrayLike) -> Array:
    """ln(e^x - 1 - x), the logarithm of what an exponential has above its tangent; -inf at x = 0."""
    x = np.asarray(exponent, dtype=float)
    middle, large = np.clip(x, None, 40), np.maximum(x, 40)
    with np.errstate(divide="ignore"):
        direct = np.log(np.where(np.abs(x) < NEAR, _series(np.clip(x, -NEAR, NEAR)), np.expm1(middle) - middle))
    excess: Array = np.where(x < 40, direct, large + np.log1p(-(1 + large) * np.exp(-large)))
    return excess


def _series(x: Array) -> Array:
    """e^x - 1 - x, for |x| < .3."""
    series = np.full_like(x, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series *= x
        series += coefficient
    return series * x * x


def valley(
    function: Callable[[float], float], ends: tuple[float, float], *, start: float, exact: Callable[[float], float]
) -> tuple[float, float]:
    """Where between `ends` a function with one valley is least, and its value there; `exact` tells within how much.

    Walks downhill from `start` by doubling steps until the valley is enclosed, then closes in: by golden sections
    until both ends are low enough for parabolas, which then take over.
    """

    def point(x: float) -> Point:
        x = min(max(x, ends[0]), ends[1])
        return x, function(x)

    start, step = min(max(start, ends[0]), ends[1]), _STEP
    left, here, right = point(start - step), point(start), point(start + step)
    while min(left[1], right[1]) < here[1]:
        step *= 2
        if left[1] < here[1]:
            left, here, right = point(left[0] - step), left, here
        else:
            left, here, right = here, right, point(right[0] + step)
    for turn in range(_MOST_TURNS):
        move = _downhill(left, here, right, exact(here[1]), turn % 5 == 4)
        if move == 0:
            break
        new = point(here[0] + move)
        outer, inner = (here, new) if new[1] < here[1] else (new, here)
        left, here, right = (left, inner, outer) if outer[0] > inner[0] else (outer, inner, right)
    return here


def _downhill(left: Point, here: Point, right: Point, error: float, by_section: bool) -> float:
    """How far from `here`, the lowest point yet between `left` and `right`, to look for a lower one; 0 to stop.

    Around its lowest point the function is convex, hence above the line through any two of the points where it goes on.
    """
    before, after = here[0] - left[0], right[0] - here[0]
    down, up = left[1] - here[1], right[1] - here[1]
    if before + after < 2 * _NARROWEST or error == inf:
        return 0.0
    if before == 0 or after == 0:  # an end of the range
        return copysign(_NARROWEST, after - before)
    size = max(abs(here[1]), _TINY)
    high_before, high_after = before * (down > _WALL * size), after * (up > _WALL * size)
    if high_before or high_after:  # no parabola fits there
        return _GOLDEN * (high_after if high_after > high_before else -high_before)
    fall, rise = down / before, up / after
    if max(fall * after, rise * before) <= error:
        return 0.0
    wider = after if after > before else -before
    if by_section:
        return _GOLDEN * wider
    bend = (fall + rise) / (before + after)
    move, least = 0.5 * (fall / bend - before), 0.5 * sqrt(error / bend)
    return move if abs(move) > least else copysign(least, wider)


_NODE_SPACING = 0.4
_TAIL = 12.0  # standard deviations beyond the outermost bump; e^-72 is left out
_MOST_NODES = 50_000
_HUGE_EXPONENT = 600.0
_FEW_NODES = 5_000
_POWERS = np.arange(2.0, 14.0)
_SIGNS = (-1) ** _POWERS
_FACTORIALS = np.array([float(factorial(int(k))) for k in _POWERS])
_ROUNDING = 1 + 1e-11


def sampled_gaussian_renyi(order: float, noise: float, rate: float, adjacency: Adjacency) -> float:
    """Renyi divergence of `order` > 1 of one step; never below the truth.

    Where the quadrature would need too many nodes (noise below about .012, or an order far above any useful one)
    convexity serves: e^(aD) <= 1 - rate + rate e^(aD of the unsampled Gaussian).
    """
    a = order - 1
    if _nodes_needed(noise, order) > _MOST_NODES:
        return float(log_mixture(rate, a * order * gaussian_rho(noise))) / a
    return _nodes(noise, rate, _reach(noise, order), adjacency).log_moment(a) / a * _ROUNDING


def sampled_gaussian_kl(noise: float, rate: float, adjacency: Adjacency) -> tuple[float, float]:
    """(KL(P||Q), KL(Q||P)) of one step, to about 1e-12 relative, rounded up (Jia 2023, Section 5.1)."""
    if _nodes_needed(noise, 2) > _MOST_NODES:
        return rate * gaussian_rho(noise), rate * gaussian_rho(noise)
    nodes = _nodes(noise, rate, 2.0, adjacency)
    return nodes.forward * _ROUNDING, nodes.backward * _ROUNDING


@dataclass(frozen=True)
class _Nodes:
    """The loss L at the nodes, which grows with them, and ln of P's density there times the step.

    A mean under P is a sum over the nodes. Where L is near 0 what is summed would cancel; it is summed as a series
    there, and for that the means of powers of L serve every order.
    """

    loss: Array
    log_p: Array

    @cached_property
    def p(self) -> Array:
        return np.exp(self.log_p)

    @cached_property
    def powers(self) -> Array:
        """P times L^k in row k, from k = 2 on."""
        rows = np.empty((len(_POWERS), len(self.loss)))
        rows[0] = self.p * self.loss * self.loss
        for lower, row in pairwise(rows):
            np.multiply(lower, self.loss, out=row)
        return rows

    def log_moment(self, a: float) -> float:
        """ln E_P[e^(a L)], for a > 0."""
        exponent = a * self.loss
        terms = self.log_p + exponent
        top = float(terms.max())
        if top > _HUGE_EXPONENT:  # nothing cancels
            return top + log(float(np.exp(terms - top).sum()))
        excess = self._mean(NEAR / a, a**_POWERS / _FACTORIALS, np.exp(terms) - self.p * (1 + exponent))
        return log1p(excess + a * self.forward)

    @cached_property
    def forward(self) -> float:
        """KL(P||Q): the mean of e^-L - 1 + L."""
        far = np.exp(self.log_p - self.loss) - self.p * (1 - self.loss)
        return self._mean(NEAR, _SIGNS / _FACTORIALS, far)

    @cached_property
    def backward(self) -> float:
        """KL(Q||P): the mean of e^-L (e^L - 1 - L)."""
        far = self.p - np.exp(self.log_p - self.loss) * (1 + self.loss)
        return self._mean(NEAR, _SIGNS * (_POWERS - 1) / _FACTORIALS, far)

    def _mean(self, reach: float, series: Array, far: Array) -> float:
        """By the coefficients of `series` where |L| < reach, by the terms `far` elsewhere."""
        low, high = self.loss.searchsorted((-reach, reach))
        near = series @ self.powers[:, low:high].sum(axis=1)
        return float(near + far[:low].sum() + far[high:].sum())


def _nodes_needed(noise: float, order: float) -> float:
    return (max(order, 2) / noise + 0.5 / noise + 2 * _TAIL) / (_NODE_SPACING * min(1.0, noise))


def _reach(noise: float, order: float) -> float:
    """The next power of 4, where that is not dear: orders that are near to each other share their nodes."""
    reach = 4.0 ** ceil(0.5 * log2(order))
    return reach if _nodes_needed(noise, reach) < _FEW_NODES else max(2.0, order)


@lru_cache(maxsize=2)
def _nodes(noise: float, rate: float, order: float, adjacency: Adjacency) -> _Nodes:
    """What serves every order up to this one, which is 2 or more."""
    step = _NODE_SPACING * min(1.0, noise)
    t = np.arange(-_TAIL - 0.5 / noise, order / noise + _TAIL, step)
    log_normal = log(step) - 0.5 * log(2 * np.pi) - t**2 / 2
    if adjacency is not Adjacency.REPLACE:
        loss = log_mixture(rate, t / noise - gaussian_rho(noise))
        return _Nodes(loss, log_normal + loss)
    upper = log_mixture(rate, 0.5 * t / noise - gaussian_rho(noise) / 4)
    lower = log_mixture(rate, -0.5 * t / noise - gaussian_rho(noise) / 4)
    return _Nodes(upper - lower, log_normal + upper)
