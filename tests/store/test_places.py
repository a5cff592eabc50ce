"""Places of records against a plain dictionary, and their size."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from deniable.store.records import Places

NUMBERS = st.one_of(st.integers(-3, 3000), st.integers(-(2**62), 2**62))


@given(st.lists(st.tuples(NUMBERS, st.one_of(st.none(), st.integers(0, 2**62)))))
def test_places_are_a_dictionary_in_ascending_order(steps: list[tuple[int, int | None]]) -> None:
    places, twin = Places(), dict[int, int]()
    for number, place in steps:
        if place is None:
            assert places.pop(number, None) == twin.pop(number, None)
        else:
            places[number] = twin[number] = place
        assert (number in places) == (number in twin)
    assert list(places.items()) == sorted(twin.items())
    assert len(places) == len(twin)


def test_a_hundred_thousand_places_need_less_than_a_megabyte() -> None:
    tracemalloc.start()
    try:
        places = Places()
        for number in range(100_000):
            places[number] = 1000 * number
        assert tracemalloc.get_traced_memory()[0] < 1e6
    finally:
        tracemalloc.stop()
