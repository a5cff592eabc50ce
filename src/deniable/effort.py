"""A limit on what one question may cost, so that every question ends.

Effort is counted in exponentials (about 25 ns each), not in seconds: an answer does not depend on how busy the machine
is. Whoever answers a question opens a limit; the costly sums deep below tell what they `spend`; and before a new line
is drawn, `still_affordable` raises `UnresolvedError` where nothing is left. The question is then answered by a cheaper,
looser bracket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = [
    "QUESTION",
    "UnresolvedError",
    "ends_in_time",
    "is_spent",
    "left_effort",
    "limit_effort",
    "share_of",
    "spend",
    "still_affordable",
    "use_reserve",
]

QUESTION = 40_000_000  # exponentials for one question
P = ParamSpec("P")
R = TypeVar("R")
_CALL = 1_000  # exponentials that the overhead of one call is worth


class UnresolvedError(ArithmeticError):
    """A moment or a line that is not worth its cost."""


@dataclass
class _Purse:
    left: int
    reserve: int = 0
    """For the cheaper bracket, once nothing is left."""


_PURSE: ContextVar[_Purse | None] = ContextVar("purse", default=None)


@contextmanager
def _open_purse(purse: _Purse) -> Iterator[None]:
    """All that is spent inside is taken from this one."""
    token = _PURSE.set(purse)
    try:
        yield
    finally:
        _PURSE.reset(token)


@contextmanager
def limit_effort(exponentials: int) -> Iterator[None]:
    """At most so many inside, and half as many from the reserve; a limit that is open already stays the limit."""
    if _PURSE.get() is not None:
        yield
        return
    with _open_purse(_Purse(exponentials, exponentials // 2)):
        yield


@contextmanager
def share_of(exponentials: int) -> Iterator[None]:
    """At most so many inside, taken from the limit that is open: one hard part does not use up everything."""
    outer = _PURSE.get()
    given = exponentials if outer is None else min(exponentials, outer.left)
    kept = exponentials // 2 if outer is None else min(exponentials // 2, outer.reserve)
    inner = _Purse(given, kept)
    try:
        with _open_purse(inner):
            yield
    finally:
        if outer is not None:
            outer.left -= given - inner.left
            outer.reserve -= kept - inner.reserve


@contextmanager
def use_reserve() -> Iterator[None]:
    """What is spent inside is taken from the reserve of the limit that is open."""
    outer = _PURSE.get()
    inner = _Purse(QUESTION if outer is None else outer.reserve)
    try:
        with _open_purse(inner):
            yield
    finally:
        if outer is not None:
            outer.reserve = inner.left


def left_effort() -> int:
    """How much may still be spent: one question's worth where there is no limit."""
    purse = _PURSE.get()
    return QUESTION if purse is None else purse.left


def spend(exponentials: int) -> None:
    """Called by costly sums."""
    purse = _PURSE.get()
    if purse is not None:
        purse.left -= exponentials + _CALL


def is_spent() -> bool:
    """Whether nothing is left to spend."""
    purse = _PURSE.get()
    return purse is not None and purse.left < 0


def still_affordable() -> None:
    """Raises `UnresolvedError` where nothing is left to spend."""
    if is_spent():
        raise UnresolvedError("the question has used up its effort")


def ends_in_time(question: Callable[P, R]) -> Callable[P, R]:
    """A function that answers one question, with the limit for one question."""

    @wraps(question)
    def limited_question(*args: P.args, **kwargs: P.kwargs) -> R:
        with limit_effort(QUESTION):
            return question(*args, **kwargs)

    return limited_question
