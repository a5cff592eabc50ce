"""Clopper-Pearson limits: against their definition by sums, and how often they hold in simulation."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from deniable.evidence.attack_scores import Scores
from deniable.evidence.limits import interval, joint_tails, lower_limit, lower_limits, upper_limit, upper_limits
from deniable.evidence.measured import Errors, advantage_interval, epsilon_lower_bound

ROUNDS = 2000


def at_most(events: int, trials: int, rate: float) -> float:
    """P(Binomial <= events), term by term."""
    return sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(events + 1))


def test_each_kind_of_error_is_counted_among_its_own() -> None:
    members, others = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.0, 2.0, 9.0])
    counted = Errors(false_positives=1, negatives=3, false_negatives=2, positives=5)  # a tie is no accusation
    assert Scores(members, others).errors(2.0) == counted
    member = np.repeat([True, False], [5, 3])
    assert Errors.at(np.concatenate([members, others]), member, 2.0) == counted


@pytest.mark.parametrize(("events", "trials"), [(0, 10), (3, 10), (9, 10), (1, 1000), (60, 200)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_limits_solve_their_definition(events: int, trials: int, confidence: float) -> None:
    assert at_most(events, trials, upper_limit(events, trials, confidence)) == pytest.approx(1 - confidence, rel=1e-8)
    if events:
        below = at_most(events - 1, trials, lower_limit(events, trials, confidence))
        assert 1 - below == pytest.approx(1 - confidence, rel=1e-6)


def test_extremes() -> None:
    assert upper_limit(10, 10, 0.95) == 1
    assert lower_limit(0, 10, 0.95) == 0
    assert upper_limit(0, 0, 0.95) == 1
    assert interval(0, 0, 0.95) == (0.5, 0, 1)
    assert upper_limit(0, 1000, 0.95) == pytest.approx(1 - 0.05 ** (1 / 1000))  # the rule of three, exactly


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="events must be at most the 3 trials, got 4"):
        upper_limit(4, 3, 0.95)
    with pytest.raises(ValueError, match="confidence"):
        lower_limit(1, 3, 1.0)


@pytest.mark.parametrize("risk", [1e-6, 0.004, 0.05, 0.3, 0.7, 0.99])
def test_joint_tails_miss_as_often_as_they_say(risk: float) -> None:
    u, v = joint_tails(risk)
    assert (np.diff(u) > 0).all()
    assert (u == v[::-1]).all()
    assert 0 < u[0] < risk
    assert u[-1] <= 1
    grid = np.sort(np.concatenate([u, np.linspace(0, 1, 20_001)]))
    # for each U, the smallest V that some corner allows
    least = np.array([v[u <= x].min() if (u <= x).any() else 1.0 for x in grid])
    missed = float(np.sum(least[:-1] * np.diff(grid)))
    assert missed <= risk * (1 + 1e-9)
    assert missed >= 0.99 * min(risk, 0.5)


@pytest.mark.parametrize(("positives", "negatives"), [(500, 500), (30, 1000), (7, 5)])
@pytest.mark.parametrize(("fpr", "fnr"), [(0.5, 0.5), (0.02, 0.6), (0.0, 0.0), (0.01, 0.01)])
def test_joint_limits_hold_as_often_as_they_say(positives: int, negatives: int, fpr: float, fnr: float) -> None:
    generator, (u, v) = np.random.default_rng(11), joint_tails(0.05)
    accused, missed = (generator.binomial(n, p, 4000)[:, None] for n, p in ((negatives, fpr), (positives, fnr)))
    above = upper_limits(accused, negatives, 1 - u) >= fpr, upper_limits(missed, positives, 1 - v) >= fnr
    below = lower_limits(accused, negatives, 1 - u) <= fpr, lower_limits(missed, positives, 1 - v) <= fnr
    for one, other in (above, below):
        assert np.mean(~(one & other).any(axis=1)) <= 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5


def simulated(fpr: float, fnr: float, trials: int) -> list[Errors]:
    generator = np.random.default_rng(5)
    positives = generator.binomial(trials, 0.5, ROUNDS)
    wrong = generator.binomial(trials - positives, fpr), generator.binomial(positives, fnr)
    counts = zip(wrong[0].tolist(), (trials - positives).tolist(), wrong[1].tolist(), positives.tolist(), strict=True)
    return [Errors(*row) for row in counts]


@pytest.mark.parametrize("trials", [20, 300])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_the_lower_bound_on_epsilon_holds_as_often_as_it_says(epsilon: float, trials: int) -> None:
    """Randomized response is the hardest case: its error rates 1 / (1 + e^epsilon) meet the bound exactly."""
    rate = 1 / (1 + np.exp(epsilon))
    above = [epsilon_lower_bound(errors, 0.0, 0.9) > epsilon for errors in simulated(rate, rate, trials)]
    assert np.mean(above) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / ROUNDS)


def test_the_lower_bound_is_not_idle() -> None:
    rate = 1 / (1 + np.exp(2.0))
    bounds = [epsilon_lower_bound(errors, 0.0, 0.9) for errors in simulated(rate, rate, 2000)]
    assert 1.6 < np.median(bounds) < 2.0


def test_a_one_sided_release_needs_the_other_direction() -> None:
    """No false negatives and FPR 1/2: only (1 - delta - FPR) / FNR shows the large epsilon."""
    assert epsilon_lower_bound(Errors(100, 200, 0, 200), 0.01, 0.95) > 3
    assert epsilon_lower_bound(Errors(0, 200, 100, 200), 0.01, 0.95) > 3


def test_nothing_follows_from_no_trials() -> None:
    assert epsilon_lower_bound(Errors(0, 0, 0, 0), 0.01, 0.95) == 0
    assert advantage_interval(Errors(0, 0, 3, 9), 0.95) == (0, -1, 1)


@pytest.mark.parametrize(("fpr", "fnr"), [(0.5, 0.5), (0.1, 0.4), (0.0, 0.02)])
def test_the_advantage_interval_holds_as_often_as_it_says(fpr: float, fnr: float) -> None:
    intervals = [advantage_interval(errors, 0.9) for errors in simulated(fpr, fnr, 200)]
    outside = [not low <= 1 - fpr - fnr <= high for _, low, high in intervals]
    assert np.mean(outside) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / ROUNDS)
