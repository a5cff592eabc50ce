"""Where a falling function crosses a level, answered from the side on which it has crossed.

A library root finder returns a point near the root, on either side; a promise needs the safe side, so the
bracket's safe end is kept and returned.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log

from deniable.effort import is_spent
from deniable.upper import Upper

__all__ = ["crossing", "falls_to", "surely_above"]

_FLOOR = 1e-320  # keeps logarithms finite where a function underflows
_SLIGHT = 0.1  # of a value's error
_NOTHING = -600.0  # the logarithm of what is no longer above 0: it tells no slope
_FARTHEST = 1e18  # a loss; 10^9 runs with losses of 10^6 end before it
_COARSE = 1e-3  # relative precision of a search whose effort is spent
_MOST_STEPS_BACK = 24
_FIRST_STEP_BACK = 1.2  # times what the slope foretells
_LONGEST = 8.0  # times a step may grow from one point outside the bracket to the next
Point = tuple[float, float]


def crossing(
    falling: Callable[[float], float],
    level: float,
    unsafe: float,
    safe: float,
    *,
    precision: float = 1e-13,
    unit: float | None = None,
) -> float:
    """Smallest x with falling(x) <= level, between two points on either side of it.

    `precision` is relative to x, or to `unit` where that is given.
    """
    excess = _Excess(falling, level)
    ends = (unsafe, excess(unsafe)), (safe, excess(safe)), None
    return _close_bracket(excess, ends, _width(precision, unit), close=0.0)


def falls_to(
    falling: Callable[[float], float],
    level: float,
    start: tuple[float, float],
    *,
    floor: float = -inf,
    within: tuple[float, float] = (-_FARTHEST, _FARTHEST),
    precision: float = 1e-13,
    unit: float | None = None,
    close: float = 0.0,
) -> float:
    """Smallest x with falling(x) <= level, searched from `start` = (guess, step) by growing steps.

    Or earlier, any x at which log falling is within `close` of log level, or below it by much less than its error. The
    function is known to be above the level at `floor`. Where it crosses outside of `within`, the answer is inf or -inf.
    `precision` as for `crossing`.
    """
    excess = _Excess(falling, level)
    guess, step = max(start[0], floor), start[1]
    before, here = None, (guess, excess(guess))
    side = 1.0 if here[1] > 0 else -1.0  # the way to go
    while True:
        if here[0] == within[side > 0]:
            return side * inf
        third, before, here = before, here, _point(excess, min(max(here[0] + side * step, within[0]), within[1]), floor)
        if (here[1] > 0) != (side > 0):
            unsafe, safe = (before, here) if side > 0 else (here, before)
            return _close_bracket(excess, (unsafe, safe, third), _width(precision, unit), close)
        step = min(max(_beyond(before, here), step / 4), _LONGEST * step)


def surely_above(
    falling: Callable[[float], Upper], level: float, safe: float, floor: float, *, precision: float, slope: float
) -> float:
    """A point near `safe`, not above it, at which the function surely has not yet fallen to the level.

    Surely: its value less its error is still above the level. Together with `safe`, where its value is not, this is a
    proved interval for the crossing. Steps back from `safe` grow until that holds; the floor where it never does.
    `slope` is about how steeply the function falls there, 0 where nobody knows: the first step follows from it.
    """
    here, step = falling(safe), (_COARSE if is_spent() else precision) * max(abs(safe), 1e-3)
    step = max(step, _FIRST_STEP_BACK * (level - here.least) / slope) if slope > 0 else step
    for _ in range(_MOST_STEPS_BACK):
        point = safe - step
        if point <= floor:
            return floor
        value = falling(point)
        if value.least > level:
            return point
        rise = value - here
        step *= min(max(2 * (level - value.least) / rise, 8.0), 1e3) if rise > 0 else 64.0
    return floor


def _point(excess: Callable[[float], float], x: float, floor: float) -> Point:
    return (x, excess(x)) if x > floor else (floor, inf)


def _beyond(before: Point, here: Point) -> float:
    """How far past `here` the line through both points promises the crossing, and a little more."""
    fall = abs(before[1] - here[1])
    return 1.2 * abs(here[1] * (here[0] - before[0])) / fall if 0 < fall < inf else inf


class _Excess:
    """log falling - log level, positive exactly where falling is above the level."""

    def __init__(self, falling: Callable[[float], float], level: float) -> None:
        self.falling, self.level, self.log_level = falling, level, log(max(level, _FLOOR))
        self.doubt = 0.0
        """Relative error of the latest value."""

    def __call__(self, x: float) -> float:
        value = self.falling(x)
        self.doubt = value.error / value if isinstance(value, Upper) and value > 0 else 0.0
        apart = log(max(value, _FLOOR)) - self.log_level
        return max(apart, _FLOOR) if value > self.level else min(apart, 0.0)


def _width(precision: float, unit: float | None) -> Callable[[float], float]:
    """How narrow a bracket around x is to become: less so once the question's effort is spent."""

    def width(x: float) -> float:
        return (max(precision, _COARSE) if is_spent() else precision) * (max(abs(x), 1e-3) if unit is None else unit)

    return width


def _close_bracket(
    excess: _Excess,
    points: tuple[Point, Point, Point | None],
    width: Callable[[float], float],
    close: float,
) -> float:
    """The safe end, after the bracket has closed: by inverse interpolation, by halves where that does not help."""
    (unsafe, safe, third), helped = points, True
    for _ in range(200):
        tolerance = width(safe[0])
        if abs(safe[0] - unsafe[0]) <= tolerance:
            break
        guess = _interpolate(unsafe, safe, third) if helped else 0.5 * (unsafe[0] + safe[0])
        # keep away from both ends, so that a good guess is followed by one that closes the bracket behind it
        low, high = min(unsafe[0], safe[0]) + 0.5 * tolerance, max(unsafe[0], safe[0]) - 0.5 * tolerance
        guess = min(max(guess, low), high)
        value = excess(guess)
        if abs(value) < close or (close and -_SLIGHT * excess.doubt < value <= 0):
            return guess
        helped = not helped or abs(value) < 0.5 * min(abs(unsafe[1]), abs(safe[1]))
        if value > 0:
            third, unsafe = unsafe, (guess, value)
        else:
            third, safe = safe, (guess, value)
    return safe[0]


def _interpolate(unsafe: Point, safe: Point, third: Point | None) -> float:
    """Where the parabola x(excess) through three points, or the line through two, crosses 0."""
    (a, fa), (b, fb) = unsafe, safe
    if not inf > fa > fb > _NOTHING:
        return 0.5 * (a + b)
    secant = (fa * b - fb * a) / (fa - fb)
    if third is None or third[1] in (fa, fb, inf):
        return secant
    c, fc = third
    bend = ((c - a) / (fc - fa) - (b - a) / (fb - fa)) / (fc - fb)
    curved = secant + bend * fa * fb
    return curved if min(a, b) < curved < max(a, b) else secant
