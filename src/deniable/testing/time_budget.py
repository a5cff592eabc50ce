"""How long a test may take."""

from __future__ import annotations

import re

from deniable.checks import positive, refuse

_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def read_seconds(budget: str | float) -> float:
    """Seconds of a budget such as ``"30 s"``, ``"5 min"``, ``"1 h"``, or a number of seconds.

    Examples:
        >>> read_seconds("1.5 min")
        90.0
    """
    if not isinstance(budget, str):
        return positive("budget", budget)
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(s|min|h|)\s*", budget)
    if found is None:
        raise refuse("budget", budget, "a time such as '30 s', '5 min' or '1 h'")
    return positive("budget", float(found[1]) * _UNITS[found[2]])


def spell_seconds(seconds: float) -> str:
    """A time as people write it."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            amount = seconds / size
            return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
