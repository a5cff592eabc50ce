"""The search for a crossing: always on the safe side, as near as it says, whatever the function's shape."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, nextafter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import deniable as dn
from deniable.loss.compose.contour import Contour
from deniable.search import crossing, falls_to

SHAPES: dict[str, Callable[[float], float]] = {
    "exponential": lambda x: exp(-x),
    "steep": lambda x: exp(-min(x**3, 700.0) if x > 0 else 0.0),
    "flat, then steep": lambda x: 1 / (1 + exp(min(40 * (x - 1.7), 700.0))),
    "power": lambda x: (2 + x) ** -0.3,
    "jump": lambda x: 0.9 if x < 1.234 else 1e-9,
    "jump to 0": lambda x: exp(-x) if x < 0.8 else 0.0,
    "infinite below": lambda x: 1e300 if x < 0.3 else 0.5 * exp(-x),
}


def bisected(falling: Callable[[float], float], level: float, unsafe: float, safe: float) -> float:
    """The naive twin: halves down to neighbouring floats."""
    while nextafter(unsafe, safe) < safe:
        middle = 0.5 * (unsafe + safe)
        unsafe, safe = (middle, safe) if falling(middle) > level else (unsafe, middle)
    return safe


@pytest.mark.parametrize("shape", SHAPES)
@given(level=st.floats(1e-8, 0.8), precision=st.sampled_from([1e-4, 1e-9, 1e-13]))
def test_the_crossing_is_the_bisected_one_and_on_the_safe_side(shape: str, level: float, precision: float) -> None:
    falling = SHAPES[shape]
    unsafe, safe = -1.9, 50.0
    assume(falling(unsafe) > level >= falling(safe))
    found = crossing(falling, level, unsafe, safe, precision=precision)
    assert falling(found) <= level
    assert found == pytest.approx(bisected(falling, level, unsafe, safe), rel=precision, abs=1e-3 * precision)


@pytest.mark.parametrize("shape", ["exponential", "steep", "flat, then steep", "jump", "jump to 0"])
@given(level=st.floats(1e-8, 0.8), guess=st.floats(-1.5, 8.0), step=st.floats(0.01, 3.0))
def test_a_search_without_a_bracket_finds_the_same(shape: str, level: float, guess: float, step: float) -> None:
    falling = SHAPES[shape]
    found = falls_to(falling, level, (guess, step), floor=-1.9)
    assert falling(found) <= level
    assert found == pytest.approx(bisected(falling, level, -1.9, 50.0), rel=1e-13, abs=1e-16)


@given(level=st.floats(0.01, 100.0))
def test_precision_may_be_relative_to_a_unit(level: float) -> None:
    found = falls_to(lambda x: 1 / x if x > 0 else inf, level, (1.0, 0.5), floor=0.0, precision=1e-6, unit=1e3)
    assert 1 / level <= found <= 1 / level + 1e-3


def test_what_lies_beyond_the_range_is_infinite() -> None:
    assert falls_to(lambda x: 1.0, 0.5, (0.0, 1.0)) == inf
    assert falls_to(lambda x: 0.1, 0.5, (0.0, 1.0), within=(-7.0, 7.0)) == -inf
    for end in (2.9, 3.1):  # whatever the steps
        asked: list[float] = []
        found = falls_to(lambda x: asked.append(x) or exp(-x), exp(-3.0), (0.0, 1.7), within=(-1.0, end))  # noqa: B023
        assert found == (inf if end < 3 else pytest.approx(3.0, rel=1e-12))
        assert max(asked) <= end


def test_few_evaluations_suffice_where_the_function_is_smooth() -> None:
    """An evaluation is a composition: nine digits from a bad guess, for which halves would need over thirty."""
    asked: list[float] = []

    def falling(x: float) -> float:
        asked.append(x)
        return exp(-(exp(x) ** 2) / 2)

    found = falls_to(falling, 1e-5, (0.0, 0.25), precision=1e-9, unit=1.0)
    assert found == pytest.approx(log(2 * 5 * log(10)) / 2, abs=1e-9)
    assert len(asked) <= 12


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.01, 10**3), (1.0, 0.01, 10**5), (0.8, 0.001, 10**4)])
def test_an_epsilon_is_found_by_few_looks(monkeypatch, noise, rate, steps):
    """Beginning at the saddle's own k, five nats away, and looking at the end anew took 12 or 13."""
    looks = []
    look = Contour._look
    monkeypatch.setattr(Contour, "_look", lambda self, *args: looks.append(args[1]) or look(self, *args))
    loss = dn.privacy_loss(dn.Gaussian(noise).subsampled(rate).composed(steps), "add-remove")
    assert loss.epsilon(1e-5) > 0
    assert 4 <= len(looks) <= 9
    assert len(set(looks)) == len(looks)
