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
_FINEST = 2**21


@dataclass
class Blend(Pair):
    """Contour inversion where it is accurate, else a grid, refined while that pays; always the smaller upper bound."""

    composition: Composition

    @cached_property
    def _contour(self) -> Contour | None:
        smooth = any(step.smooth for step, _ in self.composition.parts)
        return Contour(self.composition) if smooth else None

    @cached_property
    def _grids(self) -> dict[int, Grid]:
        return {}

    def _grid(self, points: int) -> Grid:
        if points not in self._grids:
            self._grids[points] = Grid(self.composition, points)
        return self._grids[points]

    def _best(self, functional: Callable[[Pair], Upper]) -> Upper:
        best = functional(self._contour) if self._contour else Upper(1.0, 1.0)
        points = 2**17
        while best.error > _GOOD * best and best.error > 1e-15 * points / 2**17 and points <= _FINEST:
            best = min(best, functional(self._grid(points)), key=lambda bound: (float(bound), bound.error))
            points *= 4
        return best

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
        return "grid" if self._grids or self._contour is None else "contour inversion"

    @property
    def largest(self) -> float:
        return self.composition.largest

    @property
    def escape(self) -> float:
        return self.composition.escape

    @property
    def scale(self) -> float:
        return self.composition.scale
