"""A composition without closed form: the better of two upper bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from deniable.loss.contour import Contour
from deniable.loss.grid import Grid
from deniable.loss.pair import Pair
from deniable.loss.saddle import Composition
from deniable.loss.values import Upper

__all__ = ["Blend"]

_GOOD = 1e-7  # relative error that needs no second opinion


@dataclass
class Blend(Pair):
    """Contour inversion where it is accurate, else the smaller of its upper bound and a grid's."""

    composition: Composition

    @cached_property
    def _contour(self) -> Contour | None:
        smooth = any(step.smooth for step, _ in self.composition.parts)
        return Contour(self.composition) if smooth else None

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.composition)

    def _best(self, functional: Callable[[Pair], Upper]) -> Upper:
        if self._contour is None:
            return functional(self._grid)
        best = functional(self._contour)
        if best.error <= _GOOD * best or best.error < 1e-300:
            return best
        return min(best, functional(self._grid), key=float)

    def near(self, functional: Callable[[float], Upper], level: float) -> tuple[float, float]:
        planner = self._contour or Contour(self.composition)
        return planner.near(functional, level)

    def hockey_stick(self, k: float) -> Upper:
        return self._best(lambda pair: pair.hockey_stick(k))

    def tail(self, t: float) -> Upper:
        return self._best(lambda pair: pair.tail(t))

    def null_tail(self, t: float) -> Upper:
        return self._best(lambda pair: pair.null_tail(t))

    def reversed(self) -> Blend:
        return self.mirror

    @cached_property
    def mirror(self) -> Blend:
        mirrored = Blend(self.composition.reversed())
        mirrored.__dict__["mirror"] = self
        return mirrored

    @property
    def method(self) -> str:  # type: ignore[override]
        return "grid" if "_grid" in self.__dict__ or self._contour is None else "contour inversion"

    @property
    def largest(self) -> float:
        return self.composition.largest

    @property
    def escape(self) -> float:
        return self.composition.escape

    def ceiling(self, k: float) -> float:
        return self.composition.ceiling(k)

    @property
    def scale(self) -> float:
        return self.composition.scale
