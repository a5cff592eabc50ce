"""What an engine is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol, TypeVar

__all__ = ["Engine", "Finished", "Work"]

T = TypeVar("T")
Work = Callable[[int], T]
"""From a block's number to its result; importable where it runs, with picklable arguments."""
Finished = Generator[tuple[int, T], None, None]
"""(block number, result) as the blocks finish."""


class Engine(Protocol):
    """Submit blocks, receive their results."""

    def run(self, work: Work[T], blocks: Iterable[int]) -> Finished[T]:
        """(number, ``work(number)``) of every block, each once, in the order in which they finish.

        Numbers are drawn from `blocks` only when there is room for them, so that memory does not grow with their
        number. An error in a block is raised here; closing the generator ends what is under way.
        """
        ...
