"""What every way of composing steps knows from the composition alone."""

from __future__ import annotations

from deniable.loss.pair import Pair
from deniable.loss.saddle import Composition

__all__ = ["ComposedPair"]


class ComposedPair(Pair):
    """The pair of a composition; its divergence and tails are the subclass's business."""

    composition: Composition

    @property
    def largest(self) -> float:
        return self.composition.largest

    @property
    def largest_finite(self) -> float:
        return self.composition.largest_finite

    @property
    def escape(self) -> float:
        return self.composition.escape

    @property
    def scale(self) -> float:
        return self.composition.scale
