"""Where a falling function crosses a level, answered from the side on which it has crossed.

A library root finder returns a point near the root, on either side; a promise needs the safe side, so the
bracket's safe end is kept and returned.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log

__all__ = ["crossing", "falling_below"]

_FLOOR = 1e-320  # keeps logarithms finite where a function underflows


def _log_ratio(value: float, level: float) -> float:
    return log(max(value, _FLOOR)) - log(level)


def crossing(
    falling: Callable[[float], float],
    level: float,
    unsafe: float,
    safe: float,
    rtol: float = 1e-13,
    atol: float = 1e-15,
) -> float:
    """Smallest x (within tolerance) with falling(x) <= level; needs falling(unsafe) > level >= falling(safe).

    Secant steps on log falling - log level (Illinois rule), bisection whenever they stall.
    """
    f_unsafe, f_safe = _log_ratio(falling(unsafe), level), _log_ratio(falling(safe), level)
    side = 0
    for step in range(200):
        width = abs(safe - unsafe)
        if width <= atol + rtol * abs(safe):
            break
        middle = 0.5 * (unsafe + safe)
        guess = middle if step % 4 == 3 else (unsafe * f_safe - safe * f_unsafe) / (f_safe - f_unsafe)
        # stay a little inside, and lean towards the far end, so that both ends of the bracket move
        margin = 0.25 * (atol + rtol * abs(safe))
        low, high = min(unsafe, safe) + margin, max(unsafe, safe) - margin
        guess = min(max(guess, low), high)
        value = _log_ratio(falling(guess), level)
        if value > 0:
            unsafe, f_unsafe = guess, value
            f_safe = f_safe / 2 if side == 1 else f_safe
            side = 1
        else:
            safe, f_safe = guess, value
            f_unsafe = f_unsafe / 2 if side == -1 else f_unsafe
            side = -1
        if f_safe == f_unsafe:
            f_safe -= 1e-300
    return safe


def falling_below(
    falling: Callable[[float], float], level: float, start: float, step: float, limit: float = inf
) -> float:
    """Smallest x >= start with falling(x) <= level; brackets by growing steps; inf if `limit` is passed."""
    if falling(start) <= level:
        return start
    unsafe, safe = start, start + step
    while falling(safe) > level:
        if safe > limit:
            return inf
        unsafe, safe, step = safe, safe + 2 * step, 2 * step
    return crossing(falling, level, unsafe, safe)
