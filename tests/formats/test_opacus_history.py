"""Opacus's history as a mechanism; none of it needs Opacus."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import deniable as dn

HISTORY = [(1.0, 0.01, 300), (2.0, 0.01, 100), (1.0, 0.01, 200)]


def test_an_accountant_its_state_and_its_history_are_the_same_release() -> None:
    expected = dn.compose(
        dn.Gaussian(1.0).subsampled(0.01).composed(500), dn.Gaussian(2.0).subsampled(0.01).composed(100)
    )
    listed = [list(entry) for entry in HISTORY]
    for source in (HISTORY, listed, {"history": listed, "mechanism": "rdp"}, SimpleNamespace(history=HISTORY)):
        assert dn.from_opacus(source) == expected


def test_noise_is_in_clipping_norms() -> None:
    assert dn.from_opacus([(1.0, 0.01, 3)], "replace") == dn.Gaussian(0.5).subsampled(0.01).composed(3)
    assert dn.from_opacus([(1.0, 0.01, 3)], "zero-out") == dn.Gaussian(1.0).subsampled(0.01).composed(3)


def test_every_pass_that_a_stretch_has_a_part_in_counts() -> None:
    """Steps 0 to 150 have a part in two passes of 100, steps 150 to 250 in two more turns of the same record."""
    found = dn.from_opacus([(1.0, 0.01, 150), (2.0, 0.01, 100)], sampling="shuffled")
    one, two = (dn.Gaussian(noise).subsampled(dn.Shuffled(100)) for noise in (1.0, 2.0))
    assert found == dn.compose(one.composed(2), two.composed(2))


def test_the_source_may_say_how_batches_were_drawn() -> None:
    state = {"history": [(1.0, 0.01, 100)], "sampling": "unknown"}
    assert dn.from_opacus(state) == dn.Gaussian(1.0).composed(100)
    assert dn.from_opacus(state, sampling="poisson") == dn.Gaussian(1.0).subsampled(0.01).composed(100)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (7, r"history must be a list of \(noise multiplier, sample rate, steps\), got 7"),
        ("rdp", "history must be a list"),
        ({"steps": 3}, "must be an object with the key history, got"),
        ([(1.0, 0.01)], "history entry 1 must be three numbers"),
        ([(1.0, 0.01, 1), {"a": 1}], "history entry 2 must be three numbers"),
        ([(-1.0, 0.01, 1)], "history entry 1: noise must be a finite number >= 0, got -1.0"),
        ([(1.0, 1.01, 1)], "history entry 1: rate must be a number from 0 to 1, got 1.01"),
        ([(1.0, 0.01, 1.5)], "history entry 1: steps must be a whole number >= 0, got 1.5"),
        ([(float("nan"), 0.01, 1)], "noise must be a finite number"),
        ([(None, 0.01, 1)], "noise must be a finite number"),
        ({"history": [], "sampling": "magic"}, "sampling must be one of poisson, shuffled, unknown, got 'magic'"),
    ],
)
def test_anything_else_is_refused_on_one_line(source: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        dn.from_opacus(source)
