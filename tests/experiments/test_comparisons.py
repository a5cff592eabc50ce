"""Comparisons: right values pass, wrong ones do not."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.experiments.statements import Claim, Close, Known, Ordered, Printed, Within, at

TWO_DECIMALS = st.decimals(min_value=-1000, max_value=1000, places=2)


@given(TWO_DECIMALS, st.floats(-0.00499, 0.00499))
def test_printed_accepts_what_rounds_to_it(printed: Decimal, off: float) -> None:
    assert Printed("a").judge({"a": float(printed) + off}, {"a": str(printed)}).passed


@given(TWO_DECIMALS, st.floats(0.00501, 100), st.booleans())
def test_printed_refuses_what_does_not(printed: Decimal, off: float, above: bool) -> None:
    judged = Printed("a").judge({"a": float(printed) + (off if above else -off)}, {"a": str(printed)})
    assert not judged.passed
    assert judged.deviation == pytest.approx(off - 0.005, abs=1e-6)
    assert str(printed) in judged.words


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [("3.5e8", 3.46e8, 3.44e8), ("125", 125.4, 125.6), ("0.05", 0.0549, 0.0551), ("7", 7.2, 7.6)],
)
def test_digits_are_those_of_the_print(text: str, good: float, bad: float) -> None:
    assert Printed("a").judge({"a": good}, {"a": text}).passed
    assert not Printed("a").judge({"a": bad}, {"a": text}).passed


def test_printed_meets_an_interval() -> None:
    assert Printed("a").judge({"a": [[1.0, 2.0]]}, {"a": ["1.5"]}).passed
    assert Printed("a").judge({"a": [[1.0, 2.0]]}, {"a": ["2.04"]}).passed is False
    assert Printed("a").judge({"a": [[1.0, 2.0]]}, {"a": ["2.0"]}).passed


def test_empty_cells_are_left_out_and_nothing_at_all_does_not_pass() -> None:
    assert Printed("a").judge({"a": [1.0, 9.0]}, {"a": ["1", None]}).words == "all 1 printed values met"
    assert not Printed("a").judge({"a": [1.0]}, {"a": [None]}).passed


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_printed_refuses_what_is_no_number(value: float) -> None:
    assert not Printed("a").judge({"a": value}, {"a": "1"}).passed


def test_a_known_difference_passes_only_as_foretold() -> None:
    known = Printed("a", known={"a.1": Known("4.27", "a misprint")})
    right = known.judge({"a": [1.0, 4.27]}, {"a": ["1", "4.07"]})
    assert right.passed
    assert right.reasons == ("a.1: ours 4.27, printed 4.07. a misprint",)
    assert right.words == "1 of 2 printed values met"
    assert not known.judge({"a": [1.0, 4.07]}, {"a": ["1", "4.07"]}).passed
    assert not known.judge({"a": [1.0]}, {"a": ["1"]}).passed  # the known place must exist


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="2 values where the paper prints 1"):
        Printed("a").judge({"a": [1.0, 2.0]}, {"a": ["1"]})
    with pytest.raises(ValueError, match="cannot be held against"):
        Ordered("", "a", "b").judge({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, {})


def test_close() -> None:
    assert Close("", "a", 1.0, 0.1).judge({"a": [1.05, 0.95]}, {}).passed
    assert not Close("", "a", 1.0, 0.1).judge({"a": [1.05, 1.2]}, {}).passed
    assert Close("", "a", "b", 0.1).judge({"a": [1.0, 2.0], "b": [1.0, 2.05]}, {}).passed
    assert not Close("", "a", "printed:a", 0.1).judge({"a": 1.0}, {"a": "2"}).passed
    assert not Close("", "a", 1.0, 0.1).judge({"a": []}, {}).passed
    assert not Close("", "a", 1.0, 0.1).judge({"a": float("nan")}, {}).passed


def test_within_counts_standard_errors() -> None:
    values = {"a": [0.5, 0.2], "exact": [0.45, 0.2], "error": [0.02, 0.01]}
    assert Within("", "a", "exact", "error").judge(values, {}).deviation == pytest.approx(2.5)
    assert Within("", "a", "exact", "error").judge(values, {}).passed
    assert not Within("", "a", "exact", "error", k=2).judge(values, {}).passed
    assert not Within("", "a", "exact", "error").judge({**values, "error": [0.0, 0.0]}, {}).passed
    assert not Within("", "a", "exact", "error").judge({**values, "error": [0.02]}, {}).passed


def test_ordered() -> None:
    values = {"low": {"x": [1.0, 2.0]}, "high": {"x": [1.0, 3.0]}}
    assert Ordered("", "low", "high").judge(values, {}).passed
    assert not Ordered("", "low", "high", strict=True).judge(values, {}).passed
    assert not Ordered("", "high", "low").judge(values, {}).passed
    assert Ordered("", "high", "low", slack=1.0).judge(values, {}).passed
    assert not Ordered("", "low", "high").judge({"low": [float("nan")], "high": [1.0]}, {}).passed


def test_claim() -> None:
    assert Claim("rises", lambda found: found["a"][1] > found["a"][0], dict).judge({"a": [1, 2]}, {}).passed
    assert not Claim("rises", lambda found: found["a"][1] > found["a"][0], dict).judge({"a": [2, 1]}, {}).passed


def test_dotted_keys_reach_into_lists() -> None:
    assert at({"a": {"b": [1, {"c": 2}]}}, "a.b.1.c") == 2
