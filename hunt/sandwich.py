"""What the truth about a release may be that is known by brackets only: between one that tells less and one that
tells more.

Random allocation lies between two laws in convex order. A bare Renyi guarantee is kept by Gaussian noise and by a
randomized answer, and a conversion bounds what it allows; of the best of several runs a lower end is known. Tails
follow from the divergence, which is convex in e^k.
"""

from __future__ import annotations

from functools import cached_property
from math import exp, expm1, inf

import numpy as np

import deniable as dn
from hunt.composed import Bracket, Release
from hunt.laws import Description
from hunt.releases import renyi_ceiling, renyi_curve
from hunt.truth import BothDirections, Truth

__all__ = ["Sandwich", "truth_of"]

_LEAST_CEILING = 1e-30
"""Orders end somewhere: below it a conversion that knows fewer of them may say more."""
_WIDTHS_DEVIATIONS = (0.01, 0.03, 0.1, 0.3, 1.0)
_GUARANTEES = (dn.ConcentratedDP, dn.RenyiDP)


def truth_of(mechanism: dn.Mechanism, adjacency: str) -> Truth | Sandwich:
    """By every route that applies."""
    return Sandwich(mechanism, adjacency) if any(map(_is_bracketed, _parts(mechanism))) else Truth(mechanism, adjacency)


def _parts(mechanism: dn.Mechanism) -> list[dn.Mechanism]:
    return [part for part, runs in mechanism.parts if runs] if isinstance(mechanism, dn.Composed) else [mechanism]


def _is_bracketed(part: dn.Mechanism) -> bool:
    if isinstance(part, dn.Sampled):
        return isinstance(part.sampling, dn.RandomAllocation)
    while isinstance(part, dn.Subsampled):
        part = part.mechanism
    return isinstance(part, (*_GUARANTEES, dn.RepeatAndSelect))


class Sandwich(BothDirections):
    """As `Truth`, from releases that tell less and, where there is one, a release that tells more."""

    def __init__(self, mechanism: dn.Mechanism, adjacency: str, points: int = 2**14) -> None:
        self.mechanism, self.adjacency, self.points = mechanism, adjacency, points
        allocated = all(not _is_bracketed(part) or isinstance(part, dn.Sampled) for part in _parts(mechanism))
        sides = ("gaussian below",) if allocated else ("gaussian below", "answer below")
        self.less = [Truth(mechanism, adjacency, side, points) for side in sides]  # type: ignore[arg-type]
        self.more = Truth(mechanism, adjacency, "above", points) if allocated else None

    def finer(self) -> Sandwich:
        return Sandwich(self.mechanism, self.adjacency, 16 * self.points)

    @property
    def steps(self) -> list[Description]:
        return self.less[0].steps

    @property
    def releases(self) -> tuple[Release, Release]:
        return self.less[0].releases

    @property
    def nulls(self) -> tuple[Release, Release]:
        return self.less[0].nulls

    @property
    def lopsided(self) -> bool:
        return any(truth.lopsided for truth in self.less)

    @cached_property
    def _spread(self) -> float:
        """Of the loss; 1 where it has none."""
        first = self.releases[0]
        variance = float(first.cumulant(0.0)[2]) if self.steps and first.parts and first.finite else 0.0
        return variance**0.5 or 1.0

    @cached_property
    def _curve(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Orders and Renyi divergences where the release is one such guarantee, some times."""
        parts = self.mechanism.parts if isinstance(self.mechanism, dn.Composed) else ((self.mechanism, 1),)
        told = [(part, runs) for part, runs in parts if runs]
        if len(told) != 1 or not isinstance(told[0][0], _GUARANTEES):
            return None
        orders, epsilons = renyi_curve(told[0][0])
        return orders, told[0][1] * epsilons

    def stick(self, k: float, backward: bool = False) -> Bracket:
        low, by = max((found.low, found.by) for found in (truth.stick(k, backward) for truth in self.less))
        high = self.more.stick(k, backward).high if self.more else 1.0
        if self._curve is not None and k >= 0:
            high = min(high, max(renyi_ceiling(*self._curve, k) * (1 + 1e-9), _LEAST_CEILING))
        return Bracket(low, max(low, high), f"{by}, less telling")

    def _gained(self, t: float, backward: bool) -> tuple[float, float]:
        """e^t Q(L > t) from the divergence around t."""
        here, low, high = self.stick(t, backward), 0.0, inf
        for width in np.array(_WIDTHS_DEVIATIONS) * self._spread:
            before, after = self.stick(t - width, backward), self.stick(t + width, backward)
            low = max(low, (here.low - after.high) / expm1(min(width, 700.0)))
            high = min(high, (before.high - here.low) / -expm1(-width))
        return low, high

    def tail(self, t: float, backward: bool = False) -> Bracket:
        here, (low, high) = self.stick(t, backward), self._gained(t, backward)
        return Bracket(min(1.0, here.low + low), min(1.0, here.high + high), here.by)

    def null_tail(self, t: float, backward: bool = False) -> Bracket:
        low, high = self._gained(t, backward)
        fall = exp(min(-t, 700.0))
        return Bracket(min(1.0, fall * low), min(1.0, fall * high), "slope of the divergence")

    @property
    def largest(self) -> Bracket:
        return Bracket(max(truth.largest.low for truth in self.less), inf, "less telling")
