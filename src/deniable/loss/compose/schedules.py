"""Many unlike sampled Gaussian steps at once: schedules of the noise or of the rate.

K of a composition is the sum of its steps' K(s; mu, rate), an analytic function of both. Steps of a schedule lie on a
curve: mu = 1 / noise and the rate are smooth functions of one parameter t. With Lagrange's polynomials l of Chebyshev
nodes on that curve,

    sum over steps of K(s; step) = sum over nodes of weight * K(s; node),   weight = sum over steps of l(t of the step),

so that a few dozen nodes stand for any number of steps. Where many steps lie on no such curve, products of polynomials
in mu and in the rate take the curve's place; few steps, or moments too large for either, are computed one by one, in
arrays.

Error. Validated, not proved: for every line and every real point the polynomial is compared with some of the steps
themselves, the most extreme ones among them, and must agree so well that K is wrong by at most `Schedule.error`, which
lines grant as round-off. The integrals are trapezoidal rules like those of `loss.moments`, halved until they no longer
move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, pi, prod
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebvander

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.moments.elementary import expm1, log1p, log_mixture
from deniable.loss.moments.nodes import seen_from
from deniable.loss.moments.wave_sums import sum_waves
from deniable.loss.pairs.gaussian import GaussianStep
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledAdd, SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum

__all__ = ["Schedule", "together"]

_TOLERANCE = 3e-11  # error of K that polynomials may cause, ...
_LEAST_TOLERANCE, _MOST_TOLERANCE = 1e-15, 3e-14  # ... though a single step's be neither below nor above this
_LARGE_NATS = 100.0
_MOST_SINGLY = 64  # steps that may each be asked
_MANY = 24  # unlike steps of one kind from which on they are taken together
_SIZES = (16, 48)  # nodes on a curve, tried in turn
_BOX_SIZES = ((10, 10), (18, 20))  # nodes for mu and for the rate, tried in turn
_CURVE_DEGREE = 24
_ON_CURVE = 1e-12  # relative distance of a step from the curve, which moves its K by about as much
_WITNESSES = 6  # steps by which a polynomial is checked, beside the extreme ones
_REACH_DEVIATIONS = (-14.0, 26.0)
_NEGLIGIBLE_NATS = 44.0
_WIDEST_SPACING = 0.4  # standard deviations between the nodes of an integral
_FINEST_SPACING = 0.01
_REUSED = 4.0  # times as fast as needed may be the waves that the nodes at hand serve
_ROWS = 16  # steps whose tables of waves fit the processor's cache
_CLOSE = 1e-15  # what halving the spacing may still change in a moment near 1
_CLOSE_ENOUGH = 1e-7  # relative error of K on the real axis, where it says where to stand and bounds what is left out
_TURNED = np.array([1.0, -1.0, 1.0])[:, None]


def together(parts: Sequence[tuple[Step, int]]) -> list[tuple[Step | Schedule, int]]:
    """The steps of a composition, with many unlike sampled Gaussians of one kind as a `Schedule` that runs once."""
    kinds = [_describe_step(step)[0] for step, _ in parts]
    many = [kind for kind, times in Counter(kinds).items() if kind and times >= _MANY]
    others = [part for part, kind in zip(parts, kinds, strict=True) if kind not in many]
    alike = ([part for part, other in zip(parts, kinds, strict=True) if other == kind] for kind in many)
    return others + [(Schedule.of(kind, rows), 1) for kind, rows in zip(many, alike, strict=True)]


def _describe_step(step: Step) -> tuple[str, float, float]:
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
        rows = [(*_describe_step(step)[1:], count) for step, count in parts]
        mus, rates, counts = np.array(rows, dtype=np.float64).T
        return cls(parts, mus, rates, counts, kind == "exchanged", kind == "added")

    def cumulant(self, s: Complexes) -> Complexes:
        """Sum of the steps' log E_Q[e^{sL}] on one vertical line; where it is large, a few each by its own rule."""
        try:
            return self._cumulant(1 - s.conj()).conj() if self.mirrored else self._cumulant(s)
        except UnresolvedError:
            if len(self.parts) > _MOST_SINGLY:
                raise
            return np.asarray(sum(count * step.cumulant(s) for step, count in self.parts))

    def _cumulant(self, s: Complexes) -> Complexes:
        height, polynomials = self._fitting(float(s[0].real))
        for nodes in polynomials:
            found, exact = nodes.stack.cumulants(s), self._witnesses.cumulants(s)
            total = nodes.weights @ found
            # an error matters as much as e^K does, beside its value on the real axis
            matters = np.exp(np.minimum(total.real - height, 0.0))
            if (nodes.apart(found, exact) * matters <= self._tolerance).all():
                return np.asarray(total)
        return np.asarray(sum(counts @ stack.cumulants(s) for stack, counts in self._every))

    def _fitting(self, c: float) -> tuple[float, list[_Polynomial]]:
        """K at the real point of a line, and the polynomials that are close enough there."""
        if c not in self._known_fits:
            at = np.array([c])
            exact = self._witnesses.tilted_moments(at)[:, 0]
            close = [
                p for p in self._polynomials if p.apart(p.stack.tilted_moments(at)[:, 0], exact)[0] <= self._tolerance
            ]
            self._known_fits[c] = float(self._tilted_moments(at)[0, 0]), close
        return self._known_fits[c]

    @cached_property
    def _known_fits(self) -> dict[float, tuple[float, list[_Polynomial]]]:
        return {}

    @cached_property
    def _tolerance(self) -> float:
        """Absolute error that a polynomial may have for one step."""
        return max(_LEAST_TOLERANCE, min(_MOST_TOLERANCE, _TOLERANCE / float(self.counts.sum())))

    @cached_property
    def centres(self) -> tuple[float, float]:
        """The sums of the steps' own."""
        if self.exchanged:
            return 0.0, 0.0
        sign = -1.0 if self.mirrored else 1.0
        return sign * float(self.counts @ np.log1p(-self.rates)), sign * float(self._tilted_moments(np.zeros(1))[1, 0])

    @property
    def error(self) -> float:
        """Of K on a line, wherever e^K matters, beside round-off."""
        return self._tolerance * float(self.counts.sum()) if self._polynomials else 0.0

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Validated, not proved, as K itself is here."""
        return seen_from(self.cumulant, c, omega)

    def tilted_moments(self, c: Floats) -> Floats:
        """The same and its first two derivatives (rows) at every real c; inf where K is large and not well known."""
        return self._tilted_moments(1 - c) * _TURNED if self.mirrored else self._tilted_moments(c)

    def _tilted_moments(self, c: Floats) -> Floats:
        total = np.full((3, c.size), np.inf)
        exact = self._witnesses.tilted_moments(c)
        left = np.flatnonzero(np.isfinite(exact).all(axis=(0, 1)))
        for nodes in self._polynomials:
            if not left.size:
                break
            found = nodes.stack.tilted_moments(c[left])
            total[:, left] = np.tensordot(nodes.weights, found, 1)
            apart = nodes.apart(found, exact[:, :, left]) * self.counts.sum()
            left = left[~(apart <= _CLOSE_ENOUGH * (1 + np.abs(total[:, left]))).all(axis=0)]
        if left.size:
            large = self._polynomials and (total[0, left] > _LARGE_NATS).all()
            total[:, left] = np.inf if large else self._exact(c[left])
        return total

    def _exact(self, c: Floats) -> Floats:
        return np.asarray(sum(np.tensordot(counts, stack.tilted_moments(c), 1) for stack, counts in self._every))

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
        """By few nodes and by more, as far as they are much fewer than the steps: on one smooth curve, or in a box."""
        curve = self._curve()
        if curve is not None:
            return [self._on_curve(*curve, size) for size in _SIZES if 2 * size < self.mus.size]
        return [self._in_box(*sizes) for sizes in _BOX_SIZES if 2 * prod(sizes) < self.mus.size]

    def _curve(self) -> tuple[Floats, Chebyshev, Chebyshev] | None:
        """A parameter of every step, from -1 to 1, of which mu and rate are polynomials; None where there is none."""
        for values in (self.mus, self.rates):
            if values.max() == values.min():
                continue
            at, _ = _scale_values(values)
            degree = min(_CURVE_DEGREE, np.unique(at).size // 2)
            mu, rate = (Chebyshev.fit(at, fitted, degree, domain=[-1.0, 1.0]) for fitted in (self.mus, self.rates))
            if max(_apart(mu(at), self.mus), _apart(rate(at), self.rates)) < _ON_CURVE:
                return at, mu, rate
        return None

    def _on_curve(self, at: Floats, mu: Chebyshev, rate: Chebyshev, size: int) -> _Polynomial:
        nodes, shares = _lagrange(at, size)
        stack = _Stack(mu(nodes), rate(nodes), self.exchanged)
        return _Polynomial(stack, self.counts @ shares, shares[self._chosen])

    def _in_box(self, mu_size: int, rate_size: int) -> _Polynomial:
        """Polynomials in mu times polynomials in the rate."""
        (mu_at, mu_of), (rate_at, rate_of) = _scale_values(self.mus), _scale_values(self.rates)
        (mu_nodes, mu_shares), (rate_nodes, rate_shares) = _lagrange(mu_at, mu_size), _lagrange(rate_at, rate_size)
        mus, rates = np.meshgrid(mu_of(mu_nodes), rate_of(rate_nodes), indexing="ij")
        weights = (self.counts[:, None] * mu_shares).T @ rate_shares
        shares = mu_shares[self._chosen, :, None] * rate_shares[self._chosen, None, :]
        stack = _Stack(mus.ravel(), rates.ravel(), self.exchanged)
        return _Polynomial(stack, weights.ravel(), shares.reshape(len(self._chosen), -1))

    @cached_property
    def _every(self) -> list[tuple[_Stack, Floats]]:
        """All steps, some hundred at a time."""
        order = np.argsort(self.mus)
        blocks = np.array_split(order, 1 + order.size // 128)
        return [(_Stack(self.mus[b], self.rates[b], self.exchanged), self.counts[b]) for b in blocks]


@dataclass(frozen=True)
class _Polynomial:
    """Node steps, their weights in the whole schedule, and their shares in every chosen step (chosen, nodes)."""

    stack: _Stack
    weights: Floats
    shares: Floats

    def apart(self, found: Numbers, exact: Numbers) -> Floats:
        """The largest difference at any of the chosen steps from their own values."""
        return np.asarray(np.abs(np.tensordot(self.shares, found, 1) - exact).max(axis=0))


def _apart(found: Floats, values: Floats) -> float:
    """The largest relative difference."""
    return float(np.abs(found / values - 1).max())


def _scale_values(values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """The values moved to -1 ... 1, and the way back."""
    middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
    return np.clip((values - middle) / half, -1.0, 1.0), lambda at: np.asarray(middle + half * at)


def _lagrange(at: Floats, size: int) -> tuple[Floats, Floats]:
    """Chebyshev nodes, and Lagrange's polynomials of them at every place: an array (places, nodes)."""
    nodes = np.cos(pi * (np.arange(size) + 0.5) / size)
    # columns of chebvander(nodes) are orthogonal: its inverse is its transpose, scaled
    inverse = chebvander(nodes, size - 1).T * (np.minimum(np.arange(size), 1)[:, None] + 1) / size
    return nodes, chebvander(at, size - 1) @ inverse


@dataclass
class _Stack:
    """Some sampled Gaussian steps side by side, all integrated over the same noise."""

    mus: Floats
    rates: Floats
    exchanged: bool
    _latest: tuple[float, float, tuple[Complexes, Complexes, Complexes]] | None = None

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
        """Losses at the noise x, and the logarithms of Q's density there; one row a step, or one row for all."""
        mu, rate = self.mus[:, None], self.rates[:, None]
        normal = -x * x / 2 - 0.5 * log(2 * pi)
        if not self.exchanged:
            return log_mixture(rate, mu * x - mu * mu / 2), normal[None, :]
        up, down = (log_mixture(rate, sign * mu * x / 2 - mu * mu / 8) for sign in (1.0, -1.0))
        return up - down, normal + down

    @cached_property
    def _axis(self) -> tuple[Floats, Floats, Floats]:
        """Real noise, losses, and logarithms of the masses."""
        low, high = self._reach
        x = np.linspace(low, high, 1 + 2 * int(np.ceil((high - low) / (_WIDEST_SPACING * self._lift))))
        losses, log_density = self._at(x)
        return x, losses, log_density + log(x[1] - x[0])

    def tilted_moments(self, c: Floats) -> Floats:
        """K, K' and K'' at every real c: an array (steps, 3, c.size); inf where it cannot be had."""
        _, losses, log_masses = self._axis
        spend(losses.size * c.size // 4)  # real ones, in long rows
        found = np.empty((self.mus.size, 3, c.size))
        for place, point in enumerate(c.tolist()):
            heights = log_masses + point * losses
            tops = heights.max(axis=1)
            terms = np.exp(heights - tops[:, None])
            if self._is_unresolved(heights, terms, tops):
                found[:, :, place] = np.inf
                continue
            totals = terms.sum(axis=1)
            means = (terms * losses).sum(axis=1) / totals
            spreads = (terms * (losses - means[:, None]) ** 2).sum(axis=1) / totals
            found[:, :, place] = np.stack([tops + np.log(totals), means, spreads], axis=1)
        return found

    @staticmethod
    def _is_unresolved(heights: Floats, terms: Floats, tops: Floats) -> bool:
        """Whether a moment comes from the ends of the range, or half of the nodes give another one."""
        ends = np.maximum(heights[:, 0], heights[:, -1])
        coarse = np.abs(2 * terms[:, ::2].sum(axis=1) / terms.sum(axis=1) - 1) > 1e-9
        return bool((~np.isfinite(tops) | (ends > tops - _NEGLIGIBLE_NATS + 2) | coarse).any())

    def cumulants(self, s: Complexes) -> Complexes:
        """K at every s of one vertical line: an array (steps, s.size)."""
        gain, losses, weights = self._weigh_losses(float(s[0].real), float(np.abs(s.imag).max()))
        waves = [
            sum_waves(losses[rows], weights[rows], s.imag)
            for rows in np.array_split(np.arange(self.mus.size), 1 + self.mus.size // _ROWS)
        ]
        return np.asarray(log1p(gain[:, None] + np.concatenate(waves)))

    def _weigh_losses(self, c: float, fastest: float) -> tuple[Complexes, Complexes, Complexes]:
        """E[e^{cL}] - 1, losses, and their weights times e^{cL}; those found last serve its slower waves."""
        if self._latest is None or self._latest[0] != c or not fastest <= self._latest[1] <= _REUSED * fastest:
            low, high = self._range(c)
            spacing = self._spacing(c, fastest, low, high)
            losses, log_density = self._at(np.arange(low, high, spacing) + 1j * self._lift)
            masses, growth = np.exp(log_density) * spacing, expm1(c * losses)
            self._latest = c, fastest, ((masses * growth).sum(axis=1), losses, masses * (1 + growth))
        return self._latest[2]

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
