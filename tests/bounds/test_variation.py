from __future__ import annotations

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, ndtr

from deniable.bounds.variation import (
    amplified_tvd,
    best_composition_delta,
    best_composition_deltas,
    best_composition_tvd,
    chained_tvd,
    gaussian_tvd,
    group_tvd,
    laplace_tvd,
    naive_tvd,
    parallel_tvd,
    worst_composition_tvd,
)

from .twins import binomial_tvd, theorem_18_delta

alphas = st.floats(0, 1)


@settings(max_examples=50, deadline=None)
@given(alphas, alphas)
def test_theorem_6_for_a_pair(first, second):
    assert naive_tvd([first, second]) == pytest.approx(first + second - first * second, rel=1e-9, abs=1e-15)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 0.999), st.integers(0, 50))
def test_theorem_6_for_many_equal_releases(alpha, steps):
    assert worst_composition_tvd(alpha, steps) == pytest.approx(naive_tvd([alpha] * steps), rel=1e-9, abs=1e-15)


def test_composition_extremes():
    assert naive_tvd([]) == 0
    assert naive_tvd([0.2, 1.0, 0.3]) == 1
    assert worst_composition_tvd(1.0, 0) == 0
    assert worst_composition_tvd(1.0, 3) == 1
    assert worst_composition_tvd(1e-12, 10**6) == pytest.approx(1e-6, rel=1e-6, abs=0)
    assert worst_composition_tvd(0.5, 10**6) == 1


def test_parallel_chained_group_and_amplified():
    assert parallel_tvd([0.1, 0.4, 0.2]) == 0.4
    assert parallel_tvd([]) == 0
    assert chained_tvd([0.5, 0.4]) == pytest.approx(0.2)
    assert group_tvd(0.2, 3) == pytest.approx(0.6)
    assert group_tvd(0.4, 3) == 1
    assert group_tvd(0.4, 0) == 0
    assert amplified_tvd(0.4, 0.01) == pytest.approx(0.004)


def test_chained_randomized_responses_attain_theorem_9():
    """Two binary channels in a row, of TVD a and b: the product channel has TVD a b."""

    def channel(alpha):
        return np.array([[1 + alpha, 1 - alpha], [1 - alpha, 1 + alpha]]) / 2

    product = channel(0.3) @ channel(0.6)
    assert chained_tvd([0.3, 0.6]) == pytest.approx(np.abs(product[0] - product[1]).sum() / 2)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 1e6))
def test_mechanisms_equal_the_theorems_as_printed(noise):
    assert laplace_tvd(noise) == pytest.approx(1 - math.exp(-1 / (2 * noise)), rel=1e-9, abs=0)
    assert gaussian_tvd(noise) == pytest.approx(2 * ndtr(1 / (2 * noise)) - 1, rel=1e-9, abs=0)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 10, 41])
@pytest.mark.parametrize("alpha", [1e-9, 0.05, 0.4, 0.99])
def test_theorem_18_equals_its_twins(alpha, steps):
    assert best_composition_tvd(alpha, steps) == pytest.approx(binomial_tvd(alpha, steps), rel=1e-12, abs=0)
    eps = math.log((1 + alpha) / (1 - alpha))
    pairs = best_composition_deltas(alpha, steps)
    assert len(pairs) == steps // 2 + 1
    for i, (epsilon, delta) in enumerate(pairs):
        assert epsilon == pytest.approx((steps - 2 * i) * eps, rel=1e-6, abs=0)
        assert delta == pytest.approx(theorem_18_delta(alpha, steps, i), rel=1e-11, abs=0)
        assert best_composition_delta(alpha, steps, epsilon) == pytest.approx(delta, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("alpha", [1e-7, 1e-3, 0.01])
@pytest.mark.parametrize("steps", [10_000, 100_000])
def test_theorem_18_for_many_steps(alpha, steps):
    """Twin: both binomial tails by the incomplete beta function, whose difference is good to 1e-15 absolute."""
    m = steps // 2 + 1
    twin = betainc(m, steps - m + 1, (1 + alpha) / 2) - betainc(m, steps - m + 1, (1 - alpha) / 2)
    assert best_composition_tvd(alpha, steps) == pytest.approx(twin, rel=1e-11, abs=2e-13)


def test_theorem_18_for_many_steps_and_tiny_alpha():
    """To first order the TVD is alpha k C(k-1, (k-1)/2) / 2^(k-1)."""
    steps = 99_999
    with mp.workdps(30):
        slope = float(steps * mp.binomial(steps - 1, (steps - 1) // 2) / mp.mpf(2) ** (steps - 1))
    assert best_composition_tvd(1e-12, steps) == pytest.approx(1e-12 * slope, rel=1e-13, abs=0)


def test_all_deltas_end_at_the_total_variation():
    pairs = best_composition_deltas(0.003, 100_000)
    deltas = [delta for _, delta in pairs]
    assert pairs[-1][0] == 0
    assert deltas[-1] == pytest.approx(best_composition_tvd(0.003, 100_000), rel=1e-10, abs=0)
    assert all(a <= b for a, b in pairwise(deltas))
    assert deltas[0] == 0


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 0.999), st.integers(1, 3000))
def test_best_is_below_worst_and_grows(alpha, steps):
    best = best_composition_tvd(alpha, steps)
    assert alpha * (1 - 1e-12) <= best <= worst_composition_tvd(alpha, steps) * (1 + 1e-11)
    assert best <= best_composition_tvd(alpha, steps + 1) * (1 + 1e-12)


def test_theorem_18_extremes():
    assert best_composition_tvd(0.0, 10) == 0
    assert best_composition_tvd(1.0, 10) == 1
    assert best_composition_tvd(0.3, 0) == 0
    assert best_composition_tvd(1 - 1e-15, 1000) == 1
    assert best_composition_delta(0.3, 10, 1e9) == 0
    assert best_composition_delta(0.999, 100_000, 1.0) == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: naive_tvd([0.1, 1.2]), "alpha"),
        (lambda: worst_composition_tvd(0.1, -1), "steps"),
        (lambda: group_tvd(0.1, 1.5), "records"),
        (lambda: amplified_tvd(0.1, 2.0), "rate"),
        (lambda: laplace_tvd(0.0), "scale"),
        (lambda: gaussian_tvd(-1.0), "noise"),
        (lambda: best_composition_deltas(1.0, 3), "alpha"),
        (lambda: best_composition_delta(0.5, 3, -1.0), "epsilon"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
