"""Functionals of a composition by line integrals of e^{K(s)} through saddle points.

A line is a sum over its points, with its error (docs/theory/contour.md):

- Aliasing of the trapezoidal rule: exactly the functional at k + m * period, which Chernoff's inequality bounds (Lemmas
  C2, C3).
- Truncation: a bound on |e^K| from the last frequency on, times the weight's tail (Lemma C4); of a tapered line, the
  difference to a taper of half the width, and what the highest Legendre coefficients of its panels still contribute
  (validated, not proved).
- The moments' own error (Lemmas C5, C8) and round-off: of the sum, and of K times the number of steps (Lemma C7).

Every answer depends on its question alone, not on earlier ones (but for the effort that is left, deniable.effort):
lines stand at fixed places, each for a fixed range of k, and are kept.

Where e^K does not die out within reach, the line is tapered: away from the losses' centre, where sharp structure is,
the functional is smooth on the scale of the distance d from it, and frequencies far above 1/d contribute nothing but
cancelling waves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, floor, inf, isfinite, isnan, log2, pi, sqrt

import numpy as np
from scipy.special import erfc

from deniable.effort import UnresolvedError, spend, still_affordable
from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.compose.composed_pair import Chernoff
from deniable.loss.compose.cumulants import (
    NEAR_WIDTHS,
    TINY,
    Composition,
    Saddle,
    Strip,
    find_period,
    find_saddle,
    surround,
)
from deniable.loss.moments.nodes import growing_panels, unresolved_where_smooth
from deniable.loss.pairs.pair import FUNCTIONALS, STICK, TAIL, Functional

_MOST_EXPONENT = 700.0  # e^700 is about the largest number


@dataclass(frozen=True)
class _Integrand:
    """What sums over one line for one functional share, whatever k is asked for."""

    terms: Complexes  # but for the phases e^{-i k omega}
    size: float  # sum of their moduli
    roundoff: float  # of the sum, but for that of e^{-k s}
    aliases: tuple[Floats, Floats, int]  # Chernoff's bounds e^{a - b k}, and how many of them lie left of the line


@dataclass(frozen=True)
class Line:
    """K on points c + i omega with quadrature weights, and what is needed to bound the error of sums over them."""

    saddle: Saddle
    frequencies: Floats
    weights: Floats
    cumulants: Complexes
    noises: Floats  # relative round-off of e^K at every point
    beyond: float  # bound on (omega / last) |e^{K(c + i omega) - K(c)}| from the last frequency on
    period: float = inf  # 2 pi / spacing, or inf where panels took the place of the trapezoidal rule
    rivals: tuple[Floats, Floats] = (np.zeros(0), np.zeros(0))  # real c' of the same strip, ascending, and K(c')
    panel_weights: Floats | None = None  # without the taper, where growing panels were used
    narrower: Floats | None = None  # share of each weight that a taper of half the width would leave; None: no taper
    integrands: dict[Functional, _Integrand] = field(default_factory=dict)

    def integral(self, functional: Functional, k: float) -> tuple[float, float]:
        """The line integral and its error."""
        top = self.saddle.value - k * (self.saddle.c - functional.shift)
        if top > _MOST_EXPONENT:
            return 0.0, inf
        integrand = self._integrand(functional)
        spend(self.frequencies.size)
        terms = integrand.terms * np.exp(-1j * k * self.frequencies)
        roundoff = integrand.roundoff + integrand.size * EPS * abs(top)
        height = exp(top) / pi
        panels = 0.0 if self.panel_weights is None else unresolved_where_smooth(terms, self.panel_weights)
        cut = self._truncation(functional) if self.narrower is None else abs(float(terms.real @ (1 - self.narrower)))
        error = height * (roundoff + panels + cut) + self._aliasing_error(k, integrand)
        return height * float(terms.real.sum()), error

    def _integrand(self, functional: Functional) -> _Integrand:
        if functional not in self.integrands:
            size = np.exp(
                np.minimum(self.cumulants.real - self.saddle.value, _MOST_EXPONENT) + 1j * self.cumulants.imag
            )
            terms = size * functional.weight(self.saddle.c + 1j * self.frequencies) * self.weights
            sizes = np.abs(terms)
            roundoff = float(sizes @ self.noises)
            self.integrands[functional] = _Integrand(terms, float(sizes.sum()), roundoff, self._aliases(functional))
        return self.integrands[functional]

    def _aliasing_error(self, k: float, integrand: _Integrand) -> float:
        """The rule adds e^{(c - shift) m period} f(k + m period), and f(k) <= e^{K(c') - (c' - shift) k} (Chernoff)."""
        if self.period == inf:
            return 0.0
        at_zero, slopes, left = integrand.aliases
        logs = at_zero - slopes * k
        if not 0 < left < logs.size:
            return inf
        return exp(min(logs[:left].min(), _MOST_EXPONENT)) + exp(min(logs[left:].min(), _MOST_EXPONENT))

    def _aliases(self, functional: Functional) -> tuple[Floats, Floats, int]:
        others, cumulants = self._on_this_side(functional)
        apart = others - self.saddle.c
        turns = np.abs(apart) * self.period
        # sum over m >= 1 of e^{-m turns} is 1 / (e^turns - 1) (Lemma C3)
        at_zero = cumulants - turns - np.log(-np.expm1(-turns))
        return at_zero, others - functional.shift, int((apart < 0).sum())

    def _on_this_side(self, functional: Functional) -> tuple[Floats, Floats]:
        """The rivals that no pole parts from the line: beyond it the bounds are those of another functional."""
        others, cumulants = self.rivals
        low = max((pole for pole in functional.poles if pole < self.saddle.c), default=-inf)
        high = min((pole for pole in functional.poles if pole > self.saddle.c), default=inf)
        near = (low <= others) & (others <= high)
        return others[near], cumulants[near]

    def _truncation(self, functional: Functional) -> float:
        """Beyond the last frequency |e^K| falls at least like 1 / omega (Lemma C4)."""
        return self.beyond * (0.5 / float(self.frequencies.max()) if len(functional.poles) == 2 else 1.0)


Known = tuple[float, float]
"""A value and its error."""
Place = tuple[float, Strip, tuple[float, float]]
"""Where a line stands, c and its strip, and how many widths from its saddle's own k it serves, below and above."""

GOOD = 1e-7  # relative error of an answer that is not improved any more
_MOST_POINTS = 2**16  # of the trapezoidal rule
_MANY_POINTS = 2**13  # from there on a tapered line is cheaper
_TAPER_RADIANS = 110.0  # by which the waves of a tapered line turn over the distance of k from the centre
_TAPER_EDGE = 5.5  # the taper is erfc(edge * (omega / width - 1)) / 2: within 4e-15 of 1 where it begins
_TAPER_END = 6.0  # and below 1e-16 where it ends
_TAPER_SPAN = _TAPER_RADIANS * (1 + _TAPER_END / _TAPER_EDGE)  # radians over which a tapered line is drawn
_AXIS_ROUNDOFF_NATS = 1e-9  # more than that of K on the real axis
_NEAREST = 1e-300  # distance of k from the centre
_MOST_HALF_OCTAVES = 12  # beyond the first guess at the last frequency, up to which a proved bound is asked
_DENSE = 192  # frequencies, a third of the first guess apart, at which |e^K| is looked at where none is proved
_PANEL_RADIANS = 6.0  # over a panel of 16 points
_SEEN_TO_FALL = 1e-6  # share of the height: what is left then goes on falling
_NO_SPREAD = 1e-290  # variance of a tilted loss that is an atom to all numbers
_FARTHEST_WIDTHS = 1e5  # frequencies, in units of the saddle's own
_APART_SPREADS = 3.0  # of the losses, from which on the means of P and Q lie so far apart that a line fits between
_LEVELS = 4  # of the distance from the centre in every octave, for each of which a tapered line is drawn
_TOO_LARGE = "moments of losses so large cannot be had"


@dataclass(frozen=True)
class Inversion:
    """A positive measure of losses, known by its cumulants, and the lines through them that were needed so far."""

    composition: Composition
    tiny: float
    """Lines end, and repeat, where less than e^-tiny of their height is left."""
    lines: dict[Place, Line | None] = field(default_factory=dict)
    """None where only a tapered line serves."""
    tapered_lines: dict[tuple[Place, int], Line] = field(default_factory=dict)
    """By the level of the distance from the centre."""

    @cached_property
    def chernoff(self) -> Chernoff:
        return Chernoff(self.composition)

    def mass_bound(self, functional: Functional) -> Known:
        """Any functional lies between 0 and the mass."""
        slack = _AXIS_ROUNDOFF_NATS + self.composition.mass_noise
        mass = exp(min(self.composition.saddle(functional.shift).value + slack, 0.0))
        return mass / 2, mass / 2

    def known(self, functional: Functional, k: float) -> tuple[float, float]:
        """The functional and its error as far as Chernoff's bounds tell (Lemma C6): nearly nothing, or nearly all."""
        above = exp(min(self.chernoff.log_bound(k, functional.shift, right=True), 0.0))
        below = exp(min(self.chernoff.log_bound(k, functional.shift, right=False), 0.0))
        if above <= below:
            return above / 2, above / 2
        residue, roundoff = self._residue(functional, k, -inf)
        return residue + functional.misses_below * below / 2, below / 2 + roundoff

    def value(self, functional: Functional, k: float, enough: float = 0.0) -> Known:
        """The functional of this measure and its error, which may be as large as `enough`."""
        saddle, place = self._place(functional, k)
        if saddle.c > max(functional.poles):
            most = exp(min(self.composition.height(saddle) - k * (saddle.c - functional.shift), 0.0))  # Lemma C2
            if most <= 2 * enough:
                return most / 2, most / 2
        if place not in self.lines:
            self.lines[place] = self._draw(place)
        line = self.lines[place]
        return self._by_taper(place, functional, k) if line is None else self._along(line, functional, k)

    def _place(self, functional: Functional, k: float) -> tuple[Saddle, Place]:
        """Between the poles where a divergence is neither near 0 nor 1; else on the side that keeps its digits.

        That of the divergence serves tails, too, but for those that lie between means far apart.
        """
        law = self.composition
        if law.null_mean < k < law.mean and law.scale > _APART_SPREADS:
            strip = (0.0, 1.0) if functional is STICK else (-inf, 1.0) if functional is TAIL else (0.0, inf)
        else:
            functional = STICK
            strip = (1.0, inf) if k >= law.mean or k > max(law.null_mean, 0.0) else (-inf, 0.0)
        saddle = find_saddle(law, functional, k, strip)
        offset = saddle.offset(functional, k)
        if not isfinite(offset):
            raise UnresolvedError(_TOO_LARGE)
        return saddle, (saddle.c, strip, _reach(offset))

    def _along(self, line: Line, functional: Functional, k: float) -> Known:
        """The functional by one line, and its error."""
        value, error = line.integral(functional, k)
        residue, roundoff = self._residue(functional, k, line.saddle.c)
        return value + residue, error + roundoff

    def _residue(self, functional: Functional, k: float, c: float) -> tuple[float, float]:
        """The masses of P and Q, where the line at c has passed their poles (Lemma C1), and their round-off."""
        passed = [functional.residue(pole, k) * self.composition.mass(pole) for pole in functional.poles if c < pole]
        return sum(passed), self.composition.mass_noise * sum(abs(mass) for mass in passed)

    def _draw(self, place: Place) -> Line | None:
        """The line for a place by the trapezoidal rule; None where that would need more points than a tapered one."""
        still_affordable()
        saddle, rivals, spacing = self._stand(place)
        may_taper = _MANY_POINTS < _MOST_POINTS and not isnan(sum(self.composition.centres))
        most = _MANY_POINTS if may_taper else _MOST_POINTS
        last, beyond = self._last_frequency(saddle, 1.01 * spacing * most)
        count = last / spacing + 8
        if not 8 <= count <= most:
            if may_taper:
                return None
            raise UnresolvedError(f"{count:.0f} points needed")
        frequencies = spacing * np.arange(int(count))
        weights = np.full(frequencies.size, spacing)
        weights[0] /= 2
        cumulants = self.composition.cumulant(saddle.c + 1j * frequencies)
        noises = self._noises(saddle, frequencies, cumulants)
        return Line(saddle, frequencies, weights, cumulants, noises, beyond, 2 * pi / spacing, rivals)

    def _stand(self, place: Place) -> tuple[Saddle, tuple[Floats, Floats], float]:
        """The saddle of a place, its rivals, and the spacing that serves all k of the place, of any functional."""
        c, (low, high), reach = place
        saddle, rivals = surround(self.composition, self.composition.saddle(c), (low, high))
        if not isfinite(saddle.slope):
            raise UnresolvedError(_TOO_LARGE)
        targets: list[float] = []
        for functional in FUNCTIONALS:
            if not any(low < pole < high for pole in functional.poles):
                width, target = sqrt(saddle.bend + functional.bend(saddle.c)), saddle.target(functional)
                targets += [target - width * end for end in reach]
        ends = min(targets), max(targets)
        return saddle, rivals, 2 * pi / max(find_period(self.composition, k, saddle, rivals, self.tiny) for k in ends)

    def _by_taper(self, place: Place, functional: Functional, k: float) -> Known:
        """By a tapered line for the first of the guesses at the centre that serves, or for the better one of them."""
        found: list[Known] = []
        for centre in dict.fromkeys(self.composition.centres):
            level = floor(_LEVELS * log2(max(abs(k - centre), _NEAREST)))
            if (place, level) not in self.tapered_lines:
                self.tapered_lines[place, level] = self._draw_tapered(place, 2 ** (level / _LEVELS))
            value, error = self._along(self.tapered_lines[place, level], functional, k)
            if error <= GOOD * abs(value):
                return value, error
            found.append((value, error))
        return min(found, key=lambda known: known[1])

    def _draw_tapered(self, place: Place, distance: float) -> Line:
        """On panels that grow with the frequency, tapered where e^K is still alive far out (see above)."""
        still_affordable()
        saddle, _, spacing = self._stand(place)
        last, beyond = self._last_frequency(saddle, 1.01 * max(spacing * _MANY_POINTS, _TAPER_SPAN / distance))
        width, end = _TAPER_RADIANS / distance, min(last, _TAPER_SPAN / distance)
        points, weights = growing_panels(spacing, end, min(_PANEL_RADIANS / distance, end))
        taper, half = np.ones(points.size), None
        if end < last:
            taper, half = (0.5 * erfc(_TAPER_EDGE * (points / size - 1)) for size in (width, width / 2))
            half, beyond = half / np.maximum(taper, 1e-300), 0.0
        cumulants = self.composition.cumulant(saddle.c + 1j * points)
        noises = self._noises(saddle, points, cumulants)
        return Line(saddle, points, weights * taper, cumulants, noises, beyond, panel_weights=weights, narrower=half)

    def _noises(self, saddle: Saddle, frequencies: Floats, cumulants: Complexes) -> Floats:
        """Relative round-off of e^K at these points of a line.

        A moment's error is relative to its value on the real axis: it counts the more the smaller the moment has become
        (Lemma C7).
        """
        fall = np.maximum(saddle.value - cumulants.real, 0.0)
        grown = sum(runs * np.exp(np.minimum(fall / count, 100.0)) for count, runs in self.composition.runs.items())
        return np.asarray(self.composition.roundoff(saddle, frequencies, grown) + self.composition.schedule_error)

    def _last_frequency(self, saddle: Saddle, farthest: float) -> tuple[float, float]:
        """Where |e^K| / |s| has fallen to e^-tiny of its height, or the farthest; and what bounds |e^K| beyond.

        By a proved bound (Lemma C4) where it falls so far within a few octaves; else by what is seen of |e^K| at dense
        frequencies, at which it may come back, and then at sparse ones (validated, not proved).
        """
        if saddle.bend <= _NO_SPREAD:
            raise UnresolvedError("one loss hides all others")
        farthest = min(farthest, _FARTHEST_WIDTHS * max(sqrt(2 * TINY / saddle.bend), abs(saddle.c)))
        law, first = self.composition, sqrt(2 * self.tiny / saddle.bend)
        octaves = first * 2.0 ** (np.arange(_MOST_HALF_OCTAVES) / 2)
        dense = first * (1 + np.arange(_DENSE) / 3)
        for lasts in np.split(octaves, [2, 5]):
            found = self._fallen(saddle, lasts, law.log_height(saddle.c, lasts), farthest)
            if found is not None:
                return found
        found = self._seen_fallen(saddle, dense, farthest)
        if found is not None:
            return found
        lasts = dense
        while True:
            lasts = float(lasts[-1]) * 2.0 ** (np.arange(1, 11) / 2)
            found = self._seen_fallen(saddle, lasts, farthest)
            if found is not None:
                return found

    def _seen_fallen(self, saddle: Saddle, lasts: Floats, farthest: float) -> tuple[float, float] | None:
        """The same by what is seen; where it has hardly fallen, nothing tells what comes beyond."""
        found = self._fallen(saddle, lasts, self.composition.seen_height(saddle.c, lasts), farthest)
        return found if found is None or found[1] < _SEEN_TO_FALL else (found[0], inf)

    def _fallen(self, saddle: Saddle, lasts: Floats, heights: Floats, farthest: float) -> tuple[float, float] | None:
        """The first of these frequencies that is far enough out, and the height there beside that of the saddle."""
        still_affordable()
        pole, falls = max(abs(saddle.c), abs(saddle.c - 1)), heights - saddle.value
        enough = (falls <= np.maximum(0.0, np.log(lasts / pole)) - self.tiny) | (lasts >= farthest)
        place = int(enough.argmax())
        return (float(lasts[place]), exp(min(float(falls[place]), 0.0))) if enough.any() else None


def _reach(offset: float) -> tuple[float, float]:
    """Offsets that a line serves: those near its saddle, and on one side as far as this one, up to an octave."""
    far = NEAR_WIDTHS * 2.0 ** ceil(log2(max(abs(offset) / NEAR_WIDTHS, 1.0)))
    return (-far, NEAR_WIDTHS) if offset < 0 else (-NEAR_WIDTHS, far)
