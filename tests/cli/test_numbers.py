"""Numbers for people: never below a bound, never 100 % for less, never 17 digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.formatting import as_given, at_most, percent_as_given, percent_at_most

FLOAT_NOISE = 1e-11


def parsed(text: str) -> float:
    share = text.removesuffix(" %").replace(",", "")
    return float(share) / 100 if text.endswith(" %") else float(share)


@given(st.floats(0, 1))
def test_a_percentage_is_never_below_its_value(value: float) -> None:
    shown = percent_at_most(value)
    if shown == "just under 100 %":
        assert 0.999999 < value < 1
        return
    assert parsed(shown) >= value * (1 - FLOAT_NOISE)
    assert parsed(shown) <= value * 1.0101 + 1e-300
    assert (shown == "100 %") == (value == 1)


@given(st.floats(1e-300, 1e300), st.integers(2, 6))
def test_a_figure_is_rounded_up_and_little(value: float, digits: int) -> None:
    shown = parsed(at_most(value, digits))
    assert value * (1 - FLOAT_NOISE) <= shown <= value * (1 + 10.0 ** (1 - digits)) * (1 + FLOAT_NOISE)


@given(st.floats(0, 1e12))
def test_what_was_given_is_shown_exactly(value: float) -> None:
    assert parsed(as_given(value)) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 %"),
        (0.75, "75 %"),
        (0.7500000000000001, "75 %"),
        (0.75001, "75.1 %"),
        (0.99949, "99.95 %"),
        (0.9999951, "99.9996 %"),
        (0.9999999, "just under 100 %"),
        (1 - 2**-53, "just under 100 %"),
        (1.0, "100 %"),
        (0.0123456, "1.24 %"),
        (1e-6, "0.0001 %"),
        (1.234e-9, "1.24e-9"),
    ],
)
def test_percentages(value: float, shown: str) -> None:
    assert percent_at_most(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (2130.1, "2,140"), (1.71832, "1.72"), (1e6, "1,000,000"), (1.79e308, "1.79e308")]
)
def test_figures(value: float, shown: str) -> None:
    assert at_most(value) == shown


@pytest.mark.parametrize(
    ("value", "shown", "percent"),
    [(1e-5, "1e-5", "0.001 %"), (0.001, "0.001", "0.1 %"), (0.5, "0.5", "50 %"), (1e-9, "1e-9", "1e-9")],
)
def test_given_numbers(value: float, shown: str, percent: str) -> None:
    assert (as_given(value), percent_as_given(value)) == (shown, percent)
