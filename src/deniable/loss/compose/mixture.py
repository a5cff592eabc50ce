"""Two-valued losses beside one other release: a sum over the lattice of what the other one alone would give.

Guarantee (Lemma B3). Given the lattice's loss l, what remains is the other release: H(k) = E_P[H_other(k - L_lattice)],
and the same of both tails. Every term is a closed form, taken at both ends of the round-off of its loss, so the result
is as accurate as the terms, however faint the other release's noise is beside the lattice. Binomial losses less likely
than e^-700 are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite

from deniable.loss.compose.binomial import Binomial
from deniable.loss.compose.binomial_terms import Terms
from deniable.loss.functionals import NULL_TAIL, STICK, TAIL, Functional
from deniable.loss.pairs.pair import Pair
from deniable.loss.pairs.step import ROUNDOFF, Step
from deniable.upper import Upper

MOST_RUNS = 10**5
_FEW = 1e-300  # more than what is left out


@dataclass(frozen=True)
class Mixture(Pair):
    """A lattice and one other step, independent of each other."""

    lattice: Binomial
    other: Step
    method = "closed form"

    def hockey_stick(self, k: float) -> Upper:
        return self._plus_escape(self._expected_value(self.lattice.likely, self.lattice.finite, STICK, k))

    def tail(self, t: float) -> Upper:
        return self._plus_escape(self._expected_value(self.lattice.likely, self.lattice.finite, TAIL, t))

    def null_tail(self, t: float) -> Upper:
        lattice = self.lattice
        return Upper.between(*self._expected_value(lattice.null_likely, lattice.null_finite, NULL_TAIL, t))

    def _expected_value(self, terms: Terms, mass: float, functional: Functional, k: float) -> tuple[float, float]:
        """Lower and upper end of the functional's expectation over finite lattice losses."""
        losses, slips = self.lattice.losses(terms.successes), self.lattice.slips(terms.successes)
        if isfinite(k):
            slips = slips + ROUNDOFF * abs(k) + self.other.blur(k - losses)
        reach = self.other.tails(k - losses - slips) if functional is STICK else 0.0
        ends = [functional.on_step(self.other, k - losses + sign * slips) for sign in (1, -1)]
        doubts = terms.doubts + 2 * ROUNDOFF
        least = float((terms.masses * (ends[0] * (1 - doubts) - ROUNDOFF * reach)).sum())
        most = float((terms.masses * (ends[1] * (1 + doubts) + ROUNDOFF * reach)).sum())
        return mass * max(least, 0.0), min(mass * most + _FEW, 1.0)

    def _plus_escape(self, ends: tuple[float, float]) -> Upper:
        low, high = (self.lattice.escape * (1 + sign * ROUNDOFF) for sign in (-1, 1))
        return Upper.between(min(1.0, ends[0] + low), min(1.0, ends[1] + high))

    def reverse(self) -> Mixture:
        return self._mirror

    @cached_property
    def _mirror(self) -> Mixture:
        back = self.lattice.reverse(), self.other.reverse()
        return self if back == (self.lattice, self.other) else Mixture(*back)

    @property
    def escape(self) -> float:
        return self.lattice.escape + self.lattice.finite * self.other.escape

    @property
    def largest(self) -> float:
        return inf if self.escape > 0 else self.largest_finite

    @property
    def largest_finite(self) -> float:
        return self.lattice.largest_finite + self.other.largest_finite

    @property
    def scale(self) -> float:
        return max(self.lattice.scale, self.other.scale)

    def near(self, functional: Functional, level: float) -> tuple[float, float]:
        return self.lattice.near(functional, level)
