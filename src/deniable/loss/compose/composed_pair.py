"""What every way of composing steps knows from the composition alone; Chernoff's bounds among it (Lemma C2)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, inf, isfinite, log, log1p
from typing import Any, Self
from weakref import ref

import numpy as np

from deniable.loss.arrays import Floats
from deniable.loss.compose.cumulants import Composition
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional, Pair
from deniable.search import falls_to
from deniable.upper import Upper


@dataclass(frozen=True)
class Chernoff:
    """Bounds on the functionals of a composition."""

    law: Composition

    def log_bound(self, k: float, shift: float, right: bool) -> float:
        """Logarithm of a bound on e^{shift k} Q(L > k) and P(L > k), or on the same of L < k."""
        points, cumulants = (self._right if shift else self._null_right) if right else self._left
        return float((cumulants - (points - shift) * k).min())  # Lemma C2

    def ceiling(self, functional: Functional, k: float) -> float:
        """A bound on a tail, and so on the divergence, with the mass at L = inf where it counts."""
        escape = self.law.escape if functional.shift else 0.0
        if k >= self.law.largest:
            return escape
        if k == -inf:
            return 1.0
        return min(1.0, escape + exp(min(0.0, self.log_bound(k, functional.shift, right=True))))

    @cached_property
    def _right(self) -> tuple[Floats, Floats]:
        return self._outwards(1.0, 1.0)

    @cached_property
    def _null_right(self) -> tuple[Floats, Floats]:
        return self._outwards(0.0, 1.0)

    @cached_property
    def _left(self) -> tuple[Floats, Floats]:
        return self._outwards(0.0, -1.0)

    def _outwards(self, pole: float, sign: float) -> tuple[Floats, Floats]:
        """Real points from the pole away from the other one, with K there."""
        points = pole + sign * np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) / self.law.scale
        return points, np.array([self.law.height(saddle) for saddle in self.law.saddles(points.tolist())])


_ROUNDOFF = 1e-12  # relative, of a step's tails
_APART = 1e-9  # Q-mass of large losses, below which they stand wholly apart from all others


class ComposedPair(Pair):
    """The pair of a composition; its divergence and tails are the subclass's business."""

    composition: Composition

    def reverse(self) -> Self:
        return self.mirror

    @property
    def mirror(self) -> Self:
        """The pair (Q, P), whose own mirror is this one."""
        origin = self.__dict__.get("_origin", lambda: None)()
        return self._mirror if origin is None else origin

    @cached_property
    def _mirror(self) -> Self:
        mirrored = self._exchange_sides()
        mirrored.__dict__["_origin"] = ref(self)  # two pairs that keep each other alive would pile up large grids
        return mirrored

    @abstractmethod
    def _exchange_sides(self) -> Self:
        """A new pair (Q, P)."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_origin"}

    @property
    def largest(self) -> float:
        return self.composition.largest

    @property
    def largest_finite(self) -> float:
        return self.composition.largest_finite

    @property
    def escape(self) -> float:
        return self.composition.escape

    @cached_property
    def slip(self) -> float:  # type: ignore[override]
        unsure = sum(count * step.slip * step.escape for step, count in self.composition.parts)
        return min(1.0, unsure / self.escape) if unsure > 0 else 0.0

    def doubt_escape(self, found: Upper) -> Upper:
        """With the error of P(L = inf)."""
        return Upper.between(max(found.least - self.slip * self.escape, 0.0), found) if self.slip else found

    @property
    def scale(self) -> float:
        return self.composition.scale

    @cached_property
    def jump_test(self) -> tuple[float, float]:
        """The attack that accuses where the loss of some single step is above 0."""
        return self._jump_test(0.0)

    def jump_test_near(self, fpr: float) -> tuple[float, float]:
        """The attack that accuses where the loss of some single step is so large that its own rate is about `fpr`."""
        near = falls_to(lambda t: self._some_step_above(t, null=True), fpr, (0.0, self.scale), close=1e-3)
        return self._jump_test(near)

    def _jump_test(self, t: float) -> tuple[float, float]:
        return float(self._some_step_above(t, null=True)), max(self._some_step_above(t).least, 0.0)

    @cached_property
    def stands_apart(self) -> bool:
        """Whether Q hardly ever has a step whose loss is above 0: faint noise on rare samples.

        One common step settles it, so a long schedule is rarely asked step by step.
        """
        zero = np.zeros(1)
        rare = all(float(step.null_tails(zero)[0]) < _APART for step, _ in self.composition.parts)
        return rare and self.jump_test[0] < _APART

    @cached_property
    def _known_above(self) -> dict[tuple[float, bool], Upper]:
        return {}

    def _some_step_above(self, t: float, null: bool = False) -> Upper:
        """Probability under P, or Q, that the loss of some single step is above t."""
        if (t, null) not in self._known_above:
            self._known_above[t, null] = self._find_above(t, null)
        return self._known_above[t, null]

    def _find_above(self, t: float, null: bool) -> Upper:
        kept = [0.0, 0.0]
        for step, count in self.composition.parts:
            above = (NULL_TAIL if null else TAIL).at(step, t)
            for end, mass in enumerate((above.least, float(above))):
                kept[end] += count * log1p(-mass) if mass < 1 else -inf
        least, most = (-expm1(log_kept) for log_kept in kept)
        return Upper.between(least * (1 - _ROUNDOFF), min(1.0, most * (1 + _ROUNDOFF)))

    @cached_property
    def most_variation(self) -> float:
        """1 - product of (1 - total variation) over all steps (Jia et al. 2023, Theorem 6).

        It bounds every divergence at k >= 0.
        """
        kept = 0.0
        for step, count in self.composition.parts:
            kept += count * log1p(-step.variation) if step.variation < 1 else -inf
        return min(1.0, -expm1(kept) * (1 + 1e-12))

    def by_single_steps(self, functional: Functional, k: float) -> Upper | None:
        """`bracket_by_steps` at k >= 0 where large losses stand apart: there it leaves little open."""
        return self.bracket_by_steps(functional, k) if k >= 0 and self.stands_apart else None

    def bracket_by_steps(self, functional: Functional, k: float) -> Upper:
        """A bracket of a functional at k >= 0 from single steps (Lemma J2).

        A sum above k has a part above k / steps, which bounds tails from above; and an attack that accuses where some
        step's loss is above t bounds the divergence, and so P(L > k), from below.
        """
        null = functional is NULL_TAIL
        top = min(float(self._some_step_above(k / self.composition.steps, null)), self._most(functional))
        if null:
            return Upper(top, top)
        least = max(
            self._some_step_above(t).least - exp(min(k + self._log_null_above(t), 1.0)) for t in (0.0, k / 2, k, 10.0)
        )
        return Upper.between(min(max(least, 0.0), top), top)

    def _most(self, functional: Functional) -> float:
        """What it cannot exceed at k >= 0."""
        return self.most_variation if functional is STICK else 1.0

    def _log_null_above(self, t: float) -> float:
        """ln of a bound on Q's probability that the loss of some single step is above t, also where it underflows."""
        at, logs = np.array([t]), [-inf]
        for step, count in self.composition.parts:
            above = float(step.log_null_tails(at)[0])
            if above == -inf:  # none, or too little for a number
                above = inf if t < step.largest_finite else -inf
            logs.append(above + log(count) + (_ROUNDOFF * abs(above) if isfinite(above) else 0.0))
        return float(np.logaddexp.reduce(logs)) if max(logs) > -inf else -inf
