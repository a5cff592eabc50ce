"""Compositions by inverting the moment function M(s) = E_Q[e^{sL}] on a vertical line through a saddle point.

For any real k, with K = log M of the whole composition (a plain sum over its steps),

    E_Q[(e^L - e^k)^+] = 1/(2 pi i) * integral of e^{K(s) - k (s-1)} / (s (s-1)) ds     on Re s = c > 1,

and moving c past a pole only adds its residue, so three families of lines give the divergence, its complement
1 - H, or the reversed divergence, each with full *relative* accuracy where it is small. Tails of L under P and Q
have the same form with one pole. Cost does not depend on the number of steps.

Error, known and added on the safe side:
- aliasing of the trapezoidal rule: exactly the functional at k + m * period; bounded by Chernoff's inequality
  (where panels are used instead, what their highest Legendre coefficients still contribute);
- truncation: the modulus of e^K at the last frequency and at wider probes, times the weight's tail;
- round-off: of the sum, and of K times the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, expm1, inf, pi, sqrt

import numpy as np
from scipy.special import ndtr

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.bands import bands, jumpy
from deniable.loss.composed import ComposedPair
from deniable.loss.panels import graded, unresolved
from deniable.loss.quadrature import DIRECT, UnresolvedError
from deniable.loss.roots import falls_to
from deniable.loss.saddle import EPS, TINY, Composition, Region, Saddle, Weight
from deniable.loss.sampled import FARTHEST
from deniable.loss.values import Upper, upper

__all__ = ["Contour"]

_NEGLIGIBLE = 1e-60  # below it Chernoff's bound is answer enough
_GOOD = 1e-7  # relative error with which nobody looks for a better answer
_SMALL = 1e-8  # share of a value below which a band's part is bounded, not computed
_FAINT = 28.0  # e^-28 = 7e-13, for a band's own share of a value
_MOST_POINTS = 2**12  # of the trapezoidal rule
_FARTHEST = 1e5  # frequencies, in units of the saddle's own

STICK = Weight((0.0, 1.0), 1.0)
TAIL = Weight((1.0,), 1.0)
NULL_TAIL = Weight((0.0,), 0.0)


@dataclass(frozen=True)
class _Line:
    """K on points c + i omega with quadrature weights, and what is needed to bound the error of sums over them."""

    saddle: Saddle
    frequencies: Floats
    weights: Floats
    cumulants: Complexes
    rivals: tuple[Floats, Floats]  # real points c' of the same region and K(c'), for Chernoff bounds
    period: float  # 2 pi / spacing, or inf where panels took the place of the trapezoidal rule
    drawn_for: tuple[float, Weight]  # the question whose integrand the points were chosen for
    beyond: float  # largest |e^{K(c + i omega) - K(c)}| seen from the last frequency on
    noise: float  # relative round-off of e^K
    panels: float = 0.0  # error of the panels for that question

    def integral(self, k: float, weight: Weight) -> tuple[float, float]:
        """The line integral and its error."""
        top = self.saddle.value - k * (self.saddle.c - weight.shift)
        if top > 700:
            return 0.0, inf
        phases = np.exp(self.cumulants - self.saddle.value - 1j * k * self.frequencies)
        terms = phases * weight(self.saddle.c + 1j * self.frequencies) * self.weights
        roundoff = float(np.abs(terms).sum()) * (self.noise + EPS * abs(top))
        height = exp(top) / pi
        asked_anew = self.period == inf and self.drawn_for != (k, weight)
        panels = unresolved(terms, self.weights) if asked_anew else self.panels
        error = height * (roundoff + panels + self._truncation(weight)) + self._aliases(k, weight)
        return height * float(terms.real.sum()), error

    def _aliases(self, k: float, weight: Weight) -> float:
        """The rule adds e^{(c - shift) m period} f(k + m period), and f(k) <= e^{K(c') - (c' - shift) k} (Chernoff)."""
        if self.period == inf:
            return 0.0
        others, cumulants = self.rivals
        logs = cumulants - (others - weight.shift) * k - np.abs(others - self.saddle.c) * self.period
        sides = logs[others > self.saddle.c], logs[others < self.saddle.c]
        return 2 * sum(exp(min(float(side.min()), 700.0)) if side.size else inf for side in sides)

    def _truncation(self, weight: Weight) -> float:
        return self.beyond * (1 / float(self.frequencies.max()) if len(weight.poles) == 2 else 1.0)


@dataclass
class _Law:
    """A positive measure of losses, known by its cumulants, and the lines drawn through them so far."""

    composition: Composition
    tiny: float
    """Lines end, and repeat, where less than e^-tiny of their height is left."""
    patient: bool
    """Whether a line may be costly, because there is no other way."""
    lines: dict[float, _Line] = field(default_factory=dict)

    def known(self, k: float, weight: Weight) -> tuple[float, float]:
        """The functional and its error as far as Chernoff's bounds tell: nearly nothing, or nearly all there is."""
        above = exp(min(self.composition.chernoff(k, weight.shift, right=True), 0.0))
        below = exp(min(self.composition.chernoff(k, weight.shift, right=False), 0.0))
        if above <= below:
            return above / 2, above / 2
        return self._residue(k, weight, -inf) - below / 2, below / 2

    def value(self, k: float, weight: Weight, close: float = _GOOD) -> tuple[float, float]:
        """The functional of this measure, and its error, which need not be below the share `close`."""
        value, error, c = self._integral(k, weight, self._region(k, weight), close)
        return value + self._residue(k, weight, c), error

    def _residue(self, k: float, weight: Weight, c: float) -> float:
        """The masses of P and Q, where the line at c has passed their poles."""
        passed = sum(self.composition.mass(1.0) for pole in weight.poles if c < pole == 1)
        sign = 1.0 if weight is NULL_TAIL else -exp(min(k, 700.0))
        return passed + sum(sign * self.composition.mass(0.0) for pole in weight.poles if c < pole == 0)

    def _region(self, k: float, weight: Weight) -> Region:
        """Between the poles where a divergence is neither near 0 nor 1; else the side that keeps its digits."""
        law = self.composition
        if weight is TAIL:
            return (1.0, inf) if k > law.mean else (-inf, 1.0)
        if weight is NULL_TAIL:
            return (0.0, inf) if k > law.null_mean else (-inf, 0.0)
        if law.null_mean < k < law.mean:
            right = k > 0
            return (0.0, 1.0) if law.scale > 3 else (1.0, inf) if right else (-inf, 0.0)
        return (1.0, inf) if k >= law.mean else (-inf, 0.0)

    def _integral(self, k: float, weight: Weight, region: Region, close: float) -> tuple[float, float, float]:
        """By a line that is there already if it serves, else by a new one through the saddle for k."""
        saddle = self.composition.search(k, weight, region)
        line = self.lines.get(saddle.c)
        if line is not None:
            value, error = line.integral(k, weight)
            if error <= close * abs(value) or line.drawn_for == (k, weight):
                return value, error, saddle.c
        line = self.lines[saddle.c] = self._draw(k, weight, saddle, region)
        return *line.integral(k, weight), saddle.c

    def _draw(self, k: float, weight: Weight, saddle: Saddle, region: Region) -> _Line:
        """A new line: by the trapezoidal rule, or by panels where that would need too many points."""
        rivals = self.composition.rivals(saddle, region)
        period = self.composition.period(k, saddle, rivals, self.tiny)
        last, beyond = self._last_frequency(saddle)
        count = last * period / (2 * pi) + 8
        if count > _MOST_POINTS:
            if not self.patient:
                raise UnresolvedError(f"{count:.0f} points needed")
            return self._panelled(k, weight, saddle, (2 * pi / period, last, beyond))
        frequencies = 2 * pi / period * np.arange(int(count))
        weights = np.full(frequencies.size, 2 * pi / period)
        weights[0] /= 2
        cumulants = self.composition.cumulant(saddle.c + 1j * frequencies)
        noise = self._noise(saddle, frequencies.size)
        return _Line(saddle, frequencies, weights, cumulants, rivals, period, (k, weight), beyond, noise)

    def _panelled(self, k: float, weight: Weight, saddle: Saddle, extent: tuple[float, float, float]) -> _Line:
        """A rare large loss beside many tiny ones: narrow structure near the axis, slow decay far from it."""
        first, last, beyond = extent
        panels = graded(
            lambda omega: self.composition.cumulant(saddle.c + 1j * omega),
            lambda omega, found: np.exp(found - saddle.value - 1j * k * omega) * weight(saddle.c + 1j * omega),
            first,
            last,
        )
        noise, none = self._noise(saddle, panels.points.size), (np.zeros(0), np.zeros(0))
        asked, found = (k, weight), (panels.points, panels.weights, panels.values)
        return _Line(saddle, *found, none, inf, asked, beyond, noise, panels.error)

    def _noise(self, saddle: Saddle, count: int) -> float:
        """Round-off of e^K: of K itself, and of every step's moment, which enters K `steps` times."""
        steps = self.composition.steps
        per_step = 4.0 if count > DIRECT else min(1.0, (abs(saddle.c) + 1) * sqrt(saddle.bend / steps))
        return EPS * (16 + 4 * abs(saddle.value) + steps * (per_step + 0.1))

    def _last_frequency(self, saddle: Saddle) -> tuple[float, float]:
        """Where |e^K| / |s| has fallen to e^-tiny of its height, or very far; and |e^K|'s largest value beyond."""
        first = sqrt(2 * self.tiny / saddle.bend)
        farthest = _FARTHEST * max(first, abs(saddle.c))
        pole = max(abs(saddle.c), abs(saddle.c - 1))
        while True:
            lasts = first * 1.5 ** np.arange(4)
            line = saddle.c + 1j * np.outer(lasts, [1.0, 1.4, 2.5])
            falls = self.composition.cumulant(line.ravel()).real.reshape(line.shape) - saddle.value
            enough = (falls[:, 0] <= np.maximum(0.0, np.log(lasts / pole)) - self.tiny) | (lasts >= farthest)
            if enough.any():
                found = int(enough.argmax())
                return float(lasts[found]), exp(float(falls[found].max()))
            first = 1.5 * float(lasts[-1])


def _better(known: tuple[float, float], law: _Law, k: float, weight: Weight, close: float) -> tuple[float, float]:
    """What is known of the functional, or its value where that says more and can be had."""
    try:
        found = law.value(k, weight, close)
    except UnresolvedError:
        return known
    return found if found[1] < known[1] else known


@dataclass
class Contour(ComposedPair):
    """A composition of steps, at least one of them smooth, by contour inversion."""

    composition: Composition
    method = "contour inversion"

    def hockey_stick(self, k: float) -> Upper:
        if not self.least < k < self.largest_finite:
            return self._outside(k, -expm1(min(k, 0.0)))
        if k < 0:  # the same divergence seen from the other side, where it is the smaller part of 1 - e^k
            other = self.mirror.hockey_stick(-k)
            return upper(-expm1(k) + exp(k) * (other - other.error / 2), exp(k) * other.error / 2 + 2 * EPS, high=1.0)
        return self._value(k, STICK)

    def tail(self, t: float) -> Upper:
        if not self.least < t < self.largest_finite:
            return self._outside(t, 1.0)
        return self._value(t, TAIL)

    def null_tail(self, t: float) -> Upper:
        if not self.least < t < self.largest_finite:
            return Upper(0.0 if t >= self.largest_finite else 1 - self.mirror.escape)
        return self._value(t, NULL_TAIL)

    def _value(self, k: float, weight: Weight) -> Upper:
        """The functional by one line through the whole composition where that serves, else band by band."""
        ceiling = 1.0 if weight is NULL_TAIL else self.ceiling(k)
        if ceiling < _NEGLIGIBLE:
            return Upper(ceiling, ceiling)
        best = 0.0, ceiling
        for way in tuple(self._ways):
            try:
                value, error = way(k, weight)
            except UnresolvedError:
                continue
            if error < best[1]:
                best = value, error
            if error <= _GOOD * abs(value):
                self._ways.remove(way)  # the next question will be much like this one
                self._ways.insert(0, way)
                break
        value, error = best
        escape = self.escape if weight.shift else 0.0
        return upper(value + escape, error + 2 * EPS * (abs(value) + escape), high=1.0)

    @cached_property
    def _ways(self) -> list[Callable[[float, Weight], tuple[float, float]]]:
        return [self._at_once, self._by_bands, self._patiently]

    @cached_property
    def _whole(self) -> _Law:
        return _Law(self.composition, TINY, patient=False)

    @cached_property
    def _patient(self) -> _Law:
        return _Law(self.composition, TINY, patient=True)

    @cached_property
    def _bands(self) -> list[_Law]:
        return [_Law(band, _FAINT, patient=number > 0) for number, band in enumerate(bands(self.composition))]

    def _at_once(self, k: float, weight: Weight) -> tuple[float, float]:
        value, error = self._whole.value(k, weight)
        return value, error + self._left_out

    def _patiently(self, k: float, weight: Weight) -> tuple[float, float]:
        """At once, at any cost, where there are no bands."""
        if self._bands:
            raise UnresolvedError("the bands have said all there is to say")
        value, error = self._patient.value(k, weight)
        return value, error + self._left_out

    def _by_bands(self, k: float, weight: Weight) -> tuple[float, float]:
        """Sum over the bands: those that cannot matter are bounded, those that hardly do need no line of their own."""
        if not self._bands:
            raise UnresolvedError("no jumps stand apart")
        negligible = _SMALL * self._single(k, weight)
        found = [band.known(k, weight) for band in self._bands]
        for close in (inf, _GOOD):
            enough = max(negligible, 0.1 * _GOOD * abs(sum(value for value, _ in found))) if close < inf else negligible
            found = [
                known if known[1] <= enough else _better(known, band, k, weight, close)
                for known, band in zip(found, self._bands, strict=True)
            ]
        return sum(value for value, _ in found), self._left_out + sum(error for _, error in found)

    def _jump_point(self, level: float, weight: Weight) -> float:
        """Where the functional would fall to `level` if one single jump were to blame."""
        return falls_to(lambda k: self._single(k, weight), level / self.composition.steps, (0.0, self.scale), close=0.1)

    def _single(self, k: float, weight: Weight) -> float:
        """The functional of one single step: a composition's is rarely smaller."""
        at = np.array([k])
        functional = {STICK: "sticks", TAIL: "tails", NULL_TAIL: "null_tails"}[weight]
        return max(float(getattr(step, functional)(at)[0]) for step, _ in self.composition.parts)

    @cached_property
    def _left_out(self) -> float:
        """Bound on the mass of noise that is left out of all moments."""
        return 2 * self.composition.steps * float(ndtr(-FARTHEST))

    def _outside(self, k: float, below: float) -> Upper:
        """Where k is not between the least and the largest loss, there is nothing to integrate."""
        value = self.escape if k >= self.largest_finite else below
        return upper(value, 2 * EPS * value, high=1.0)

    def reversed(self) -> Contour:
        return self.mirror

    @cached_property
    def mirror(self) -> Contour:
        mirrored = Contour(self.composition.reversed())
        mirrored.__dict__["mirror"] = self
        return mirrored

    def ceiling(self, k: float) -> float:
        return self.composition.ceiling(k)

    def near(self, functional: Callable[[float], Upper], level: float) -> tuple[float, float]:
        weight = {"hockey_stick": STICK, "tail": TAIL, "null_tail": NULL_TAIL}[functional.__name__]
        rare = jumpy(self.composition) and bool(self._bands)
        bulk = self._bands[0].composition if rare else self.composition
        if level < 0.2:
            try:
                found, step = bulk.level_point(level, weight, max(weight.poles))
            except UnresolvedError:
                found, step = 0.0, 0.0
            jump = self._jump_point(level, weight) if rare else 0.0
            if max(found, jump) > 0.0:
                return (found, step) if found >= jump else (jump, 0.05 * jump)
        return (self.composition.null_mean if weight is NULL_TAIL else self.composition.mean), self.scale / 4
