"""Where a falling function crosses a level, answered from the side on which it has crossed.

A library root finder returns a point near the root, on either side; a promise needs the safe side, so the
bracket's safe end is kept and returned.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log

__all__ = ["crossing", "falls_to"]

_FLOOR = 1e-320  # keeps logarithms finite where a function underflows
_FARTHEST = 1e9


def crossing(
    falling: Callable[[float], float],
    level: float,
    unsafe: float,
    safe: float,
    *,
    precision: float = 1e-13,
    close: float = 0.0,
) -> float:
    """Smallest x (within `precision`, relative) with falling(x) <= level, between two points on either side of it.

    Or earlier, any x at which log falling is within `close` of log level. Secant steps on log falling - log level, the
    stale end weighted down (Anderson and Bjorck 1973); bisection where three of them have not halved the bracket.
    """

    def excess(x: float) -> float:
        return log(max(falling(x), _FLOOR)) - log(max(level, _FLOOR))

    f_unsafe, f_safe = excess(unsafe), excess(safe)
    widths = [abs(safe - unsafe)] * 3
    for _ in range(200):
        tolerance = precision * max(abs(safe), 1e-3)
        if abs(safe - unsafe) <= tolerance:
            break
        guess = _secant(unsafe, f_unsafe, safe, f_safe)
        if len(widths) > 3 and abs(safe - unsafe) > 0.5 * widths[-3]:
            guess = 0.5 * (unsafe + safe)
        # keep away from both ends, so that a good guess is followed by one that closes the bracket behind it
        low, high = min(unsafe, safe) + 0.5 * tolerance, max(unsafe, safe) - 0.5 * tolerance
        guess = min(max(guess, low), high)
        value = excess(guess)
        if abs(value) < close:
            return guess
        if value > 0:
            f_safe *= max(1 - value / f_unsafe, 0.5) if value < f_unsafe else 0.5
            unsafe, f_unsafe = guess, value
        else:
            f_unsafe *= max(1 - value / f_safe, 0.5) if value > f_safe else 0.5
            safe, f_safe = guess, value
        widths.append(abs(safe - unsafe))
    return safe


def _secant(unsafe: float, f_unsafe: float, safe: float, f_safe: float) -> float:
    if f_unsafe <= f_safe:
        return 0.5 * (unsafe + safe)
    return (f_unsafe * safe - f_safe * unsafe) / (f_unsafe - f_safe)


def falls_to(
    falling: Callable[[float], float],
    level: float,
    start: tuple[float, float],
    *,
    floor: float = -inf,
    precision: float = 1e-13,
    close: float = 0.0,
) -> float:
    """Smallest x with falling(x) <= level, searched from `start` = (guess, step) by growing steps; inf if none.

    The function is known to be above the level at `floor`.
    """
    guess, step = max(start[0], floor), start[1]
    if falling(guess) > level:
        unsafe, safe = guess, guess + step
        while falling(safe) > level:
            if safe > _FARTHEST:
                return inf
            unsafe, safe, step = safe, safe + 2 * step, 2 * step
    else:
        unsafe, safe = guess - step, guess
        while unsafe > floor and falling(unsafe) <= level:
            if unsafe < -_FARTHEST:
                return -inf
            unsafe, safe, step = unsafe - 2 * step, unsafe, 2 * step
        unsafe = max(unsafe, floor)
    return crossing(falling, level, unsafe, safe, precision=precision, close=close)
