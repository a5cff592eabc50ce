"""Stores of the same campaign joined into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deniable.engines.planned import PARTS, PLAN, Planned
from deniable.store import (
    FILE,
    SETTINGS_FILE,
    SharedBlocks,
    Store,
    StoreError,
    canonical,
    differences,
    look_at_settings,
    read_blocks,
    read_settings,
    settings_digest,
)
from deniable.store.records import Arrays


class Merged(NamedTuple):
    """What is in the first directory now."""

    finished: int
    blocks: int | None
    """Of the whole campaign, where its plan is kept."""
    twice: int
    """Blocks that more than one directory had."""


def merge_stores(places: Sequence[Path]) -> Merged:
    """Add the blocks of all directories to the first; StoreError names one of another campaign, and why.

    Guarantee: nothing is changed unless all directories hold the same campaign, and a block counts once. Blocks that
    workers left beside a store belong to it.
    """
    parts = sorted({part.name for place in places for part in (place / PARTS).glob("*/") if _begun(part)})
    if parts:
        return _merge_parts([place / PARTS for place in places], parts)
    settings = [_settings(place) for place in places]
    for place, other in zip(places[1:], settings[1:], strict=True):
        if canonical(other) != canonical(settings[0]):
            unlike = "; ".join(differences(settings[0], other))
            raise StoreError(f"{place} holds another campaign than {places[0]}: {unlike}")
    with Store(places[0], settings[0], resume=True) as store:
        twice = sum(_add(store, place, settings[0]) for place in places[1:])
        finished = len(store.finished_blocks())
    blocks = Planned.read(places[0]).blocks if (places[0] / PLAN).is_file() else None
    return Merged(finished, blocks, twice)


def _merge_parts(places: Sequence[Path], parts: Sequence[str]) -> Merged:
    """The campaigns of reproductions, one by one."""
    found = []
    for part in parts:
        others = [place / part for place in places[1:] if _begun(place / part)]
        if not _begun(places[0] / part):
            with Store(places[0] / part, _settings(others[0])):
                pass
        found.append(merge_stores([places[0] / part, *others]))
    return Merged(sum(one.finished for one in found), None, sum(one.twice for one in found))


def _begun(place: Path) -> bool:
    return any((place / name).is_file() for name in (FILE, SETTINGS_FILE))


def _settings(place: Path) -> Mapping[str, Any]:
    found = read_settings(place) if (place / FILE).is_file() else look_at_settings(place)
    return Planned.read(place).settings if found is None else found


def _add(store: Store, place: Path, settings: Mapping[str, Any]) -> int:
    """Add the blocks of one directory; how many of them the store had already."""
    twice = 0
    for number, arrays in _blocks(place, settings):
        if number in store:
            twice += 1
        else:
            store.save(number, arrays, at_once=False)
    return twice


def _blocks(place: Path, settings: Mapping[str, Any]) -> Iterator[tuple[int, Arrays]]:
    held = set()
    if (place / FILE).is_file():
        for number, arrays in read_blocks(place):
            held.add(number)
            yield number, arrays
    shared = SharedBlocks(place, settings_digest(settings))
    for number in sorted(shared.finished_blocks() - held):
        yield number, shared.load(number)
