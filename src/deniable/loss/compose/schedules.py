"""Many unlike sampled Gaussian steps at once: schedules of the noise or of the rate.

K of a composition is the sum of its steps' K(s; mu, rate), an analytic function of both. Steps of a schedule lie on a
curve: mu = 1 / noise and the rate are smooth functions of one parameter t. With Lagrange's polynomials l of Chebyshev
nodes on that curve,

    sum over steps of K(s; step) = sum over nodes of weight * K(s; node),   weight = sum over steps of l(t of the step),

so that a few dozen nodes stand for any number of steps. Where many steps lie on no such curve, some of the steps
themselves stand for all: on one line the K of all steps span few dimensions, to the accuracy asked for 10 to 30. They
are picked for every line, by a pivoted factorization of K at a few frequencies, with weights that reproduce every step.
Where they fail beyond these, others are picked by higher frequencies, too.
Few steps, or moments too large for either, are computed one by one, in arrays.

Error. Validated, not proved: for every line (and, on a curve, every real point) the weighted nodes are compared with
some of the steps, the most extreme ones among them, those picked for a line also with every step at frequencies by
which they were not picked, and must agree so well that K is wrong by at most `Schedule.error`, which lines grant as
round-off. The steps' integrals are those of `StepStack`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan, pi, sqrt

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from deniable.effort import UnresolvedError
from deniable.loss.arrays import Complexes, Floats, Numbers, multiply
from deniable.loss.moments.nodes import seen_from
from deniable.loss.moments.step_stack import NEGLIGIBLE_NATS, StepStack
from deniable.loss.pairs.gaussian import MOST_BLURRED_MU, GaussianStep
from deniable.loss.pairs.step import Step
from deniable.loss.pairs.subsampled import SubsampledAdd, SubsampledRemove
from deniable.loss.pairs.subsampled_replace import SubsampledReplaceSum

_TOLERANCE = 3e-11  # error of K that polynomials may cause, ...
_LEAST_TOLERANCE, _MOST_TOLERANCE = 1e-15, 3e-14  # ... though a single step's be neither below nor above this
_LARGE_NATS = 100.0
_MOST_SINGLY = 64  # steps that may each be asked
_MANY = 24  # unlike steps of one kind from which on they are taken together
_SIZES = (16, 48)  # nodes on a curve, tried in turn
_FREQUENCIES = 48, 32  # of a line, by which steps are picked that stand for a cloud of them, ...
_HIGHER_FREQUENCIES = 24  # ... and on each of two parts beyond, where e^K falls more slowly than that of a Gaussian
_SLOWLY = 3.0  # times the width: where the first of them ends
_BEYOND = np.array([1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])  # times the width: where the second may end
_MUCH_MORE_SLOWLY = 5.0  # times the width: from here on the Gaussian's part alone is not tried
_THINNED = 16  # one step in so many tells where
_NO_NEWS = 1e-14  # relative distance of a step from those that are picked
_CURVE_DEGREE = 24
_FITTED_POINTS = 96  # to which a curve is fitted, and looked at by all steps
_ON_CURVE = 1e-12  # relative distance of a step from the curve, which moves its K by about as much
_WITNESSES = 6  # steps by which a polynomial is checked, beside the extreme ones
_LINE_BLOCK, _AXIS_BLOCK = 128, 1024  # steps at a time
_CLOSE_ENOUGH = 1e-7  # relative error of K on the real axis, where it says where to stand and bounds what is left out
_TURNED = np.array([1.0, -1.0, 1.0])[:, None]


def together(parts: Sequence[tuple[Step, int]]) -> list[tuple[Step | Schedule, int]]:
    """The steps of a composition, with many unlike sampled Gaussians of one kind as a `Schedule` that runs once."""
    described = [_describe_step(step) for step, _ in parts]
    many = [kind for kind, times in Counter(kind for kind, *_ in described).items() if kind and times >= _MANY]
    found: list[tuple[Step | Schedule, int]] = []
    for kind in many:
        alike = [(part, values) for part, (other, *values) in zip(parts, described, strict=True) if other == kind]
        found.append((Schedule.of(kind, *zip(*alike, strict=True)), 1))
    return [part for part, (kind, *_) in zip(parts, described, strict=True) if kind not in many] + found


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

    A mirrored one stands for its parts with P and Q exchanged: E_P[e^{-sL}] = E_Q[e^{(1 - s) L}].
    """

    parts: Sequence[tuple[Step, int]]
    mus: Floats
    rates: Floats
    counts: Floats
    exchanged: bool
    mirrored: bool

    @classmethod
    def of(cls, kind: str, parts: Sequence[tuple[Step, int]], values: Sequence[tuple[float, float]]) -> Schedule:
        """Of steps with these values of mu and of the rate."""
        mus, rates = np.array(values).T
        counts = np.array([count for _, count in parts], dtype=np.float64)
        parts = [(step.reverse(), count) for step, count in parts] if kind == "added" else parts
        return cls(parts, mus, rates, counts, kind == "exchanged", kind == "added")

    def reverse(self) -> Schedule:
        """P and Q exchanged; what is known of the moments stays known."""
        if self.exchanged:
            return self
        other = replace(self, mirrored=not self.mirrored)
        shared = "_polynomials", "_known_moments", "_known_fits", "_every", "_every_on_axis", "_witnesses"
        other.__dict__.update({name: getattr(self, name) for name in shared})
        return other

    def cumulant(self, s: Complexes) -> Complexes:
        """Sum of the steps' log E_Q[e^{sL}] on one vertical line."""
        return self._cumulant(1 - s.conj()).conj() if self.mirrored else self._cumulant(s)

    def _cumulant(self, s: Complexes) -> Complexes:
        """Where it is large, of a few each by its own rule."""
        try:
            return self._sum_cumulants(s)
        except UnresolvedError:
            if self._is_many:
                raise
            return np.asarray(sum(count * step.cumulant(s) for step, count in self.parts))

    def _sum_cumulants(self, s: Complexes) -> Complexes:
        c = float(s[0].real)
        for nodes in self._stand_ins(c):
            found, exact = nodes.stack.cumulants(s), self._witnesses.cumulants(s)
            total = multiply(nodes.weights, found)
            # an error matters as much as e^K does, beside its value on the real axis
            matters = np.exp(np.minimum(total.real - self._moments_at(c)[0], 0.0))
            if (nodes.apart(found, exact) * matters <= self._tolerance).all():
                return np.asarray(total)
        return np.asarray(sum(multiply(counts, stack.cumulants(s)) for stack, counts in self._every))

    def _stand_ins(self, c: float) -> Iterator[_Polynomial]:
        """What may stand for all steps on a line: a curve's nodes, or steps picked by a part of it, then by more."""
        for further, find in enumerate((self._close_polynomials, self._few_steps, self._few_steps_by_more)):
            if (c, further) not in self._known_fits:
                self._known_fits[c, further] = find(c)
            yield from self._known_fits[c, further]
            if not self._is_many or (not further and self._known_fits[c, further]):
                return

    @cached_property
    def _known_fits(self) -> dict[tuple[float, int], list[_Polynomial]]:
        return {}

    def _close_polynomials(self, c: float) -> list[_Polynomial]:
        """Those of a curve that are close enough at the real point of a line."""
        exact = self._witnesses.tilted_moments(np.array([c]))[:, 0]
        found = [(p, p.stack.tilted_moments(np.array([c]))[:, 0]) for p in self._polynomials]
        return [p for p, moments in found if p.apart(moments, exact)[0] <= self._tolerance]

    def _moments_at(self, c: float) -> list[float]:
        """K and its first two derivatives."""
        moments: list[float] = self._tilted_moments(np.array([c]))[:, 0].tolist()
        return moments

    @cached_property
    def _tolerance(self) -> float:
        """Absolute error that a polynomial may have for one step."""
        return max(_LEAST_TOLERANCE, min(_MOST_TOLERANCE, _TOLERANCE / float(self.counts.sum())))

    @cached_property
    def centres(self) -> tuple[float, float]:
        """The sums of the steps' own."""
        if self.mus.max() > MOST_BLURRED_MU * (2 if self.exchanged else 1):
            return nan, nan
        if self.exchanged:
            return 0.0, 0.0
        sign = -1.0 if self.mirrored else 1.0
        return sign * float(self.counts @ np.log1p(-self.rates)), sign * float(self._tilted_moments(np.zeros(1))[1, 0])

    @property
    def error(self) -> float:
        """Of K on a line, wherever e^K matters, beside round-off."""
        return self._tolerance * float(self.counts.sum()) if self._polynomials or self._is_many else 0.0

    @property
    def _is_many(self) -> bool:
        return self.mus.size > _MOST_SINGLY

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """Validated, not proved, as K itself is here."""
        return seen_from(self.cumulant, c, omega)

    def tilted_moments(self, c: Floats) -> Floats:
        """The same and its first two derivatives (rows) at every real c; inf where K is large and not well known."""
        return self._tilted_moments(1 - c) * _TURNED if self.mirrored else self._tilted_moments(c)

    def _tilted_moments(self, c: Floats) -> Floats:
        new = [point for point in c.tolist() if point not in self._known_moments]
        if new:
            self._known_moments.update(zip(new, self._compute_moments(np.array(new)).T, strict=True))
        return np.array([self._known_moments[point] for point in c.tolist()]).T

    @cached_property
    def _known_moments(self) -> dict[float, Floats]:
        return {}

    def _compute_moments(self, c: Floats) -> Floats:
        if not self._polynomials:
            return self._exact(c)
        total = np.full((3, c.size), np.inf)
        exact = self._witnesses.tilted_moments(c)
        left = np.flatnonzero(np.isfinite(exact).all(axis=(0, 1)))
        for nodes in self._polynomials:
            if not left.size:
                break
            found = nodes.stack.tilted_moments(c[left])
            total[:, left] = multiply(nodes.weights, found)
            apart = nodes.apart(found, exact[:, :, left]) * self.counts.sum()
            left = left[~(apart <= _CLOSE_ENOUGH * (1 + np.abs(total[:, left]))).all(axis=0)]
        if left.size:
            large = (total[0, left] > _LARGE_NATS).all()
            total[:, left] = np.inf if large else self._exact(c[left])
        return total

    def _exact(self, c: Floats) -> Floats:
        every = self._every_on_axis
        return np.asarray(sum(multiply(counts, stack.tilted_moments(c)) for stack, counts in every))

    @cached_property
    def _chosen(self) -> list[int]:
        """The extreme steps, and some between."""
        extremes = {int(f(a)) for f in (np.argmin, np.argmax) for a in (self.mus, self.rates, self.mus * self.rates)}
        between = np.linspace(0, self.mus.size - 1, _WITNESSES + 2).astype(int)[1:-1]
        return sorted(extremes | set(between.tolist()))

    @cached_property
    def _witnesses(self) -> StepStack:
        return StepStack(self.mus[self._chosen], self.rates[self._chosen], self.exchanged)

    @cached_property
    def _polynomials(self) -> list[_Polynomial]:
        """On one smooth curve, by few nodes and by more, as far as they are much fewer than the steps."""
        curve = self._curve()
        return [self._on_curve(*curve, size) for size in _SIZES if 2 * size < self.mus.size] if curve else []

    def _curve(self) -> tuple[Floats, Chebyshev, Chebyshev] | None:
        """A parameter of every step, from -1 to 1, of which mu and rate are polynomials; None where there is none."""
        for values in (self.mus, self.rates):
            if values.max() == values.min():
                continue
            at, _ = _scale_values(values)
            some = _spread_places(at)
            degree = min(_CURVE_DEGREE, np.unique(at[some]).size // 2)
            mu, rate = (Chebyshev.fit(at[some], of[some], degree, domain=[-1.0, 1.0]) for of in (self.mus, self.rates))
            if max(_apart(mu(at), self.mus), _apart(rate(at), self.rates)) < _ON_CURVE:
                return at, mu, rate
        return None

    def _on_curve(self, at: Floats, mu: Chebyshev, rate: Chebyshev, size: int) -> _Polynomial:
        nodes, shares = _lagrange(at, size)
        stack = StepStack(mu(nodes), rate(nodes), self.exchanged)
        return _Polynomial(stack, multiply(self.counts, shares), shares[self._chosen])

    def _few_steps(self, c: float) -> list[_Polynomial]:
        """A few steps whose K on this line, so weighted, are those of all steps; none where these are not found."""
        width = self._width(c)
        if not 0 < self._last_frequency(c) < _MUCH_MORE_SLOWLY * width:
            return []
        return self._pick_steps(c, [np.linspace(0, width, _FREQUENCIES[0])])

    def _few_steps_by_more(self, c: float) -> list[_Polynomial]:
        """The same by what K is at higher frequencies, too."""
        width, last = self._width(c), self._last_frequency(c)
        if not last:
            return []
        middle = min(_SLOWLY * width, last)
        ends = [
            (0.0, width, _FREQUENCIES[1]),
            (width, middle, _HIGHER_FREQUENCIES),
            (middle, last, _HIGHER_FREQUENCIES),
        ]
        return self._pick_steps(c, [np.linspace(*part) for part in reversed(ends) if part[0] < part[1]])

    def _last_frequency(self, c: float) -> float:
        """Where, as some of the steps say, e^K is negligible; 0 where it has no width."""
        if c not in self._last_frequencies:
            width, some = self._width(c), self._order[::_THINNED]
            thinned = StepStack(self.mus[some], self.rates[some], self.exchanged)
            counts = self.counts[some] * (self.counts.sum() / self.counts[some].sum())
            heights = multiply(counts, thinned.cumulants(c + 1j * width * np.append(0.0, _BEYOND))).real
            fallen = np.flatnonzero(heights[1:] < heights[0] - NEGLIGIBLE_NATS)
            self._last_frequencies[c] = width * float(_BEYOND[fallen[0] if fallen.size else -1])
        return self._last_frequencies[c]

    @cached_property
    def _last_frequencies(self) -> dict[float, float]:
        return {}

    def _width(self, c: float) -> float:
        """The frequency at which e^K is negligible where the losses are nearly normal; 0 where it has no bend."""
        bend = self._moments_at(c)[2]
        return sqrt(2 * NEGLIGIBLE_NATS / bend) if 0 < bend < inf else 0.0

    def _pick_steps(self, c: float, frequencies: list[Floats]) -> list[_Polynomial]:
        """Steps, the worst known one next, by K of all at some of the frequencies; all must be met at the others."""
        tables = [np.hstack([stack.cumulants(c + 1j * part) for part in frequencies]) for stack, _ in self._every]
        found = np.concatenate(tables)
        total = multiply(self.counts[self._order], found).real
        found = found * np.exp(np.minimum(total - self._moments_at(c)[0], 0.0))
        known = found[:, np.arange(found.shape[1]) % 4 != 2]
        places, shares = _pick_rows(np.concatenate([known.real, known.imag], axis=1))
        met = (np.abs(multiply(shares, found[places]) - found) <= self._tolerance).all()
        return [self._of_steps(places, shares)] if met else []

    def _of_steps(self, places: list[int], shares: Floats) -> _Polynomial:
        few, chosen = self._order[places], np.argsort(self._order)[self._chosen]
        stack = StepStack(self.mus[few], self.rates[few], self.exchanged)
        return _Polynomial(stack, multiply(self.counts[self._order], shares), shares[chosen])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return self.mus.argsort()

    @cached_property
    def _every(self) -> list[tuple[StepStack, Floats]]:
        return self._in_blocks(_LINE_BLOCK)

    @cached_property
    def _every_on_axis(self) -> list[tuple[StepStack, Floats]]:
        return self._in_blocks(_AXIS_BLOCK)

    def _in_blocks(self, size: int) -> list[tuple[StepStack, Floats]]:
        """All steps, so many at a time."""
        blocks = np.array_split(self._order, 1 + self.mus.size // size)
        return [(StepStack(self.mus[b], self.rates[b], self.exchanged), self.counts[b]) for b in blocks]


@dataclass(frozen=True)
class _Polynomial:
    """Node steps, their weights in the whole schedule, and their shares in every chosen step (chosen, nodes)."""

    stack: StepStack
    weights: Floats
    shares: Floats

    def apart(self, found: Numbers, exact: Numbers) -> Floats:
        """The largest difference at any of the chosen steps from their own values."""
        met = multiply(self.shares, found.reshape(len(found), -1)).reshape(exact.shape)
        return np.asarray(np.abs(met - exact).max(axis=0))


def _apart(found: Floats, values: Floats) -> float:
    """The largest relative difference."""
    return float(np.abs(found / values - 1).max())


def _pick_rows(table: Floats) -> tuple[list[int], Floats]:
    """Rows of which all others are sums, and how much of each is in every row: the farthest one from them is next."""
    left, largest = table.copy(), float(np.sqrt((table * table).sum(axis=1)).max())
    places: list[int] = []
    units: list[Floats] = []
    while len(places) < min(table.shape):
        sizes = np.sqrt((left * left).sum(axis=1))
        place = int(sizes.argmax())
        if sizes[place] <= _NO_NEWS * largest:
            break
        places, units = [*places, place], [*units, left[place] / sizes[place]]
        left -= np.multiply.outer(multiply(left, units[-1]), units[-1])
    along = multiply(np.array(units), table.T)
    return places, np.linalg.solve(along[:, places], along).T


def _scale_values(values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """The values moved to -1 ... 1, and the way back."""
    middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
    return np.clip((values - middle) / half, -1.0, 1.0), lambda at: np.asarray(middle + half * at)


def _spread_places(at: Floats) -> NDArray[np.int64]:
    """Places of a few of the values from -1 to 1, nearest to points that are denser towards both ends.

    A polynomial that is fitted to these is as good as one that is fitted to all.
    """
    order = at.argsort()
    ranks = np.searchsorted(at[order], -np.cos(np.linspace(0, pi, _FITTED_POINTS)))
    return np.asarray(order[np.unique(np.minimum(ranks, at.size - 1))])


def _lagrange(at: Floats, size: int) -> tuple[Floats, Floats]:
    """Chebyshev nodes, and Lagrange's polynomials of them at every place: an array (places, nodes)."""
    nodes = np.cos(pi * (np.arange(size) + 0.5) / size)
    # columns of chebvander(nodes) are orthogonal: its inverse is its transpose, scaled
    inverse = chebvander(nodes, size - 1).T * (np.minimum(np.arange(size), 1)[:, None] + 1) / size
    return nodes, multiply(chebvander(at, size - 1), inverse)
