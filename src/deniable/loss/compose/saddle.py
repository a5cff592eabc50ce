"""Where on the real axis to stand when inverting a cumulant function, and how long its losses' period must be."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import copysign, exp, inf, log, sqrt
from operator import attrgetter

import numpy as np

from deniable.effort import UnresolvedError, still_affordable
from deniable.loss.arrays import Floats
from deniable.loss.compose.cumulants import TINY, Composition, Saddle
from deniable.loss.functionals import Functional
from deniable.search import falls_to

__all__ = ["Region", "find_level_saddle", "find_period", "find_rivals", "find_saddle", "surround"]

Region = tuple[float, float]
"""Part of the real axis between two neighbouring poles, or beyond the outermost one."""
_FARTHEST = 1e4  # saddles are not sought farther out than this, in units of 1 / (spread of the loss)


def find_saddle(law: Composition, k: float, functional: Functional, region: Region) -> Saddle:
    """Nearly minimise the convex log-integrand on the real axis: Newton on the log of the distance to the pole.

    Where K cannot be had as far out as the saddle, the farthest point is given instead.
    """
    low, high = region
    if low == 0.0 and high == 1.0:
        return law.saddle(0.5)
    sign, pole = (1.0, low) if high == inf else (-1.0, high)
    limit = law.limits.get(region)
    if limit and sign * limit.offset(k, functional) < 0:
        return limit
    start = _nearest(law, k, functional, region) or pole + sign * 1.4 / law.scale
    position, near, far = log(abs(start - pole)), -inf, inf
    for _ in range(60):
        still_affordable()
        here = law.saddle(pole + sign * exp(position))
        offset = here.offset(k, functional)
        if abs(offset) < 1.0:
            return here
        near, far = (near, position) if sign * offset > 0 else (position, far)
        move = -sign * offset / sqrt(here.bend + functional.bend(here.c)) / exp(position)
        least = 0.5 if abs(offset) > 5 else 0.0  # where K is exploding, Newton's own steps are far too short
        move = copysign(min(max(abs(move), least), 1.0), move)
        position += move
        if not near < position < far:  # K may bend much faster than its second derivative foretells
            position = far - 1.0 if near == -inf else 0.5 * (near + far)
        if far - near < 1e-3 or not -30 < position < log(_FARTHEST / law.scale):
            break
    if near == -inf:
        raise UnresolvedError(f"no saddle for {k:g} within reach")
    # a little inside, so that Chernoff's bound has points on both sides
    law.limits[region] = law.saddle(pole + sign * 0.95 * exp(near))
    return law.limits[region]


def _nearest(law: Composition, k: float, functional: Functional, region: Region) -> float | None:
    """Of the points known inside the region, the one whose own k is nearest: the integrand is convex."""
    first = bisect_right(law.known, region[0], key=attrgetter("c"))
    last = bisect_left(law.known, region[1], key=attrgetter("c"))
    place = bisect_left(law.known, k, first, last, key=lambda saddle: saddle.target(functional))
    around = law.known[max(first, place - 1) : min(last, place + 1)]
    return min(around, key=lambda saddle: abs(saddle.offset(k, functional))).c if around else None


def surround(law: Composition, saddle: Saddle, region: Region) -> tuple[Saddle, tuple[Floats, Floats]]:
    """The saddle and its rivals; one nearer to its pole where K cannot be had on the far side."""
    rivals = find_rivals(law, saddle, region)
    low, high = region
    least, most = rivals[0].min(initial=inf), rivals[0].max(initial=-inf)
    if (high == inf and most < saddle.c) or (low == -inf and least > saddle.c):
        pole = low if high == inf else high
        saddle = law.saddle(pole + 0.95 * (saddle.c - pole))
        rivals = find_rivals(law, saddle, region)
    return saddle, rivals


def find_rivals(law: Composition, saddle: Saddle, region: Region) -> tuple[Floats, Floats]:
    """Real points on both sides of c inside the region, poles included, with K there."""
    width = min(sqrt(2 * TINY / saddle.bend), 20 / law.scale)
    near_by = 0.1 / sqrt(saddle.bend), 0.1 / law.scale, 0.5 / law.scale, 0.25 * width, width
    others: list[float] = []
    for sign, end in ((-1.0, region[0]), (1.0, region[1])):
        room = abs(end - saddle.c)
        offsets = near_by if room == inf else near_by[-2:]
        others += [saddle.c + sign * offset for offset in offsets if offset < room]
        others += [end] if room < inf else []
    law.saddles(others)
    first = bisect_left(law.known, region[0], key=attrgetter("c"))
    last = bisect_right(law.known, region[1], key=attrgetter("c"))
    kept = [rival for rival in law.known[first:last] if rival.c != saddle.c]
    return np.array([rival.c for rival in kept]), np.array([law.height(rival) for rival in kept])


def find_period(law: Composition, k: float, saddle: Saddle, rivals: tuple[Floats, Floats], tiny: float) -> float:
    """A length of losses around k beyond which, seen from this saddle, less than e^-tiny is left (Chernoff)."""
    others, cumulants = rivals
    excess = (cumulants - saddle.value - (others - saddle.c) * k + tiny) / np.abs(others - saddle.c)
    sides = excess[others > saddle.c], excess[others < saddle.c]
    return 1.2 * max(float(side.min()) if side.size else 1e3 * law.scale for side in sides)


def find_level_saddle(law: Composition, level: float, functional: Functional) -> Saddle:
    """The saddle of the k at which a functional falls to about the small `level`.

    Every saddle c belongs to one k, and there the saddle-point approximation tells the functional's value.
    """
    pole = max(functional.poles)

    def approximation(log_distance: float) -> float:
        here = law.saddle(pole + exp(log_distance))
        return here.estimate(functional) if here.value < inf else 0.0

    start = log(1.4 / law.scale)
    within = start - 11, log(_FARTHEST / law.scale)
    log_distance = falls_to(approximation, level, (start, 0.5), floor=start - 10, within=within, close=0.5)
    found = law.saddle(pole + exp(min(log_distance, within[1])))
    if inf in (log_distance, found.value):
        raise UnresolvedError(f"no saddle for the level {level:g} within reach")
    return found
