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

    Or earlier, any x at which log falling is within `close` of log level. Secant steps on log falling - log level
    (Illinois rule), bisection whenever they stall.
    """

    def excess(x: float) -> float:
        return log(max(falling(x), _FLOOR)) - log(max(level, _FLOOR))

    f_unsafe, f_safe = excess(unsafe), excess(safe)
    for step in range(200):
        tolerance = precision * max(abs(safe), 1e-3)
        if abs(safe - unsafe) <= tolerance:
            break
        middle = 0.5 * (unsafe + safe)
        flat = f_unsafe - f_safe <= 0 or step % 4 == 3
        guess = middle if flat else (f_unsafe * safe - f_safe * unsafe) / (f_unsafe - f_safe)
        # keep a little inside the bracket, so that a guess next to the root closes it from the other side
        low, high = min(unsafe, safe) + tolerance / 4, max(unsafe, safe) - tolerance / 4
        guess = min(max(guess, low), high)
        value = excess(guess)
        if abs(value) < close:
            return guess
        if value > 0:
            unsafe, f_unsafe, f_safe = guess, value, f_safe / 2
        else:
            safe, f_safe, f_unsafe = guess, value, f_unsafe / 2
    return safe


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
