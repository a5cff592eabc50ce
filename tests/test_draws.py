"""The floor on the draws of a property bites."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from draws import counted, when


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def all_are_checked(number: int) -> None:
    assert number >= 0


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6))
def most_are_thrown_away(number: int) -> None:
    assume(number < 3)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def never_comes_to_the_point(number: int) -> None:
    if when(number < 0):
        raise AssertionError


def test_a_property_without_enough_draws_fails() -> None:
    with counted(all_are_checked, 20):
        all_are_checked()
    with (
        pytest.raises(AssertionError, match="draws were checked, at least 20 are wanted"),
        counted(most_are_thrown_away, 20),
    ):
        most_are_thrown_away()
    with pytest.raises(AssertionError, match="held in fewer than a tenth"), counted(never_comes_to_the_point, 20):
        never_comes_to_the_point()
