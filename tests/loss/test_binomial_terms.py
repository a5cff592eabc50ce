"""Sums over millions of binomial terms by a rule of a few hundred places equal those term by term."""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.loss.compose import binomial_terms
from deniable.loss.compose.binomial_terms import sum_rule

QUESTIONS = {
    "delta": lambda loss, k: loss.delta(k),
    "tail": lambda loss, k: loss.exceedance(k),
    "null tail": lambda loss, k: loss.pair.null_tail(k),
}


@pytest.mark.parametrize("widest", [64, 500, 5000])
@pytest.mark.parametrize("last", [5040, 5063, 5100, 9999])
def test_a_rule_sums_what_falls_from_its_first_term_on(widest, last):
    """However fast: e^{-x}, which is gone within the first block, and a slow wave."""
    places, weights = sum_rule(5000, last, widest)
    every = np.arange(5000, last + 1.0)
    for function in (
        lambda x: np.exp(5000 - x),
        lambda x: np.exp((5000 - x) / 300),
        lambda x: 2 + np.cos(x / 3000),
        np.ones_like,
    ):
        assert float(weights @ function(places)) == pytest.approx(float(function(every).sum()), rel=1e-13)


@pytest.mark.parametrize(("epsilon", "steps"), [(2e-3, 10**6), (1e-4, 10**7), (0.02, 10**6)])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_rule_gives_the_same_as_every_term(monkeypatch, epsilon, steps, question):
    mechanism, spread = dn.RandomizedResponse(epsilon, 2).composed(steps), epsilon * steps**0.5

    def answers(most):
        monkeypatch.setattr(binomial_terms, "_MANY_TERMS", most)
        loss = dn.privacy_loss(mechanism, adjacency="add-remove")
        return [QUESTIONS[question](loss, spread**2 / 2 + width * spread) for width in (-3.0, 0.0, 1.3, 9.0, 20.0)]

    for quick, naive in zip(answers(2**11), answers(10**9), strict=True):
        assert float(quick) == pytest.approx(float(naive), rel=1e-10)
        assert quick.least <= naive
        assert naive.least <= quick


@pytest.mark.parametrize("failure", [0.9, 0.5, 1e-3, 1e-12])
def test_quantiles_are_those_of_every_term(monkeypatch, failure):
    mechanism = dn.RandomizedResponse(1e-3, 2).composed(10**6)
    quick = dn.privacy_loss(mechanism, adjacency="add-remove").pair.exceeded_loss(failure)
    monkeypatch.setattr(binomial_terms, "_MANY_TERMS", 10**9)
    naive = dn.privacy_loss(mechanism, adjacency="add-remove").pair.exceeded_loss(failure)
    assert (float(quick), quick.error) == (float(naive), naive.error)
