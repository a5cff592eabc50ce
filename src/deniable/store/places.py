"""Where the records of a file begin: eight bytes a record, so that memory is flat in the number of blocks."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, MutableMapping

_PAGE = 1024
"""Numbers that share an array; those of a campaign are dense, those of a damaged file need not be."""
_NOWHERE = -1


class Places(MutableMapping[int, int]):
    """From a record's number, which may be negative, to its place in the file; in ascending order of the numbers."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}
        self._count = 0

    def __getitem__(self, number: int) -> int:
        page = self._pages.get(number // _PAGE)
        place = _NOWHERE if page is None else page[number % _PAGE]
        if place == _NOWHERE:
            raise KeyError(number)
        return place

    def __setitem__(self, number: int, place: int) -> None:
        self._count += number not in self
        if number // _PAGE not in self._pages:
            self._pages[number // _PAGE] = array("q", [_NOWHERE]) * _PAGE
        self._pages[number // _PAGE][number % _PAGE] = place

    def __delitem__(self, number: int) -> None:
        self._count -= self[number] != _NOWHERE
        self._pages[number // _PAGE][number % _PAGE] = _NOWHERE

    def __iter__(self) -> Iterator[int]:
        for first in sorted(self._pages):
            yield from (first * _PAGE + at for at, place in enumerate(self._pages[first]) if place != _NOWHERE)

    def __len__(self) -> int:
        return self._count
