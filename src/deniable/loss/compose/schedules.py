"""Many unlike sampled Gaussian steps at once: schedules of the noise or of the rate.

K of a composition is the sum of its steps' K(s; mu, rate), an analytic function of both. Steps of a schedule lie on a
curve: mu = 1 / noise and the rate are smooth functions of one parameter t. With Lagrange's polynomials l of Chebyshev
nodes on that curve,

    sum over steps of K(s; step) = sum over nodes of weight * K(s; node),   weight = sum over steps of l(t of the step),

so that a few dozen nodes stand for any number of steps. Steps that lie on no such curve are computed one by one, in
arrays.

Error. Validated, not proved: for every line and every real point the polynomial is compared with some of the steps
themselves, the most extreme ones among them, and must agree so well that K is wrong by at most `Schedule.error`, which
lines grant as round-off. The integrals are trapezoidal rules like those of `loss.moments`, halved until they no longer
move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebvander

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.moments.elementary import expm1, log1p, log_mixture
from deniable.loss.moments.nodes import seen_from
from deniable.loss.moments.wave_sums import turned
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledAdd, SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum

__all__ = ["Schedule", "together"]

_TOLERANCE = 2e-11  # error of K that polynomials may cause, ...
_LEAST_TOLERANCE, _MOST_TOLERANCE = 1e-15, 2e-14  # ... though a single step's be neither below nor above this
_LARGE_NATS = 100.0
_MANY = 24  # unlike steps of one kind from which on they are taken together
_SIZES = (16, 48)  # nodes, tried in turn
_CURVE_DEGREE = 24
_ON_CURVE = 1e-12  # relative distance of a step from the curve, which moves its K by about as much
_WITNESSES = 6  # steps by which a polynomial is checked, beside the extreme ones
_REACH_DEVIATIONS = (-14.0, 26.0)
_NEGLIGIBLE_NATS = 44.0
_WIDEST_SPACING = 0.4  # standard deviations between the nodes of an integral
_FINEST_SPACING = 0.01
_CLOSE = 1e-15  # what halving the spacing may still change in a moment near 1
_CLOSE_ENOUGH = 1e-9  # relative error of K on the real axis, where it says where to stand and bounds what is left out
_TURNED = np.array([1.0, -1.0, 1.0])[:, None]


def together(parts: Sequence[tuple[Step, int]]) -> list[tuple[Step | Schedule, int]]:
    """The steps of a composition, with many unlike sampled Gaussians of one kind as a `Schedule` that runs once."""
    alike = {
        kind: [part for part in parts if _described(part[0])[0] == kind] for kind in ("removed", "added", "exchanged")
    }
    many = {kind: rows for kind, rows in alike.items() if len(rows) >= _MANY}
    if not many:
        return list(parts)
    others = [part for part in parts if _described(part[0])[0] not in many]
    return others + [(Schedule.of(kind, rows), 1) for kind, rows in many.items()]


def _described(step: Step) -> tuple[str, float, float]:
    """Kind, mu and rate of an undamped sampled Gaussian step; no kind for any other step."""
    match step:
        case SubsampledRemove(GaussianStep(mu), rate, 0.0):
            return "removed", mu, rate
        case SubsampledAdd(SubsampledRemove(GaussianStep(mu), rate, 0.0)):
            return "added", mu, rate
        case SubsampledReplaceSum(mu, rate, 0.0):
            return "exchanged", mu, rate
    return "", 0.0, 0.0


@dataclass(frozen=True)
class Schedule:
    """Steps of one kind that each have a mu, a rate and a number of runs, as one measure of losses.

    Mirrored ones have P and Q exchanged: E_P[e^{-sL}] = E_Q[e^{(1 - s) L}].
    """

    parts: Sequence[tuple[Step, int]]
    mus: Floats
    rates: Floats
    counts: Floats
    exchanged: bool
    mirrored: bool

    @classmethod
    def of(cls, kind: str, parts: Sequence[tuple[Step, int]]) -> Schedule:
        rows = [(*_described(step)[1:], count) for step, count in parts]
        mus, rates, counts = np.array(rows, dtype=np.float64).T
        return cls(parts, mus, rates, counts, kind == "exchanged", kind == "added")

    def cumulant(self, s: Complexes) -> Complexes:
        """Sum of the steps' log E_Q[e^{sL}] for s on one vertical line; where it is large, each by its own rule."""
        try:
            return self._cumulant(1 - s.conj()).conj() if self.mirrored else self._cumulant(s)
        except UnresolvedError:
            return np.asarray(sum(count * step.cumulant(s) for step, count in self.parts))

    def _cumulant(self, s: Complexes) -> Complexes:
        height = self._height(float(s[0].real))
        exact = self._witnesses.cumulants(s)
        for nodes in self._polynomials:
            found = nodes.stack.cumulants(s)
            total = nodes.weights(self.counts) @ found
            # an error matters as much as e^K does, beside its value on the real axis
            matters = np.exp(np.minimum(total.real - height, 0.0))
            if (nodes.apart(self._chosen, found, exact) * matters <= self._tolerance).all():
                return np.asarray(total)
        return np.asarray(sum(counts @ stack.cumulants(s) for stack, counts in self._every))

    def _height(self, c: float) -> float:
        if c not in self._heights:
            self._heights[c] = float(self._tilted(np.array([c]))[0, 0])
        return self._heights[c]

    @cached_property
    def _heights(self) -> dict[float, float]:
        """K at the real points of lines that were asked for."""
        return {}

    @cached_property
    def _tolerance(self) -> float:
        """Absolute error that a polynomial may have for one step."""
        return max(_LEAST_TOLERANCE, min(_MOST_TOLERANCE, _TOLERANCE / float(self.counts.sum())))

    @property
    def error(self) -> float:
        """Of K on a line, wherever e^K matters, beside round-off."""
        return self._tolerance * float(self.counts.sum()) if self._polynomials else 0.0

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Validated, not proved, as K itself is here."""
        return seen_from(self.cumulant, c, omega)

    def tilted(self, c: Floats) -> Floats:
        """The same and its first two derivatives (rows) at every real c; inf where K is large and not well known."""
        return self._tilted(1 - c) * _TURNED if self.mirrored else self._tilted(c)

    def _tilted(self, c: Floats) -> Floats:
        total = np.full((3, c.size), np.inf)
        exact = self._witnesses.tilted(c)
        left = np.flatnonzero(np.isfinite(exact).all(axis=(0, 1)))
        for nodes in self._polynomials:
            if not left.size:
                break
            found = nodes.stack.tilted(c[left])
            total[:, left] = np.tensordot(nodes.weights(self.counts), found, 1)
            apart = nodes.apart(self._chosen, found, exact[:, :, left]) * self.counts.sum()
            left = left[~(apart <= _CLOSE_ENOUGH * (1 + np.abs(total[:, left]))).all(axis=0)]
        if left.size:
            large = self._polynomials and (total[0, left] > _LARGE_NATS).all()
            total[:, left] = np.inf if large else self._exact(c[left])
        return total

    def _exact(self, c: Floats) -> Floats:
        return np.asarray(sum(np.tensordot(counts, stack.tilted(c), 1) for stack, counts in self._every))

    @cached_property
    def _chosen(self) -> list[int]:
        """The extreme steps, and some between."""
        extremes = {int(f(a)) for f in (np.argmin, np.argmax) for a in (self.mus, self.rates, self.mus * self.rates)}
        between = np.linspace(0, self.mus.size - 1, _WITNESSES + 2).astype(int)[1:-1]
        return sorted(extremes | set(between.tolist()))

    @cached_property
    def _witnesses(self) -> _Stack:
        return _Stack(self.mus[self._chosen], self.rates[self._chosen], self.exchanged)

    @cached_property
    def _polynomials(self) -> list[_Polynomial]:
        """By few nodes and by more, where they are much fewer than the steps and the steps lie on one smooth curve."""
        curve = self._curve()
        sizes = [size for size in _SIZES if 2 * size < self.mus.size]
        return [] if curve is None else [self._polynomial(curve, size) for size in sizes]

    def _curve(self) -> tuple[Floats, Chebyshev, Chebyshev] | None:
        """A parameter of every step, from -1 to 1, of which mu and rate are polynomials; None where there is none."""
        spread = max((self.mus, self.rates), key=lambda values: values.max() / values.min())
        middle, half = (spread.max() + spread.min()) / 2, (spread.max() - spread.min()) / 2
        at = np.clip((spread - middle) / half, -1.0, 1.0)
        degree = min(_CURVE_DEGREE, np.unique(at).size // 2)
        fits = [Chebyshev.fit(at, values, degree, domain=[-1.0, 1.0]) for values in (self.mus, self.rates)]
        close = all(
            np.abs(fit(at) / values - 1).max() < _ON_CURVE
            for fit, values in zip(fits, (self.mus, self.rates), strict=True)
        )
        return (at, *fits) if close else None

    def _polynomial(self, curve: tuple[Floats, Chebyshev, Chebyshev], size: int) -> _Polynomial:
        at, mu, rate = curve
        nodes = np.cos(pi * (np.arange(size) + 0.5) / size)
        # columns of chebvander(nodes) are orthogonal: its inverse is its transpose, scaled
        inverse = chebvander(nodes, size - 1).T * (np.minimum(np.arange(size), 1)[:, None] + 1) / size
        return _Polynomial(_Stack(mu(nodes), rate(nodes), self.exchanged), chebvander(at, size - 1) @ inverse)

    @cached_property
    def _every(self) -> list[tuple[_Stack, Floats]]:
        """All steps, some hundred at a time."""
        order = np.argsort(self.mus)
        blocks = np.array_split(order, 1 + order.size // 128)
        return [(_Stack(self.mus[b], self.rates[b], self.exchanged), self.counts[b]) for b in blocks]


@dataclass(frozen=True)
class _Polynomial:
    """Node steps, and what share each of them has in every step (steps, nodes)."""

    stack: _Stack
    shares: Floats

    def weights(self, counts: Floats) -> Floats:
        return np.asarray(counts @ self.shares)

    def apart(self, chosen: list[int], found: Numbers, exact: Numbers) -> Floats:
        """The largest difference at any of the chosen steps from their own values."""
        return np.asarray(np.abs(np.tensordot(self.shares[chosen], found, 1) - exact).max(axis=0))


@dataclass(frozen=True)
class _Stack:
    """Some sampled Gaussian steps side by side, all integrated over the same noise."""

    mus: Floats
    rates: Floats
    exchanged: bool

    @cached_property
    def _reach(self) -> tuple[float, float]:
        low, high = _REACH_DEVIATIONS
        return (-high - self._most if self.exchanged else low), high + self._most

    @cached_property
    def _most(self) -> float:
        return float(self.mus.max())

    @cached_property
    def _lift(self) -> float:
        """How far to leave the real axis: well short of the first zero of any of the mixtures."""
        return min(1.0, pi / (2 * self._most))

    def _at(self, x: Any) -> tuple[Any, Any]:
        """Losses at the noise x, and the logarithms of Q's density there; one row a step."""
        mu, rate = self.mus[:, None], self.rates[:, None]
        normal = -x * x / 2 - 0.5 * log(2 * pi)
        if not self.exchanged:
            return log_mixture(rate, mu * x - mu * mu / 2), np.broadcast_to(normal, (mu.size, x.size))
        up, down = (log_mixture(rate, sign * mu * x / 2 - mu * mu / 8) for sign in (1.0, -1.0))
        return up - down, normal + down

    @cached_property
    def _axis(self) -> tuple[Floats, Floats, Floats]:
        """Real noise, losses, and logarithms of the masses."""
        low, high = self._reach
        x = np.linspace(low, high, 1 + 2 * int(np.ceil((high - low) / (_WIDEST_SPACING * self._lift))))
        losses, log_density = self._at(x)
        return x, losses, log_density + log(x[1] - x[0])

    def tilted(self, c: Floats) -> Floats:
        """K, K' and K'' at every real c: an array (steps, 3, c.size); inf where it cannot be had."""
        _, losses, log_masses = self._axis
        spend(losses.size * c.size // 2)  # real ones
        found = np.empty((self.mus.size, 3, c.size))
        for place, point in enumerate(c.tolist()):
            heights = log_masses + point * losses
            tops = heights.max(axis=1)
            terms = np.exp(heights - tops[:, None])
            if self._unresolved(heights, terms, tops):
                found[:, :, place] = np.inf
                continue
            totals = terms.sum(axis=1)
            means = (terms * losses).sum(axis=1) / totals
            spreads = (terms * (losses - means[:, None]) ** 2).sum(axis=1) / totals
            found[:, :, place] = np.stack([tops + np.log(totals), means, spreads], axis=1)
        return found

    @staticmethod
    def _unresolved(heights: Floats, terms: Floats, tops: Floats) -> bool:
        """Whether a moment comes from the ends of the range, or half of the nodes give another one."""
        ends = np.maximum(heights[:, 0], heights[:, -1])
        coarse = np.abs(2 * terms[:, ::2].sum(axis=1) / terms.sum(axis=1) - 1) > 1e-9
        return bool((~np.isfinite(tops) | (ends > tops - _NEGLIGIBLE_NATS + 2) | coarse).any())

    def cumulants(self, s: Complexes) -> Complexes:
        """K at every s of one vertical line: an array (steps, s.size)."""
        c = float(s[0].real)
        low, high = self._range(c)
        spacing = self._spacing(c, float(np.abs(s.imag).max()), low, high)
        x = np.arange(low, high, spacing) + 1j * self._lift
        losses, log_density = self._at(x)
        masses = np.exp(log_density) * spacing
        real = (masses * expm1(c * losses)).sum(axis=1)
        weights = masses * np.exp(c * losses)
        return np.asarray(log1p(real[:, None] + turned(losses, weights, s.imag)))

    def _range(self, c: float) -> tuple[float, float]:
        """Where some of the moments at c, or the masses themselves, come from."""
        x, losses, log_masses = self._axis
        heights = np.maximum(log_masses + c * losses, log_masses)
        tops = heights.max(axis=1, keepdims=True)
        if not (np.isfinite(tops).all() and tops.max() < 10):
            raise UnresolvedError(f"the moment at {c:g} is too large")
        kept = np.flatnonzero((heights >= tops - _NEGLIGIBLE_NATS).any(axis=0))
        if kept[-1] == x.size - 1:
            raise UnresolvedError(f"the moment at {c:g} comes from the ends of the range")
        return float(x[kept[0]]) - 0.5, float(x[kept[-1]]) + 0.5

    def _spacing(self, c: float, fastest: float, low: float, high: float) -> float:
        """Halved until the moments of the extreme steps at a few points of the line no longer move."""
        order = np.argsort(self.mus * self.rates)
        extreme = np.unique([order[0], order[-1], self.mus.argmax(), self.rates.argmax(), self.mus.argmin()])
        some = _Stack(self.mus[extreme], self.rates[extreme], self.exchanged)
        probes = c + 1j * fastest * np.array([0.0, 0.1, 0.5, 1.0])
        spacing, before = _WIDEST_SPACING, np.full((extreme.size, probes.size), np.inf)
        while spacing > _FINEST_SPACING:
            losses, log_density = some._at(np.arange(low, high, spacing) + 1j * self._lift)
            grown = expm1(probes[:, None] * losses[:, None, :])
            here = (np.exp(log_density)[:, None, :] * grown).sum(axis=2) * spacing
            if np.abs(here - before).max() <= _CLOSE * (1 + np.abs(here).max()):
                return 2 * spacing
            spacing, before = spacing / 2, here
        raise UnresolvedError(f"more nodes needed at frequency {fastest:g}")
