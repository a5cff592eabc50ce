"""How many of a property's random draws were really checked: a property whose draws are all thrown away proves nothing.

conftest.py counts the draws of every property that end without `assume` having thrown them away, and wants half of
`max_examples`; `@pytest.mark.draws(7)` states another floor, for the few that have fewer cases to draw. A part of a
property that holds under a condition says `if when(condition):`, and the condition must hold in a tenth of the draws.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

MOST_WANTED = 50
LEAST_SHARE = 0.1
_asked: Counter[tuple[str, int]] = Counter()
_held: Counter[tuple[str, int]] = Counter()


def when(condition: bool) -> bool:
    """The condition; the test fails where it held in fewer than a tenth of the draws that came here."""
    frame = sys._getframe(1)
    place = (frame.f_code.co_filename, frame.f_lineno)
    _asked[place] += 1
    _held[place] += bool(condition)
    return condition


@contextmanager
def counted(test: Callable[..., Any], least: int) -> Iterator[None]:
    """Fails unless the property `test` was checked on `least` draws, and its conditions on their share of them."""
    handle, checked = test.hypothesis, 0  # type: ignore[attr-defined]
    inner = handle.inner_test

    @wraps(inner)
    def counting(*arguments: Any, **named: Any) -> Any:
        nonlocal checked
        result = inner(*arguments, **named)
        checked += 1
        return result

    handle.inner_test = counting
    _asked.clear(), _held.clear()
    try:
        yield
    finally:
        handle.inner_test = inner
    assert checked >= least, f"only {checked} draws were checked, at least {least} are wanted"
    rare = {place: _held[place] for place, asked in _asked.items() if _held[place] < LEAST_SHARE * asked}
    assert not rare, f"conditions that held in fewer than a tenth of {checked} draws: {rare}"


def floor(item: pytest.Item, max_examples: int) -> int:
    """The least number of draws: the marker's, or half of those asked for."""
    marker = item.get_closest_marker("draws")
    return int(marker.args[0]) if marker else min(MOST_WANTED, max_examples // 2)
