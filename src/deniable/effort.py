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
    "limit_effort",
    "share_of",
    "spend",
    "still_affordable",
]

QUESTION = 12_000_000  # exponentials for one question
P = ParamSpec("P")
R = TypeVar("R")
_CALL = 1_000  # exponentials that the overhead of one call is worth


class UnresolvedError(ArithmeticError):
    """A moment or a line that is not worth its cost."""


@dataclass
class _Purse:
    left: int


_PURSE: ContextVar[_Purse | None] = ContextVar("purse", default=None)


@contextmanager
def limit_effort(exponentials: int, anew: bool = False) -> Iterator[None]:
    """At most so many inside; a limit that is open already stays the limit, unless one is set `anew`."""
    if _PURSE.get() is not None and not anew:
        yield
        return
    token = _PURSE.set(_Purse(exponentials))
    try:
        yield
    finally:
        _PURSE.reset(token)


@contextmanager
def share_of(exponentials: int) -> Iterator[None]:
    """At most so many inside, taken from the limit that is open: one hard part does not use up everything."""
    outer = _PURSE.get()
    given = exponentials if outer is None else min(exponentials, outer.left)
    inner = _Purse(given)
    token = _PURSE.set(inner)
    try:
        yield
    finally:
        _PURSE.reset(token)
        if outer is not None:
            outer.left -= given - inner.left


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
