"""Where on the real axis to stand when inverting a cumulant function, and how long its losses' period must be.

Saddles are sought on a fixed ladder of points, so that the one that is found depends on the question alone, and
questions that differ a little share it.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log, sqrt

import numpy as np

from deniable.effort import UnresolvedError, still_affordable
from deniable.loss.arrays import Floats
from deniable.loss.compose.cumulants import TINY, Composition, Saddle
from deniable.loss.functionals import Functional
from deniable.search import falls_to

Strip = tuple[float, float]
"""Part of the real axis between two neighbouring poles, or beyond the outermost one."""
NEAR_WIDTHS = 2.0  # from the integrand's own saddle within which a line serves: a few times the round-off
_RUNG = 0.25  # of the logarithm of a point's distance from the pole, from one rung of the ladder to the next
_RUNGS = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # at which the saddle of a level is first sought
_FINEST_RUNG = 1e-3  # where rungs are halved because K bends fast
_FARTHEST_SCALES = 1e4  # from the pole, in units of 1 / (spread of the loss)
_INSIDE = 0.95  # of the distance from the pole up to which K can be had
_NEAREST_NATS = 30.0  # e^-30 from the pole


def find_saddle(law: Composition, functional: Functional, k: float, strip: Strip) -> Saddle:
    """Nearly minimise the convex log-integrand on the real axis: Newton on the log of the distance to the pole.

    Where K cannot be had as far out as the saddle, the farthest point is given instead.
    """
    low, high = strip
    if strip == (0.0, 1.0):
        return law.saddle(0.5)
    sign, pole = (1.0, low) if high == inf else (-1.0, high)
    origin, rung, place = log(1.4 / law.scale), _RUNG, 0
    near: float = -inf  # rungs that lie on either side of the saddle
    far: float = inf
    while rung > _FINEST_RUNG and -_NEAREST_NATS < origin + rung * place < log(_FARTHEST_SCALES / law.scale):
        still_affordable()
        here = law.saddle(pole + sign * exp(origin + rung * place))
        offset = sign * here.offset(functional, k)
        if abs(offset) < NEAR_WIDTHS:
            return here
        near, far = (near, place) if offset > 0 or not isfinite(offset) else (place, far)  # K cannot be had so far out
        place -= _jump(offset, here, functional, pole, rung)
        if not near < place < far:  # K may bend much faster than its second derivative foretells
            if far - near == 1:
                near, far, rung = 2 * near, 2 * far, rung / 2
            place = int(far - round(1 / rung) if near == -inf else (near + far) // 2)
    if near == -inf:
        raise UnresolvedError(f"no saddle for {k:g} within reach")
    # a little inside, so that Chernoff's bound has points on both sides
    return law.saddle(pole + sign * _INSIDE * exp(origin + rung * near))


def _jump(offset: float, here: Saddle, functional: Functional, pole: float, rung: float) -> int:
    """Rungs towards the pole that Newton's method foretells, one at least; at most a factor e of the distance."""
    if not isfinite(offset):
        return round(1 / rung)
    move = offset / sqrt(here.bend + functional.bend(here.c)) / abs(here.c - pole)
    least = 0.5 if abs(offset) > 5 else 0.0  # where K is exploding, Newton's own steps are far too short
    rungs = max(1, round(min(max(abs(move), least), 1.0) / rung))
    return rungs if move > 0 else -rungs


def surround(law: Composition, saddle: Saddle, strip: Strip) -> tuple[Saddle, tuple[Floats, Floats]]:
    """The saddle and its rivals; one nearer to its pole where K cannot be had on the far side."""
    rivals = find_rivals(law, saddle, strip)
    low, high = strip
    least, most = rivals[0].min(initial=inf), rivals[0].max(initial=-inf)
    if (high == inf and most < saddle.c) or (low == -inf and least > saddle.c):
        pole = low if high == inf else high
        saddle = law.saddle(pole + _INSIDE * (saddle.c - pole))
        rivals = find_rivals(law, saddle, strip)
    return saddle, rivals


def find_rivals(law: Composition, saddle: Saddle, strip: Strip) -> tuple[Floats, Floats]:
    """Real points on both sides of c inside the strip, poles included, with K there, for Chernoff's bounds."""
    width = min(sqrt(2 * TINY / saddle.bend), 20 / law.scale)
    inside = (0.99 / _INSIDE - 1) * min(abs(saddle.c - end) for end in (*strip, inf))  # still where K can be had
    near_by = inside, 0.1 / sqrt(saddle.bend), 0.1 / law.scale, 0.5 / law.scale, 0.25 * width, width
    others: list[float] = []
    for sign, end in ((-1.0, strip[0]), (1.0, strip[1])):
        room = abs(end - saddle.c)
        offsets = near_by if room == inf else near_by[-2:]
        others += [saddle.c + sign * offset for offset in offsets if offset < room]
        others += [end] if room < inf else []
    kept = [rival for rival in law.saddles(sorted(set(others) - {saddle.c})) if rival.value < inf]
    return np.array([rival.c for rival in kept]), np.array([law.height(rival) for rival in kept])


def find_period(law: Composition, k: float, saddle: Saddle, rivals: tuple[Floats, Floats], tiny: float) -> float:
    """A length of losses around k beyond which, seen from this saddle, less than e^-tiny is left (Chernoff)."""
    others, cumulants = rivals
    excess = (cumulants - saddle.value - (others - saddle.c) * k + tiny) / np.abs(others - saddle.c)
    sides = excess[others > saddle.c], excess[others < saddle.c]
    return 1.2 * max(float(side.min()) if side.size else 1e3 * law.scale for side in sides)


def _crossing_rungs(law: Composition, functional: Functional, level: float, pole: float) -> float | None:
    """Where between two of a few rungs the approximation falls to the level, all of them looked at together."""
    rungs = law.saddles([pole + exp(rung) * 1.4 / law.scale for rung in _RUNGS])
    least = max(level, 1e-300)
    heights = [log(max(rung.estimate(functional), 1e-300) / least) if rung.value < inf else -inf for rung in rungs]
    for place in range(1, len(rungs)):
        above, below = heights[place - 1], heights[place]
        if above > 0 >= below > -inf:
            return _RUNGS[place - 1] + (_RUNGS[place] - _RUNGS[place - 1]) * above / (above - below)
    return None


def find_level_saddle(law: Composition, functional: Functional, level: float) -> Saddle:
    """The saddle of the k at which a functional falls to about the small `level`.

    Every saddle c belongs to one k, and there the saddle-point approximation tells the functional's value.
    """
    pole = max(functional.poles)

    def approximation(log_distance: float) -> float:
        here = law.saddle(pole + exp(log_distance))
        return here.estimate(functional) if here.value < inf else 0.0

    start = log(1.4 / law.scale)
    if (between := _crossing_rungs(law, functional, level, pole)) is not None:
        return law.saddle(pole + exp(start + between))
    within = start - 11, log(_FARTHEST_SCALES / law.scale)
    log_distance = falls_to(approximation, level, (start, 0.5), floor=start - 10, within=within, close=0.5)
    found = law.saddle(pole + exp(min(log_distance, within[1])))
    if inf in (log_distance, found.value):
        raise UnresolvedError(f"no saddle for the level {level:g} within reach")
    return found
