"""Privacy loss distributions as pairs of probability mass functions: never less than what was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.mechanisms import PmfPair


def hockey_stick(pair: dn.Mechanism, epsilon: float, back: bool = False) -> float:
    """By its definition, from the pair's probabilities."""
    assert isinstance(pair, PmfPair)
    p, q = np.array(pair.with_person), np.array(pair.without_person)
    if back:
        p, q = q, p
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum())


def test_losses_and_masses_are_a_pair() -> None:
    pair = dn.from_pld([np.log(3), -np.log(3)], [0.75, 0.25])
    assert pair.with_person == pytest.approx((0.75, 0.25, 0, 0))
    assert pair.without_person == pytest.approx((0.25, 0.75, 0, 0))


def test_what_is_missing_is_an_infinite_loss() -> None:
    for pair in (
        dn.from_pld([0.0], [0.9]),
        dn.from_pld([0.0], [0.9], infinite=0.1),
        dn.from_pld({"losses": [0.0, float("inf")], "masses": [0.9, 0.1]}),
    ):
        assert pair.with_person == pytest.approx((0.9, 0.1, 0))
        assert pair.without_person == pytest.approx((0.9, 0, 0.1))


@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_no_divergence_is_below_dp_accountings_own(rate: float) -> None:
    """Both directions: the pair of a removed record dominates an added one, too."""
    accounting = pytest.importorskip("dp_accounting", reason="needs the extra 'oracles'")
    make = accounting.pld.privacy_loss_distribution.from_gaussian_mechanism
    pld = make(1.0, value_discretization_interval=1e-3, sampling_prob=rate)
    exact = dn.privacy_loss(dn.Gaussian(1.0).subsampled(rate) if rate < 1 else dn.Gaussian(1.0), "add-remove")
    pair = dn.from_pld(pld)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        theirs = pld.get_delta_for_epsilon(epsilon)
        ours = max(hockey_stick(pair, epsilon), hockey_stick(pair, epsilon, back=True))
        assert exact.delta(epsilon) <= ours + 1e-12
        assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (([0.0, 1.0], [0.5]), "as many as there are losses"),
        (([0.0], [1.5]), "sum to at most 1"),
        (([0.0], [-0.5]), "must be probabilities"),
        (([float("nan")], [1.0]), "must be probabilities"),
        (([-1.0], [1.0]), "whose mean of e.-loss is at most 1, got 2.71"),
        (("x", [1.0]), "losses must be a list of numbers"),
        (([[0.0]], [1.0]), "losses must be a list of numbers"),
        (([0.0],), "masses must be given"),
        (([], []), "from 1 to"),
    ],
)
def test_anything_else_is_refused_on_one_line(arguments: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        dn.from_pld(*arguments)


def test_an_optimistic_distribution_is_refused() -> None:
    accounting = pytest.importorskip("dp_accounting", reason="needs the extra 'oracles'")
    make = accounting.pld.privacy_loss_distribution.from_gaussian_mechanism
    with pytest.raises(ValueError, match="optimistic"):
        dn.from_pld(make(1.0, pessimistic_estimate=False, value_discretization_interval=1e-2))
