"""The sum over the points of one vertical line, with its error (docs/theory/contour.md).

- Aliasing of the trapezoidal rule: exactly the functional at k + m * period, which Chernoff's inequality bounds (Lemmas
  C2, C3).
- Truncation: a bound on |e^K| from the last frequency on, times the weight's tail (Lemma C4); of a tapered line, the
  difference to a taper of half the width, and what the highest Legendre coefficients of its panels still contribute
  (validated, not proved).
- The moments' own error (Lemmas C5, C8) and round-off: of the sum, and of K times the number of steps (Lemma C7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf, pi

import numpy as np

from deniable.effort import spend
from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.compose.cumulants import Saddle
from deniable.loss.functionals import Functional
from deniable.loss.moments.panels import unresolved_where_smooth

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
