"""Attacks that reach exactly what is proven: their limits lie above it no more often than they say."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="attacks need the extra 'train'")

import deniable as dn
from deniable.adversaries import Scored
from deniable.comparison.attack_measures import FPRS, measure_attack
from deniable.results.attack_result import AttackInput

MEMBERS, SIMULATIONS, MOST_ALARMS = 150, 120, 13
"""At 95 %, 6 alarms are expected; 14 or more have probability 0.4 %."""


@pytest.mark.parametrize("mu", [0.7, 2.5])
def test_limits_exceed_the_exact_bound_no_more_often_than_they_say(mu: float) -> None:
    """Every record is a release of Gaussian DP, and the attack the best that there is."""
    loss, delta = dn.privacy_loss(dn.GaussianDP(mu)), 0.01
    bounds = [*(float(loss.tpr(fpr)) for fpr in FPRS), float(loss.advantage()), float(loss.epsilon(delta))]
    given = AttackInput(
        attack="lira", repeats=1, seed=0, delta=delta, confidence=0.95, data_sha256=(), members=2 * MEMBERS,
        non_members=2 * MEMBERS, tested=2 * MEMBERS,
    )  # fmt: skip
    generator, alarms = np.random.default_rng(5), np.zeros(len(bounds))
    for _ in range(SIMULATIONS):
        scored = Scored(generator.normal(mu, 1, MEMBERS), generator.normal(0, 1, MEMBERS), mu / 2)
        row = measure_attack("lira", scored, given, None)
        shown = [*(limits.low for limits in row.tpr), row.advantage.low, row.epsilon_lower_bound.value or 0.0]
        alarms += np.array(shown) > bounds
    assert (alarms <= MOST_ALARMS).all(), alarms
    assert alarms.sum() < 3 * MOST_ALARMS
