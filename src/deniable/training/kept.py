"""Campaigns that can be taken up again: what a store has is not played, the rest is kept there as it finishes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields
from typing import Any, TypeVar

from deniable.store import Store, StoreError

__all__ = ["play_missing"]

T = TypeVar("T")
Running = Callable[[list[int], int], Iterator[tuple[int, T]]]
"""From the numbers to play and the worker processes to (number, result) in any order."""


def play_missing(
    total: int,
    kind: type[T],
    run: Running[T],
    store: Store | None = None,
    *,
    processes: int | None = None,
    tell: Callable[[int], None] | None = None,
) -> list[T]:
    """The results 0 to `total` in order; each is a `kind`, a dataclass of arrays.

    `tell` hears how many there are, first of those that were kept already. Whatever ends this early ends the workers.
    """
    kept: dict[int, T] = {n: _loaded(store, n, kind) for n in store.finished()} if store is not None else {}
    missing = [number for number in range(total) if number not in kept]
    hear = tell or (lambda done: None)
    hear(len(kept))
    running = run(missing, min(processes or os.cpu_count() or 1, max(1, len(missing))))
    with closing(running):  # type: ignore[type-var]
        for number, result in running:
            kept[number] = result
            if store is not None:
                store.save(number, _arrays(result))
            hear(len(kept))
    return [kept[number] for number in range(total)]


def _loaded(store: Store, number: int, kind: type[T]) -> T:
    arrays = store.load(number)
    needed = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if arrays.keys() != needed:
        unlike = ", ".join(sorted(arrays.keys() ^ needed))
        raise StoreError(
            f"{store.path}: block {number} is of another kind or version ({unlike}): name another directory"
        )
    return kind(**arrays)


def _arrays(result: Any) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}
