"""Berry and Esseen's bracket of a sum of many bounded losses, against the sum of binomial probabilities."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.loss import _merge_steps
from deniable.loss.compose.binomial import Binomial
from deniable.loss.compose.cumulants import Composition
from deniable.loss.compose.grid import normal_bracket
from deniable.loss.pairs.pair import FUNCTIONALS, STICK, TAIL, Functional
from deniable.mechanisms import Adjacency

PL = dn.privacy_loss


@given(
    release=st.tuples(st.floats(-3, 1), st.one_of(st.just(0.0), st.floats(-4, -0.1)), st.floats(2, 9)),
    back=st.booleans(),
    functional=st.sampled_from(FUNCTIONALS),
    away=st.floats(-4, 8),
)
@settings(max_examples=100, deadline=None)
def test_it_holds_binomial_sums(release, back, functional, away):
    epsilon, rate, runs = (10**power for power in release)
    assert holds((epsilon, rate, int(runs)), functional, away, back)


def holds(release: tuple[float, float, int], functional: Functional, away: float, back: bool = False) -> bool:
    """Whether the bracket and the binomial sum have a number in common, so many spreads from the mean."""
    epsilon, rate, count = release
    step = dn.ApproximateDP(epsilon, 1e-3 / count if rate == 1 else 0.0)
    mechanism = (step if rate == 1 else step.subsampled(rate)).composed(count)
    pair, law = PL(mechanism, "add-remove").pair, Composition(_merge_steps(mechanism, Adjacency("add-remove")))
    assert isinstance(pair, Binomial)
    pair, law = (pair.reverse(), law.reverse()) if back else (pair, law)
    k = law.mean_under(functional) + away * law.scale
    found, exact = normal_bracket(law, functional, k), functional.at(pair, k)
    return bool(found.least <= exact * (1 + 1e-12) + 1e-15 and found >= exact.least * (1 - 1e-12) - 1e-15)


def test_it_knows_two_digits_of_small_divergences():
    law = Composition(_merge_steps(dn.RandomizedResponse(0.01).composed(10**8), Adjacency("add-remove")))
    k = law.mean_under(STICK) + 4 * law.scale
    found = normal_bracket(law, STICK, k)
    assert 0 < found < 1e-4
    assert found.error < 5e-3 * found


def test_a_distance_from_the_normal_law_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch):
    case = (0.1, 1.0, 1000), TAIL, 0.3
    assert holds(*case)
    monkeypatch.setattr("deniable.loss.compose.grid._BERRY_ESSEEN", 1e-6)
    assert not holds(*case)


def test_many_sampled_laplace_runs_are_known():
    """They were .989 +- .7 and 20 +- 20."""
    loss = PL(dn.Laplace(10.0).subsampled(1e-3).composed(10**9), "add-remove")
    assert loss.advantage() == pytest.approx(0.8804, abs=2e-4)
    assert loss.advantage().error < 1e-3
    assert loss.epsilon(1e-5).error < 1e-2
