"""Compositions by inverting the moment function M(s) = E_Q[e^{sL}] on a vertical line through a saddle point.

For any real k, with K = log M of the whole composition (a plain sum over its steps),

    E_Q[(e^L - e^k)^+] = 1/(2 pi i) * integral of e^{K(s) - k (s-1)} / (s (s-1)) ds     on Re s = c > 1,

and moving c past a pole only adds its residue, so three families of lines give the divergence, its complement
1 - H, or the reversed divergence, each with full *relative* accuracy where it is small. Tails of L under P and Q
have the same form with one pole (Lemma C1). Cost does not depend on the number of steps.

Where rare large losses stand apart from many small ones no single line serves: there the composition is taken apart by
its largest jump (largest_jump.py) and each part has a line of its own. The errors are explained in inversion.py and
proved, where they are, in docs/theory/contour.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np

from deniable.effort import UnresolvedError, ends_in_time, still_affordable, use_reserve
from deniable.loss.arrays import EPS
from deniable.loss.compose.composed_pair import ComposedPair
from deniable.loss.compose.cumulants import TINY, Composition, Saddle, find_level_saddle
from deniable.loss.compose.grid import Grid
from deniable.loss.compose.inversion import GOOD, Inversion, Known
from deniable.loss.compose.largest_jump import bands
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional
from deniable.search import falls_to
from deniable.upper import Upper, upper

_NEGLIGIBLE = 1e-40  # below it Chernoff's bound is answer enough, ...
_WORTH_ONE_LINE = 1e-25  # ... and below this what one line tells, be it no more than a bound
_BESIDE = 1e-10  # or below this share of a level that is searched for
_EXPLODING = 10.0  # times the variance at a saddle may exceed the loss's own: beyond, jumps stand apart from the bulk
_FEW_PARTS = 8  # unlike steps, whose bulk is quickly looked at
_SMALL_LEVEL = 0.2  # below it a functional's level is found from its tail
_LOOSE = 1e-4  # relative error from which on a grid may know more
_GRID_POINTS = 2**16
_MOST_BANDED = 256  # unlike steps that are taken apart by their jumps
_MOST_PARTS = 64  # unlike steps that a grid is made of within a question's time
_GRID_LEAST = 1e-12  # below it the grid's round-off hides what it knows
_MINUTE, _THREE_DIGITS = 1e-20, 1e-4  # smaller values need no more digits, band by band
_LOOKS = 2  # at every band: by Chernoff's inequality, and by a line
_FAINT_NATS = 28.0  # e^-28 = 7e-13, for a band's own share of a value


Range = tuple[float, float]
ANY: Range = (0.0, inf)


@dataclass
class Contour(ComposedPair):
    """A composition of steps, at least one of them smooth, by contour inversion."""

    composition: Composition
    method = "contour inversion"

    def hockey_stick(self, k: float, matters: Range = ANY) -> Upper:
        if not self.least < k < self.largest_finite:
            seen = self.mirror.escape  # by Q alone: its losses are -inf
            return self._outside(k, -expm1(min(k + log1p(-seen), 0.0)) if seen < 1 else 1.0)
        if k < 0:  # the same divergence seen from the other side, where it is the smaller part of 1 - e^k
            other = self.mirror.hockey_stick(-k)
            return upper(-expm1(k) + exp(k) * (other - other.error / 2), exp(k) * other.error / 2 + 2 * EPS, high=1.0)
        return self._value(STICK, k, matters)

    def rough_stick(self, k: float, negligible: float) -> Upper:
        return self.hockey_stick(k, (negligible, inf))

    def tail(self, t: float, matters: Range = ANY) -> Upper:
        if not self.least < t < self.largest_finite:
            return self._outside(t, 1.0)
        return self._value(TAIL, t, matters)

    def null_tail(self, t: float, matters: Range = ANY) -> Upper:
        if not self.least < t < self.largest_finite:
            return Upper(0.0 if t >= self.largest_finite else 1 - self.mirror.escape)
        return self._value(NULL_TAIL, t, matters)

    def null_exceeded(self, failure: float, hint: float | None = None) -> Upper:
        """Half the digits are enough: every threshold gives a valid bound, and near the best one it is flat."""
        return self._where(NULL_TAIL, failure, precision=1e-6, hint=hint)

    def _look(self, functional: Functional, k: float, level: float) -> Upper:
        answers = {STICK: self.hockey_stick, TAIL: self.tail, NULL_TAIL: self.null_tail}
        return answers[functional](k, (level / 2, 2 * level))

    @ends_in_time
    def _value(self, functional: Functional, k: float, matters: Range) -> Upper:
        """The functional by one line through the whole composition where that serves, else band by band.

        Where it surely lies outside the range that `matters`, to a search for instance, the error may be any.
        """
        ceiling = min(self._whole.chernoff.ceiling(functional, k), self._most(functional))
        if ceiling < max(_NEGLIGIBLE, matters[0]):
            return Upper(ceiling, ceiling)
        single = self.by_single_steps(functional, k)
        if single is not None and (single.error <= GOOD * single or _is_outside((single, single.error), matters)):
            return single
        value, error = self._by_lines(functional, k, ceiling, matters)
        escape = self.escape if functional.shift else 0.0
        found = upper(value + escape, error + 2 * EPS * (abs(value) + escape), high=ceiling)
        found = self.doubt_escape(found) if functional.shift else found
        if error <= _LOOSE * abs(value) or found < _GRID_LEAST or _is_outside((value, error), matters):
            return found
        if len(self.composition.parts) > _MOST_PARTS:  # each of them would be put on the grid
            return found
        found = found.meet(self._on_grid(functional, k))
        return found if k < 0 else found.meet(self.bracket_by_steps(functional, k))

    @cached_property
    def _good(self) -> float:
        """Relative error of an answer that is not improved any more: bands have the same round-off of many steps."""
        return max(GOOD, 10 * EPS * self.composition.steps)

    def _by_lines(self, functional: Functional, k: float, ceiling: float, matters: Range) -> Known:
        """The best that line integrals tell, within the question's effort; nothing but the ceiling at worst."""
        best = 0.0, ceiling
        negligible = min(_WORTH_ONE_LINE, _BESIDE * matters[0]) if matters[0] else _WORTH_ONE_LINE
        for way in (partial(self._whole.value, enough=_NEGLIGIBLE), self._by_bands):
            try:
                found = way(functional, k)
            except UnresolvedError:
                continue
            if found[1] < best[1]:
                best = found
            if best[1] <= max(self._good * abs(best[0]), negligible) or _is_outside(best, matters):
                break
        return best

    def _on_grid(self, functional: Functional, k: float) -> Upper:
        """A proved bracket where lines do not resolve the value: at worst some per cent wide."""
        with use_reserve(), np.errstate(all="ignore"):
            return functional.at(self._grid, k)

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.composition, points=_GRID_POINTS)

    @cached_property
    def _whole(self) -> Inversion:
        return Inversion(self.composition, TINY)

    @cached_property
    def _bands(self) -> list[Inversion]:
        return [Inversion(band, _FAINT_NATS) for band in bands(self.composition)]

    def _by_bands(self, functional: Functional, k: float) -> Known:
        """Sum over the bands: those that cannot matter are bounded, those that hardly do need no line of their own.

        The one that is known worst is looked at more closely, until none of them matters any more.
        """
        still_affordable()
        if len(self.composition.parts) > _MOST_BANDED or not self._bands:
            raise UnresolvedError("no jumps stand apart, or too many unlike steps have them")
        least = self._single(functional, k)
        found, looks = [band.mass_bound(functional) for band in self._bands], [0] * len(self._bands)
        while True:
            about = max(abs(sum(value for value, _ in found)), least)
            enough = (0.1 * GOOD if about > _MINUTE else _THREE_DIGITS) * about
            doubtful = [p for p, (_, error) in enumerate(found) if error > enough and looks[p] < _LOOKS]
            if not doubtful:
                return sum(value for value, _ in found), sum(error for _, error in found)
            place = max(doubtful, key=lambda p: found[p][1])
            band, closer = self._bands[place], looks[place] > 0
            found[place] = (
                _look_closer(band, functional, k, enough, found[place]) if closer else band.known(functional, k)
            )
            looks[place] += 1

    def _jump_point(self, functional: Functional, level: float) -> float:
        """Where the functional would fall to `level` if one single jump were to blame."""
        return falls_to(
            lambda k: self._single(functional, k), level / self.composition.steps, (0.0, self.scale), close=0.1
        )

    def _single(self, functional: Functional, k: float) -> float:
        """The functional of one single step: a composition's is rarely smaller."""
        at = np.array([k])
        return max(float(functional.on_step(step, at)[0]) for step, _ in self.composition.parts)

    def _outside(self, k: float, below: float) -> Upper:
        """Where k is not between the least and the largest loss, there is nothing to integrate."""
        value = self.escape if k >= self.largest_finite else below
        return self.doubt_escape(upper(value, 2 * EPS * value, high=1.0))

    def _exchange_sides(self) -> Contour:
        return Contour(self.composition.reverse())

    def ceiling(self, k: float) -> float:
        return self._whole.chernoff.ceiling(TAIL, k)

    def surely_tells_more(self, delta: float) -> bool:
        """By one of a few steps: who sees all of them tells no less."""
        return any(step.hockey_stick(0.0).least > delta for step, _ in self.composition.parts[:_FEW_PARTS])

    def near(self, functional: Functional, level: float) -> tuple[float, float]:
        if level < _SMALL_LEVEL:
            found = self._level_points(functional, level)
            if found:
                return max(found)
        return self.composition.mean_under(functional), self.scale / 4

    def _level_points(self, functional: Functional, level: float) -> list[tuple[float, float]]:
        """Where the functional may fall to `level`, and how sure that is: by one saddle, by the bulk's or by a jump."""
        found = _saddle_points(self.composition, functional, level)
        few = len(self.composition.parts) <= _FEW_PARTS
        if (not found or (few and found[0].bend > _EXPLODING * self.scale**2)) and self._bands:
            jump = self._jump_point(functional, level)
            bulk = _saddle_points(self._bands[0].composition, functional, level) if few else []
            points = [(jump, 0.1 * jump), *(_around(saddle, functional, level) for saddle in bulk)]
        else:
            points = [_around(saddle, functional, level) for saddle in found]
        return [point for point in points if 0 < point[0] < inf]


def _saddle_points(law: Composition, functional: Functional, level: float) -> list[Saddle]:
    try:
        return [find_level_saddle(law, functional, level)]
    except UnresolvedError:
        return []


def _is_outside(found: tuple[float, float], matters: Range) -> bool:
    """Whether a value, with its error, surely lies outside a range."""
    value, error = found
    return value + error < matters[0] or value - error > matters[1]


def _look_closer(band: Inversion, functional: Functional, k: float, enough: float, known: Known) -> Known:
    """By a line where that says more than what is known, and can be had; its error may be `enough`."""
    try:
        found = band.value(functional, k, enough)
    except UnresolvedError:
        return known
    return found if found[1] < known[1] else known


def _around(saddle: Saddle, functional: Functional, level: float) -> tuple[float, float]:
    """Where the functional falls to `level` by what a saddle near by tells, to second order, and how far to step."""
    slope = saddle.c - max(functional.poles)
    height = log(max(saddle.estimate(functional), 1e-300) / max(level, 1e-300))
    move = 2 * height / (slope + sqrt(max(slope**2 + 2 * height / saddle.bend, 0.0)))
    return saddle.target(functional) + move, 0.05 / slope + 0.1 * abs(move)
