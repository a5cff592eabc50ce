"""What an engine is."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Work = Callable[[int], T]
"""From a block's number to its result; importable where it runs, with picklable arguments."""
Finished = Generator[tuple[int, T], None, None]
"""(block number, result) as the blocks finish."""


class EngineError(RuntimeError):
    """The engine cannot go on; what is kept of the campaign is unharmed."""


class Engine(Protocol):
    """Submit blocks, receive their results."""

    def run(self, work: Work[T], blocks: Iterable[int]) -> Finished[T]:
        """(number, ``work(number)``) of every block, each once, in the order in which they finish.

        Numbers are drawn from `blocks` only when there is room for them, so that memory does not grow with their
        number. An error in a block is raised here; closing the generator ends what is under way.
        """
        ...

    def nodes(self) -> dict[str, float]:
        """CPUs that blocks are played on, by machine, as far as that is known: for people."""
        ...


def pack(work: Work[Any]) -> bytes:
    """The work as it is sent to other processes, once for all their blocks."""
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            "functions (a trainer, a model, a loss) must be importable for worker processes: define them at the top "
            f"level of a module, or use processes=1 ({error})"
        ) from error
