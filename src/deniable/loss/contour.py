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
from math import exp, expm1, inf, log, pi, sqrt

import numpy as np
from scipy.special import ndtr

from deniable.loss.arrays import Complexes, Floats
from deniable.loss.composed import ComposedPair
from deniable.loss.panels import graded, unresolved
from deniable.loss.quadrature import DIRECT, UnresolvedError
from deniable.loss.saddle import EPS, TINY, Composition, Region, Saddle, Weight
from deniable.loss.values import Upper, upper

__all__ = ["Contour"]

REACHES = (26.0, 15.0, 10.0)
_NEGLIGIBLE = 1e-60  # below it Chernoff's bound is answer enough
_GOOD = 1e-5  # relative error of an integral with which nobody looks for a better one
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
class _Reach:
    """A composition whose sampled Gaussian steps leave out noise beyond some standard deviations, and its lines."""

    composition: Composition
    deviations: float
    lines: dict[float, _Line] = field(default_factory=dict)

    @property
    def left_out(self) -> float:
        """Bound on the mass left out."""
        return 2 * self.composition.steps * float(ndtr(-self.deviations))

    def integral(self, k: float, weight: Weight, region: Region) -> tuple[float, float, float]:
        """By a line that is there already if it serves, else by a new one through the saddle for k."""
        saddle = self.composition.search(k, weight, region)
        line = self.lines.get(saddle.c)
        if line is not None:
            value, error = line.integral(k, weight)
            if error <= _GOOD * abs(value) or line.drawn_for == (k, weight):
                return value, error, saddle.c
        line = self.lines[saddle.c] = self._draw(k, weight, saddle, region)
        return *line.integral(k, weight), saddle.c

    def _draw(self, k: float, weight: Weight, saddle: Saddle, region: Region) -> _Line:
        """A new line: by the trapezoidal rule, or by panels where that would need too many points."""
        rivals = self.composition.rivals(saddle, region)
        period = self.composition.period(k, saddle, rivals)
        last, beyond = self._last_frequency(saddle)
        count = last * period / (2 * pi) + 8
        if count > _MOST_POINTS:
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
        """Where |e^K| / |s| has fallen to e^-41 of its height, or very far; and |e^K|'s largest value from there on."""
        last = sqrt(2 * TINY / saddle.bend)
        farthest = _FARTHEST * max(last, abs(saddle.c))
        pole = max(abs(saddle.c), abs(saddle.c - 1))
        while self._falls(saddle, last, [1.0]) > max(0.0, log(last / pole)) - TINY and last < farthest:
            last *= 1.5
        return last, exp(self._falls(saddle, last, [1.0, 1.4, 2.5]))

    def _falls(self, saddle: Saddle, frequency: float, multiples: list[float]) -> float:
        """Largest log |e^{K - K(c)}| at some multiples of a frequency."""
        line = saddle.c + 1j * frequency * np.array(multiples)
        return float((self.composition.cumulant(line).real - saddle.value).max())


@dataclass
class Contour(ComposedPair):
    """A composition of steps, at least one of them smooth, by contour inversion."""

    composition: Composition
    method = "contour inversion"

    def hockey_stick(self, k: float) -> Upper:
        if not self.least < k < self.largest_finite:
            return self._outside(k, -expm1(min(k, 0.0)))
        if (ceiling := self.ceiling(k)) < _NEGLIGIBLE:
            return Upper(ceiling, ceiling)
        value, error, c = self._integral(k, STICK, self._stick_region(k))
        if c < 0:
            value -= exp(k) * (1 - self.mirror.escape)
        return self._with_residue(value, error, c < 1)

    def _stick_region(self, k: float) -> Region:
        """Between the poles where H is neither near 0 nor 1 and the loss is wide; else the side that keeps digits."""
        if self.scale > 3 and self.composition.null_mean < k < self.composition.mean:
            return (0.0, 1.0)
        return (1.0, inf) if k > 0 else (-inf, 0.0)

    def tail(self, t: float) -> Upper:
        if not self.least < t < self.largest_finite:
            return self._outside(t, 1.0)
        if (ceiling := self.ceiling(t)) < _NEGLIGIBLE:
            return Upper(ceiling, ceiling)
        value, error, c = self._integral(t, TAIL, (1.0, inf) if t > self.composition.mean else (-inf, 1.0))
        return self._with_residue(value, error, c < 1)

    def null_tail(self, t: float) -> Upper:
        if not self.least < t < self.largest_finite:
            return Upper(0.0 if t >= self.largest_finite else 1 - self.mirror.escape)
        region = (0.0, inf) if t > self.composition.null_mean else (-inf, 0.0)
        value, error, c = self._integral(t, NULL_TAIL, region)
        return self._rounded(value, error, 0.0 if c > 0 else 1 - self.mirror.escape)

    def _integral(self, k: float, weight: Weight, region: Region) -> tuple[float, float, float]:
        """The line integral, its error, and where the line stands, by the first reach that is good enough.

        Losses that are rarer than what is asked for hide the saddle, because e^{cL} magnifies them; they are left
        out, from the rarest on, and their mass is added to the error.
        """
        best = 0.0, inf, 0.5 * (max(region[0], -1.0) + min(region[1], 2.0))
        for reach in tuple(self._reaches):
            try:
                value, error, c = reach.integral(k, weight, region)
            except UnresolvedError:
                continue
            error += reach.left_out
            if error < best[1]:
                best = value, error, c
            if error <= _GOOD * abs(value):
                self._reaches.remove(reach)  # the next question will be much like this one
                self._reaches.insert(0, reach)
                break
        return best

    @cached_property
    def _reaches(self) -> list[_Reach]:
        first, *others = REACHES
        return [_Reach(self.composition, first), *(_Reach(self.composition.within(reach), reach) for reach in others)]

    def _with_residue(self, value: float, error: float, passed: bool) -> Upper:
        """Adds P's whole mass where the line lies left of the pole at 1, else only what lies at infinity."""
        return self._rounded(value, error, 1.0 if passed else self.escape)

    def _rounded(self, value: float, error: float, residue: float) -> Upper:
        return upper(value + residue, error + 2 * EPS * residue, high=1.0)

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
        for reach in self._reaches if level < 0.2 else []:
            try:
                return reach.composition.level_point(level, weight, max(weight.poles))
            except UnresolvedError:
                continue
        return (self.composition.null_mean if weight is NULL_TAIL else self.composition.mean), self.scale / 4
