"""A campaign is blocks that depend on its settings and their number alone: play those that a store lacks, keep each as
it finishes, and end everywhere once the answer is certain."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from deniable.engines.beside import Shared
from deniable.engines.players import Playing
from deniable.engines.protocol import Engine, Work
from deniable.store import SharedStore, StoreError
from deniable.store.records import Arrays

T = TypeVar("T")
Results = Generator[tuple[int, T | None], None, None]
Certain = Callable[[T], bool]
"""Hears every block once, in the order of their numbers; True once the answer is certain after this one."""


@dataclass(frozen=True)
class Campaign(Generic[T]):
    """All that its blocks depend on."""

    settings: Mapping[str, Any]
    """Everything that decides the blocks' bytes, as JSON values."""
    blocks: int
    """Its blocks have the numbers from `first` on that are below this one."""
    kind: type[T]
    """Of a block's result: a dataclass of arrays."""
    work: Work[T]
    first: int = 0
    """Blocks with smaller numbers are of another kind, and depend on the same settings."""

    @property
    def numbers(self) -> range:
        """Of its blocks."""
        return range(self.first, self.blocks)


class Keeper(Protocol):
    """What keeps finished blocks: a `Store`."""

    def finished_blocks(self) -> list[int]:
        """Their numbers, in ascending order."""

    def __contains__(self, number: int) -> bool:
        """Whether one is finished."""

    def load(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of one."""

    def save(self, number: int, arrays: Mapping[str, NDArray[Any]], at_once: bool) -> None:
        """Keep one more; if not `at_once`, it need not be on the disk before the next."""


def play_missing(
    campaign: Campaign[T],
    engine: Engine,
    keeper: Keeper | None = None,
    *,
    tell: Callable[[int], None] | None = None,
    certain: Certain[T] | None = None,
) -> list[T]:
    """The results of all blocks in order, or of the first ones, up to the one after which the answer is certain.

    Guarantee: the same on every engine and however often it was interrupted. `certain` hears the finished blocks in
    the order of their numbers, and those behind the one that ends the campaign are left out. `tell` hears how many
    blocks are finished, first of those that were kept already. Whatever ends this early ends the workers. With a
    keeper, results are read again at the end, so that memory does not grow while the blocks are played.
    """
    finished = _Finished(campaign, keeper)
    watch = _Watch(finished, campaign.numbers, certain)
    hear = tell or (lambda done: None)
    hear(finished.count)
    if not watch.is_over():
        missing = (number for number in campaign.numbers if number not in finished)
        running = _results(campaign.work, engine, keeper, missing)
        with closing(running), closing(_playing(keeper, campaign, engine)) as told:
            for number, result in running:
                finished.add(number, result)
                told.add(result is not None)
                hear(finished.count)
                if watch.is_over():
                    break
    return [finished.load(number) for number in watch.needed]


def _results(work: Work[T], engine: Engine, keeper: Keeper | None, missing: Iterable[int]) -> Results[T]:
    """(number, result) as blocks finish; without the result where another process has kept it."""
    if isinstance(engine, Shared) and isinstance(keeper, SharedStore):
        yield from engine.run_in(keeper, work, missing)
    else:
        yield from engine.run(work, missing)


def _playing(keeper: Keeper | None, campaign: Campaign[T], engine: Engine) -> Playing:
    """Tells the keeper's directory, if it has one, who plays and how fast."""
    return Playing(getattr(keeper, "directory", None), campaign.blocks, engine.nodes())


class _Finished(Generic[T]):
    """Finished blocks: with a keeper, or else in memory."""

    def __init__(self, campaign: Campaign[T], keeper: Keeper | None) -> None:
        self._kind, self._keeper = campaign.kind, keeper
        self._results: dict[int, T] = {}
        kept = [] if keeper is None else keeper.finished_blocks()
        before = [number for number in kept if number in campaign.numbers]
        self.count = len(before)
        if before:
            self.load(before[0])  # of another kind: refused before the work

    def __contains__(self, number: int) -> bool:
        return number in (self._results if self._keeper is None else self._keeper)

    def add(self, number: int, result: T | None) -> None:
        """Keep one, unless another process did; a block that was played twice counts once."""
        if result is None:
            self.count += 1
        if result is None or number in self:
            return
        if self._keeper is None:
            self._results[number] = result
        else:
            self._keeper.save(number, arrays_of(result), at_once=False)
        self.count += 1

    def load(self, number: int) -> T:
        """The result of one."""
        if self._keeper is None:
            return self._results[number]
        arrays = self._keeper.load(number)
        needed = {field.name for field in fields(self._kind)}  # type: ignore[arg-type]
        if arrays.keys() != needed:
            unlike, place = ", ".join(sorted(arrays.keys() ^ needed)), getattr(self._keeper, "path", "the campaign")
            raise StoreError(
                f"{place}: block {number} is of another kind or version ({unlike}): name another directory"
            )
        return self._kind(**arrays)


class _Watch(Generic[T]):
    """Shows the blocks to `certain`, in order and each once, as far as they are finished without a gap."""

    def __init__(self, finished: _Finished[T], numbers: range, certain: Certain[T] | None) -> None:
        self._finished, self._certain = finished, certain
        self._heard, self._is_certain = 0, False
        self.needed = numbers
        """Blocks that the answer is made of."""

    def is_over(self) -> bool:
        """Whether no more blocks are needed."""
        while self._certain is not None and not self._is_certain and self._heard < len(self.needed):
            number = self.needed[self._heard]
            if number not in self._finished:
                return False
            self._is_certain = self._certain(self._finished.load(number))
            self._heard += 1
            if self._is_certain:
                self.needed = self.needed[: self._heard]
        return self._is_certain or self._finished.count >= len(self.needed)


def arrays_of(result: Any) -> Arrays:
    """The arrays of a block's result, by name."""
    return {field.name: getattr(result, field.name) for field in fields(result)}
