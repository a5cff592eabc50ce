"""The search for an analysis' best parameter: against closed forms, dense grids, and itself from another start."""

from __future__ import annotations

from math import exp, inf, log, log1p, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.bounds import (
    METHODS,
    Tuning,
    advanced_composition,
    advanced_epsilon,
    guarantee,
    loss_bound,
    naive_epsilon,
)
from deniable.bounds.numeric import sampled_gaussian_renyi, valley
from deniable.bounds.runs import amplify_epsilon
from deniable.bounds.textbook import classic_epsilon, jumps, least_classic_delta, proved_epsilon
from deniable.mechanisms import Adjacency, ApproximateDP, Gaussian, Laplace

from .twins import renyi_by_quadrature

ADD = Adjacency.ADD_REMOVE


def exact(value):
    return 1e-8 * abs(value)


@settings(max_examples=200, deadline=None)
@given(st.floats(0.5, 2000), st.floats(-8, 8), st.floats(-9, 9), st.booleans())
def test_a_slope_and_a_wall(steepness, foot, start, mirrored):
    """e^-x + e^(k (x - m)) is least at (k m - ln k) / (k + 1), however steep the wall is."""
    sign = -1 if mirrored else 1

    def function(x):
        height = steepness * (sign * x - foot)
        return exp(-sign * x) + (exp(height) if height < 600 else exp(600) * (height - 599))

    best = sign * (steepness * foot - log(steepness)) / (steepness + 1)
    where, least = valley(function, (-20.0, 20.0), start=start, exact=exact)
    assert least == function(where)
    assert function(best) * (1 - 1e-12) <= least <= function(best) * (1 + 1e-8)


@pytest.mark.parametrize("start", [-3.0, 0.0, 1.7, 4.0, 30.0])
def test_a_valley_at_an_end_of_the_range(start):
    assert valley(exp, (-3.0, 4.0), start=start, exact=exact) == (-3.0, exp(-3.0))
    assert valley(lambda x: -x, (-3.0, 4.0), start=start, exact=exact) == (4.0, -4.0)
    where, _ = valley(lambda x: abs(x - 3.999), (-3.0, 4.0), start=start, exact=exact)
    assert where == pytest.approx(3.999, abs=1e-6)


def test_what_need_not_be_exact_takes_fewer_looks():
    def looks(error):
        seen = []
        valley(lambda x: seen.append(x) or exp(-x) + exp(9 * (x - 2)), (-20.0, 20.0), start=0.0, exact=lambda _: error)
        return len(seen)

    assert looks(0.1) < looks(1e-4) < looks(1e-9) < 40


def test_a_flat_function_and_an_infinite_one():
    assert valley(lambda x: 2.0, (-5.0, 5.0), start=1.0, exact=exact) == (1.0, 2.0)
    where, least = valley(lambda x: inf if x > 1 else -x, (-5.0, 5.0), start=0.0, exact=exact)
    assert least == pytest.approx(-1, abs=1e-6)
    assert where <= 1


@pytest.mark.parametrize("start", [-2.5, -1.0, 0.0, 1.0, 2.5])
@pytest.mark.parametrize(("left", "right"), [(1.0, 1.1), (1.1, 1.0)])
def test_both_sides_of_a_jump_are_searched(start, left, right):
    tuning = Tuning(slack=start)
    found = tuning.least("slack", lambda x: left + (x + 1) ** 2 if x < 0 else right + (x - 1) ** 2, [0.0])
    assert found == pytest.approx(1.0, rel=1e-7, abs=0)
    assert tuning.slack == pytest.approx(-1.0 if left < right else 1.0, abs=1e-3)


releases = st.builds(
    lambda noise, rate, steps: Gaussian(noise).subsampled(rate).composed(steps),
    st.floats(-0.5, 2).map(lambda p: 10**p),
    st.floats(-5, -0.01).map(lambda p: 10**p),
    st.integers(1, 10**6),
)


@settings(max_examples=30, deadline=None)
@given(releases, st.floats(-9, -2).map(lambda p: 10**p), st.sampled_from(METHODS[:4]), st.floats(-3, 8))
def test_another_start_finds_the_same(release, delta, name, start):
    elsewhere = Tuning(order=start, slack=start - 3, share=-1 - start)
    for analysis in (guarantee, loss_bound):
        fresh = analysis(name, release, delta, ADD)
        tuned = analysis(name, release, delta, ADD, elsewhere)
        again = analysis(name, release, delta, ADD, elsewhere)
        for found in (tuned, again):
            assert epsilon(found) == pytest.approx(epsilon(fresh), rel=1e-7, abs=1e-10)


def epsilon(found):
    return found.epsilon if isinstance(found, ApproximateDP) else found


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0, 2).map(lambda p: 10**p),
    st.floats(-4, 0).map(lambda p: 10**p),
    st.integers(1, 10**5),
    st.floats(-9, -2).map(lambda p: 10**p),
)
def test_no_split_of_a_dense_grid_is_better(noise, rate, steps, delta):
    release = Gaussian(noise).subsampled(rate).composed(steps)

    def step(spent):
        return ApproximateDP(amplify_epsilon(proved_epsilon(noise, spent / steps / rate), rate))

    def advanced(total, slack_share):
        return advanced_composition([(step(total * (1 - slack_share)), steps)], total * slack_share).epsilon

    slacks, shares = 1 / (1 + np.exp(-np.linspace(-8, 5, 60))), np.geomspace(1e-6, 0.9, 60)
    assert advanced_epsilon(release, delta, adjacency="add-remove") <= min(
        advanced(delta, slack) for slack in slacks
    ) * (1 + 1e-7)
    naive = min(naive_epsilon(release, delta * share, adjacency="add-remove") - log1p(-share) for share in shares)
    assert loss_bound("naive", release, delta, adjacency="add-remove") <= naive * (1 + 1e-7)
    both = min(advanced(delta * share, slack) - log1p(-share) for share in shares for slack in slacks[::3])
    assert loss_bound("advanced", release, delta, adjacency="add-remove") <= both * (1 + 1e-7)


@pytest.mark.parametrize("noise", [1.5, 4.0, 6.0])
def test_where_a_step_changes_its_formula(noise):
    edge = least_classic_delta(noise)
    assert classic_epsilon(noise, edge) == pytest.approx(1.0, rel=1e-12, abs=0)
    assert proved_epsilon(noise, edge * (1 + 1e-9)) < 1 < proved_epsilon(noise, edge * (1 - 1e-9))
    (found,) = jumps(Gaussian(noise).subsampled(0.1).composed(7), min(0.999, 2 * 0.7 * edge), ADD)
    assert found == pytest.approx(0.7 * edge, rel=1e-12, abs=0)


def test_no_jumps_without_gaussian_steps_or_far_away():
    assert jumps(Laplace(1.0).composed(3), 1e-5, ADD) == []
    assert jumps(Gaussian(100.0), 1e-5, ADD) == []
    assert jumps(Gaussian(1.0), 1e-5, ADD) == []


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("order", [nextafter(4.0, 0), 4.0, nextafter(4.0, 9), 15.99, 16.01])
def test_orders_that_share_their_nodes_are_exact(order, replace):
    adjacency = Adjacency.REPLACE if replace else ADD
    for neighbour in (order * 0.9, order, order * 1.1):  # whichever order comes first lays the nodes
        sampled_gaussian_renyi(neighbour, 1.3, 0.02, adjacency)
    found = sampled_gaussian_renyi(order, 1.3, 0.02, adjacency)
    assert found == pytest.approx(renyi_by_quadrature(order, 1.3, 0.02, replace), rel=3e-11, abs=0)
