"""Our time against a peer's, both taken in this run: a ratio travels between machines, a time does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from rich.table import Table

Result = TypeVar("Result")

ROUNDS = 5
BUDGET = 3.0
"""Seconds after which a slow contender's rounds end; its first round always counts."""


@dataclass(frozen=True)
class Ratio:
    """One line of the table; an error is the distance from the truth, None where nothing is computed."""

    title: str
    peer: str
    our_seconds: float
    peer_seconds: float
    our_error: float | None = None
    peer_error: float | None = None

    @property
    def ratio(self) -> float:
        """The peer's time as a multiple of ours: above 1 we are faster."""
        return self.peer_seconds / self.our_seconds


def fastest(call: Callable[[], Result]) -> tuple[float, Result]:
    """The shortest of up to ROUNDS timings, the one least disturbed by the machine, and the call's result."""
    times: list[float] = []
    while not times or (len(times) < ROUNDS and sum(times) < BUDGET):
        start = perf_counter()
        result = call()
        times.append(perf_counter() - start)
    return min(times), result


def table(ratios: Iterable[Ratio]) -> Table:
    """What `make bench` prints last."""
    lines = Table(box=None, pad_edge=False)
    for heading in ("what", "peer"):
        lines.add_column(heading)
    for heading in ("our time", "peer's time", "peer / ours", "our error", "peer's error"):
        lines.add_column(heading, justify="right")
    for one in ratios:
        times = (duration(one.our_seconds), duration(one.peer_seconds), f"{one.ratio:.1f}")
        errors = ("-" if error is None else f"{error:.1e}" for error in (one.our_error, one.peer_error))
        lines.add_row(one.title, one.peer, *times, *errors)
    return lines


def duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
