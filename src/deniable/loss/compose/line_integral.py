"""Line integrals of e^{K(s)} through a saddle point, with errors that are known: the engine of contour.py.

Error, added on the safe side (docs/theory/contour.md):
- aliasing of the trapezoidal rule: exactly the functional at k + m * period, which Chernoff's inequality bounds (Lemmas
  C2, C3);
- truncation: a bound on |e^K| from the last frequency on, times the weight's tail (Lemma C4). Where e^K does not die
  out within reach, the line is tapered: away from the losses' centre, where sharp structure is, the functional is
  smooth on the scale of the distance d from it, and frequencies far above 1/d contribute nothing but cancelling waves.
  The error is then the difference to a taper of half the width, and what the highest Legendre coefficients of the
  panels still contribute (validated, not proved);
- the moments' own error (Lemmas C5, C8) and round-off: of the sum, and of K times the number of steps (Lemma C7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, inf, isnan, pi, sqrt

import numpy as np
from scipy.special import erfc

from deniable.effort import UnresolvedError, spend, still_affordable
from deniable.loss.arrays import Complexes, Floats
from deniable.loss.compose.chernoff import Chernoff
from deniable.loss.compose.cumulants import EPS, TINY, Composition, Saddle
from deniable.loss.compose.saddle import Region, find_period, find_saddle, surround
from deniable.loss.functionals import Functional
from deniable.loss.moments.panels import growing_panels, unresolved_where_smooth

__all__ = ["GOOD", "LOOKS", "Law", "Line"]

Asked = tuple[float, Functional]  # a functional at k
Known = tuple[float, float]  # a value and its error

GOOD = 1e-7  # relative error with which nobody looks for a better answer
_AS_GOOD = 1e-10  # and with which a line that was drawn for another question serves as well as one of its own
_NEAR = 7.0  # widths from its saddle within which a line may serve: farther out its round-off hides the value
_MOST_POINTS = 2**16  # of the trapezoidal rule
_MANY_POINTS = 2**13  # from there on a tapered line is cheaper
_TAPER_RADIANS = 110.0  # by which the waves of a tapered line turn over the distance of k from the centre
_TAPER_EDGE = 5.5  # the taper is erfc(edge * (omega / width - 1)) / 2: within 4e-15 of 1 where it begins
_TAPER_END = 6.0  # and below 1e-16 where it ends
_TAPER_SPAN = _TAPER_RADIANS * (1 + _TAPER_END / _TAPER_EDGE)  # radians over which a tapered line is drawn
_ROUNDOFF = 1e-9  # more than that of K on the real axis
_ALIKE = 0.01  # of the losses' spread, or of the distance from their centre, by which questions may differ
_NEAREST = 1e-300  # distance of k from the centre
_MOST_HALF_OCTAVES = 12  # beyond the first guess at the last frequency, up to which a proved bound is asked
_DENSE = 192  # frequencies, a third of the first guess apart, at which |e^K| is looked at where none is proved
_PANEL_RADIANS = 6.0  # over a panel of 16 points
_NO_SPREAD = 1e-290  # variance of a tilted loss that is an atom to all numbers
_FARTHEST = 1e5  # frequencies, in units of the saddle's own


@dataclass(frozen=True)
class _Integrand:
    """What sums over one line for one weight share, whatever k is asked for."""

    terms: Complexes  # but for the phases e^{-i k omega}
    size: float  # sum of their moduli
    roundoff: float  # of the sum, but for that of e^{-k s}
    sides: tuple[tuple[Floats, Floats], ...]  # of the line: logarithms of Chernoff's bounds are a - b k


@dataclass(frozen=True)
class Line:
    """K on points c + i omega with quadrature weights, and what is needed to bound the error of sums over them."""

    saddle: Saddle
    frequencies: Floats
    weights: Floats
    cumulants: Complexes
    rivals: tuple[Floats, Floats]  # real points c' of the same region and K(c'), for Chernoff bounds
    period: float  # 2 pi / spacing, or inf where panels took the place of the trapezoidal rule
    drawn_for: tuple[float, Functional]  # the question whose integrand the points were chosen for
    beyond: float  # bound on (omega / last) |e^{K(c + i omega) - K(c)}| from the last frequency on
    noises: Floats  # relative round-off of e^K at every point
    panel_weights: Floats | None = None  # without the taper, where growing panels were used
    narrower: Floats | None = None  # share of each weight that a taper of half the width would leave; None: no taper
    integrands: dict[Functional, _Integrand] = field(default_factory=dict)

    def integral(self, k: float, functional: Functional) -> tuple[float, float]:
        """The line integral and its error."""
        top = self.saddle.value - k * (self.saddle.c - functional.shift)
        if top > 700:
            return 0.0, inf
        integrand = self._integrand(functional)
        spend(self.frequencies.size)
        terms = integrand.terms * np.exp(-1j * k * self.frequencies)
        roundoff = integrand.roundoff + integrand.size * EPS * abs(top)
        height = exp(top) / pi
        panels = 0.0 if self.panel_weights is None else unresolved_where_smooth(terms, self.panel_weights)
        cut = self._truncation(functional) if self.narrower is None else abs(float(terms.real @ (1 - self.narrower)))
        error = height * (roundoff + panels + cut) + self._aliases(k, integrand)
        return height * float(terms.real.sum()), error

    def _integrand(self, functional: Functional) -> _Integrand:
        if functional not in self.integrands:
            size = np.exp(np.minimum(self.cumulants.real - self.saddle.value, 700.0) + 1j * self.cumulants.imag)
            terms = size * functional.weight(self.saddle.c + 1j * self.frequencies) * self.weights
            sizes = np.abs(terms)
            roundoff = float(sizes @ self.noises)
            self.integrands[functional] = _Integrand(terms, float(sizes.sum()), roundoff, self._sides(functional))
        return self.integrands[functional]

    def _aliases(self, k: float, integrand: _Integrand) -> float:
        """The rule adds e^{(c - shift) m period} f(k + m period), and f(k) <= e^{K(c') - (c' - shift) k} (Chernoff)."""
        if self.period == inf:
            return 0.0
        logs = (float((a - b * k).min()) if a.size else inf for a, b in integrand.sides)
        return sum(exp(min(log, 700.0)) if log < inf else inf for log in logs)

    def _sides(self, functional: Functional) -> tuple[tuple[Floats, Floats], ...]:
        others, cumulants = self._on_this_side(functional)
        apart = others - self.saddle.c
        turns = np.abs(apart) * self.period
        # sum over m >= 1 of e^{-m turns} is 1 / (e^turns - 1) (Lemma C3)
        at_zero, slopes = cumulants - turns - np.log(-np.expm1(-turns)), others - functional.shift
        return tuple((at_zero[side], slopes[side]) for side in (apart > 0, apart < 0))

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


@dataclass
class Law:
    """A positive measure of losses, known by its cumulants, and the lines drawn through them so far."""

    composition: Composition
    tiny: float
    """Lines end, and repeat, where less than e^-tiny of their height is left."""
    lines: dict[float, Line] = field(default_factory=dict)

    @cached_property
    def chernoff(self) -> Chernoff:
        return Chernoff(self.composition)

    def mass_bound(self, functional: Functional) -> Known:
        """Any functional lies between 0 and the mass."""
        mass = exp(min(self.composition.saddle(functional.shift).value + _ROUNDOFF, 0.0))
        return mass / 2, mass / 2

    def known(self, k: float, functional: Functional) -> tuple[float, float]:
        """The functional and its error as far as Chernoff's bounds tell (Lemma C6): nearly nothing, or nearly all."""
        above = exp(min(self.chernoff.log_bound(k, functional.shift, right=True), 0.0))
        below = exp(min(self.chernoff.log_bound(k, functional.shift, right=False), 0.0))
        if above <= below:
            return above / 2, above / 2
        residue, roundoff = self._residue(k, functional, -inf)
        return residue + functional.misses_below * below / 2, below / 2 + roundoff

    def value(self, k: float, functional: Functional, close: float = GOOD, enough: float = 0.0) -> tuple[float, float]:
        """The functional of this measure, and its error, which need not be below the share `close`, or `enough`."""
        for line in self._near_by(k, functional):
            value, error = self._along(line, k, functional)
            if error <= max(_AS_GOOD, 4 * float(line.noises[0])) * abs(value):
                return value, error
        saddle = find_saddle(self.composition, k, functional, self._region(k, functional))
        if saddle.c > max(functional.poles):
            most = exp(min(self.composition.height(saddle) - k * (saddle.c - functional.shift), 0.0))  # Lemma C2
            if most <= 2 * enough:
                return most / 2, most / 2
        return self._along(self._through_saddle(k, functional, close), k, functional)

    def _near_by(self, k: float, functional: Functional) -> list[Line]:
        """Lines that are there already, the one whose saddle is nearest to the question's first."""
        usable = (line.saddle for c, line in self.lines.items() if c not in functional.poles)
        distances = [(abs(saddle.offset(k, functional)), saddle.c) for saddle in usable]
        return [self.lines[c] for distance, c in sorted(distances)[:2] if distance < _NEAR]

    def _along(self, line: Line, k: float, functional: Functional) -> tuple[float, float]:
        """The functional by one line, and its error."""
        value, error = line.integral(k, functional)
        residue, roundoff = self._residue(k, functional, line.saddle.c)
        return value + residue, error + roundoff

    def _residue(self, k: float, functional: Functional, c: float) -> tuple[float, float]:
        """The masses of P and Q, where the line at c has passed their poles (Lemma C1), and their round-off."""
        passed = [functional.residue(pole, k) * self.composition.mass(pole) for pole in functional.poles if c < pole]
        return sum(passed), self.composition.mass_noise * sum(abs(mass) for mass in passed)

    def _region(self, k: float, functional: Functional) -> Region:
        """Between the poles where a divergence is neither near 0 nor 1; else the side that keeps its digits."""
        law = self.composition
        if len(functional.poles) == 1:
            (pole,) = functional.poles
            return (pole, inf) if k > law.mean_under(functional) else (-inf, pole)
        if law.null_mean < k < law.mean:
            right = k > 0
            return (0.0, 1.0) if law.scale > 3 else (1.0, inf) if right else (-inf, 0.0)
        return (1.0, inf) if k >= law.mean else (-inf, 0.0)

    def _through_saddle(self, k: float, functional: Functional, close: float) -> Line:
        """The line through the saddle for k: the one that is there already if it serves, else a new one."""
        region = self._region(k, functional)
        saddle = find_saddle(self.composition, k, functional, region)
        line = self.lines.get(saddle.c)
        if line is not None:
            value, error = line.integral(k, functional)
            if error <= close * abs(value) or self._is_alike(line.drawn_for, (k, functional)):
                return line
        line = self._draw(k, functional, saddle, region)
        self.lines[line.saddle.c] = line
        return line

    def _is_alike(self, one: tuple[float, Functional], other: tuple[float, Functional]) -> bool:
        """Whether a line for one question would be much the same for the other."""
        room = min([self.composition.scale, *self._distances(one[0])])
        return one == other or (one[1] is other[1] and abs(one[0] - other[0]) < _ALIKE * room)

    def _draw(self, k: float, functional: Functional, saddle: Saddle, region: Region) -> Line:
        """A new line: by the trapezoidal rule, or by panels where that would need too many points."""
        still_affordable()
        saddle, rivals = surround(self.composition, saddle, region)
        period = find_period(self.composition, k, saddle, rivals, self.tiny)
        last, beyond = self._last_frequency(saddle, lambda: self._farthest(k, saddle, period))
        count = last * period / (2 * pi) + 8
        if _MANY_POINTS < count < inf and self._distances(k):
            return self._on_best_panels((k, functional), saddle, 2 * pi / period, (last, beyond))
        if not 8 <= count <= _MOST_POINTS:
            raise UnresolvedError(f"{count:.0f} points needed")
        frequencies = 2 * pi / period * np.arange(int(count))
        weights = np.full(frequencies.size, 2 * pi / period)
        weights[0] /= 2
        cumulants = self.composition.cumulant(saddle.c + 1j * frequencies)
        noises = self._noises(saddle, frequencies, cumulants)
        return Line(saddle, frequencies, weights, cumulants, rivals, period, (k, functional), beyond, noises)

    def _distances(self, k: float) -> list[float]:
        """Of k from the guesses at the losses' centre; none where there is no such guess."""
        centres = self.composition.centres
        return [] if isnan(sum(centres)) else [max(abs(k - centre), _NEAREST) for centre in dict.fromkeys(centres)]

    def _farthest(self, k: float, saddle: Saddle, period: float) -> float:
        """A frequency beyond which nothing is asked of a line: it is tapered before, or given up."""
        very_far = _FARTHEST * max(sqrt(2 * TINY / saddle.bend), abs(saddle.c))
        distances = self._distances(k)
        if not distances:
            return very_far
        return min(very_far, 1.01 * max(2 * pi / period * _MANY_POINTS, _TAPER_SPAN / min(distances)))

    def _on_best_panels(
        self, asked: tuple[float, Functional], saddle: Saddle, first: float, ends: tuple[float, float]
    ) -> Line:
        """On growing panels for the first of the guesses at the centre that serves, or the better one of them."""
        lines: list[tuple[float, int, Line]] = []
        for distance in self._distances(asked[0]):
            line = self._on_growing_panels(asked, saddle, first, (*ends, distance))
            value, error = self._along(line, *asked)
            if error <= GOOD * abs(value):
                return line
            lines.append((error, len(lines), line))
        return min(lines)[-1]

    def _on_growing_panels(
        self, asked: tuple[float, Functional], saddle: Saddle, first: float, ends: tuple[float, float, float]
    ) -> Line:
        """A line on panels that grow with the frequency, tapered where e^K is still alive far out (see above)."""
        last, beyond, distance = ends
        width, end = _TAPER_RADIANS / distance, min(last, _TAPER_SPAN / distance)
        points, weights = growing_panels(first, end, min(_PANEL_RADIANS / distance, end))
        taper, half = np.ones(points.size), None
        if end < last:
            taper, half = (0.5 * erfc(_TAPER_EDGE * (points / size - 1)) for size in (width, width / 2))
            half, beyond = half / np.maximum(taper, 1e-300), 0.0
        cumulants, none = self.composition.cumulant(saddle.c + 1j * points), (np.zeros(0), np.zeros(0))
        noises, tapered = self._noises(saddle, points, cumulants), weights * taper
        return Line(saddle, points, tapered, cumulants, none, inf, asked, beyond, noises, weights, half)

    def _noises(self, saddle: Saddle, frequencies: Floats, cumulants: Complexes) -> Floats:
        """Relative round-off of e^K at these points of a line.

        A moment's error is relative to its value on the real axis: it counts the more the smaller the moment has become
        (Lemma C7).
        """
        fall = np.maximum(saddle.value - cumulants.real, 0.0)
        grown = sum(runs * np.exp(np.minimum(fall / count, 100.0)) for count, runs in self.composition.runs.items())
        return np.asarray(self.composition.roundoff(saddle, frequencies, grown) + self.composition.schedule_error)

    def _last_frequency(self, saddle: Saddle, find_farthest: Callable[[], float]) -> tuple[float, float]:
        """Where |e^K| / |s| has fallen to e^-tiny of its height, or the farthest; and what bounds |e^K| beyond.

        By a proved bound (Lemma C4) where it falls so far within a few octaves; else by what is seen of |e^K| at dense
        frequencies, at which it may come back, and then at sparse ones (validated, not proved).
        """
        if saddle.bend <= _NO_SPREAD:
            raise UnresolvedError("one loss hides all others")
        law, first, farthest = self.composition, sqrt(2 * self.tiny / saddle.bend), inf
        octaves = first * 2.0 ** (np.arange(_MOST_HALF_OCTAVES) / 2)
        dense = first * (1 + np.arange(_DENSE) / 3)
        ways = (octaves[:2], law.log_height), (octaves[2:], law.log_height), (dense, law.seen_height)
        for lasts, log_height in ways:
            found = self._fallen(saddle, lasts, log_height(saddle.c, lasts), farthest)
            if found is not None:
                return found
            farthest = find_farthest()
        while True:
            lasts = float(lasts[-1]) * 2.0 ** (np.arange(1, 11) / 2)
            found = self._fallen(saddle, lasts, law.seen_height(saddle.c, lasts), farthest)
            if found is not None:
                return found

    def _fallen(self, saddle: Saddle, lasts: Floats, heights: Floats, farthest: float) -> tuple[float, float] | None:
        """The first of these frequencies that is far enough out, and the height there beside that of the saddle."""
        still_affordable()
        pole, falls = max(abs(saddle.c), abs(saddle.c - 1)), heights - saddle.value
        enough = (falls <= np.maximum(0.0, np.log(lasts / pole)) - self.tiny) | (lasts >= farthest)
        place = int(enough.argmax())
        return (float(lasts[place]), exp(min(float(falls[place]), 0.0))) if enough.any() else None


def _by_chernoff(known: Known, law: Law, asked: Asked, enough: float) -> Known:
    return law.known(*asked)


def _by_any_line(known: Known, law: Law, asked: Asked, enough: float) -> Known:
    return _better_known(known, law, asked, inf, enough)


def _by_good_line(known: Known, law: Law, asked: Asked, enough: float) -> Known:
    return _better_known(known, law, asked, GOOD, enough)


def _better_known(known: Known, law: Law, asked: Asked, close: float, enough: float) -> Known:
    """What is known of the functional, or its value where that says more and can be had; its error may be `enough`."""
    try:
        found = law.value(*asked, close, enough)
    except UnresolvedError:
        return known
    return found if found[1] < known[1] else known


LOOKS = _by_chernoff, _by_any_line, _by_good_line
"""Ways to know more of a functional of a law than its `mass_bound`, each dearer than the one before."""
