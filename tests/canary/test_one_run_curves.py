"""One run with the claimed training's own curve: against closed forms, simulations and a law that is too narrow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

import deniable as dn
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import Bound
from deniable.evidence.estimators import MechanismCurve
from deniable.evidence.one_run import SHARES, count_tries, right_guesses_p
from deniable.evidence.one_run_curves import CurveTest, OrderTest, one_run_mechanism, order_statistics
from deniable.mechanisms import Adjacency, Training

NOISE, RATE, STEPS, DELTA = 0.8, 0.02, 200, 1e-5


def gaussian(mu: float) -> dn.PrivacyLoss:
    return dn.privacy_loss(dn.GaussianDP(mu))


def played(random: np.random.Generator, canaries: int, noise: float) -> Scores:
    """Log-likelihood ratios of the claimed training, played with this noise."""
    coins = random.random(canaries) < 0.5
    drawn = (random.random((canaries, STEPS)) < RATE) & coins[:, None]
    seen = drawn + noise * random.normal(size=(canaries, STEPS))
    return Scores.of(np.log1p(RATE * np.expm1((seen - 0.5) / NOISE**2)).sum(1), coins)


def claimed() -> MechanismCurve:
    return MechanismCurve.of(Training(NOISE, RATE, STEPS, Adjacency.ADD_REMOVE), DELTA)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_the_tangents_stay_below_the_curve_and_close_to_it(mu: float) -> None:
    test, rates = CurveTest(gaussian(mu)), np.linspace(0.001, 0.999, 57)
    found = np.array([test.least_fpr(float(rate)) for rate in rates])
    exact = ndtr(ndtri(rates) - mu)
    assert (found <= exact + 1e-12).all()
    assert (exact - found < 5e-3).all()


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_the_law_of_errors_is_the_simulated_one(mu: float, share: float) -> None:
    """The p-value is at least what is simulated, and not much more."""
    random, canaries, times = np.random.default_rng(5), 200, 4000
    guesses = round(share * canaries)
    coins = random.random((times, canaries)) < 0.5
    losses = mu * (random.normal(size=coins.shape) + mu * coins) - mu * mu / 2
    surest = np.argsort(-np.abs(losses), axis=1)[:, :guesses]
    wrong = np.take_along_axis((losses > 0) != coins, surest, axis=1).sum(1)
    test = OrderTest(gaussian(mu))
    for errors in np.quantile(wrong, [0.02, 0.1, 0.5]).astype(int):
        p_value, seen = test.p_value(canaries, guesses, guesses - int(errors)), (wrong <= errors).mean()
        spread = 4 * (seen * (1 - seen) / times) ** 0.5
        assert seen - spread <= p_value <= 1.05 * seen + spread + 0.003


def test_one_guess_about_each_is_a_binomial() -> None:
    mu, canaries = 1.0, 50
    test = OrderTest(gaussian(mu))
    assert test.p_value(canaries, canaries, 40) == pytest.approx(binom.cdf(10, canaries, ndtr(-mu / 2)), rel=1e-6)


def test_independent_errors_of_each_rank_would_reject_too_often() -> None:
    """Every rank's mean rate, and errors that are independent between ranks: narrower than the truth."""
    random, mu, canaries = np.random.default_rng(2), 2.0, 400
    losses = np.abs(random.normal(size=(2000, canaries)) * mu + mu**2 / 2)
    law = np.ones(1)
    for rate in expit(-np.sort(losses, axis=1)).mean(0):
        law = np.convolve(law, [1 - rate, rate])
    critical = int(np.searchsorted(law.cumsum(), 0.01)) - 1
    truth = binom.cdf(critical, canaries, ndtr(-mu / 2))
    assert truth > 1.3 * law[: critical + 1].sum()
    assert OrderTest(gaussian(mu)).p_value(canaries, canaries, canaries - critical) >= truth * 0.999


@pytest.mark.parametrize("kind", [CurveTest, OrderTest])
def test_false_alarms_and_power(kind: type[CurveTest | OrderTest]) -> None:
    """A bound is above the truth where the true noise is refuted: at most 5 % of trainings; a third of it is caught."""
    random, test = np.random.default_rng(11), kind(claimed().loss(NOISE))
    alarms = [_is_refuted(test, played(random, 300, NOISE)) for _ in range(200)]
    assert sum(alarms) <= 16  # of 200 at 5 %: more has probability 2 %
    assert all(_is_refuted(test, played(random, 500, NOISE / 3)) for _ in range(3))


@pytest.mark.parametrize("estimate", [one_run_mechanism, order_statistics])
def test_bounds_are_below_the_truth_and_say_what_they_assume(estimate: Callable[..., Bound]) -> None:
    random, curve = np.random.default_rng(4), claimed()
    truth = float(curve.loss(NOISE).epsilon(DELTA))
    found = estimate(played(random, 500, NOISE), curve)
    assert 0.15 * truth < found.value <= truth
    assert found.noise is not None
    assert found.noise >= NOISE
    assert any("coin" in assumption.text for assumption in found.assumptions)


def test_a_shared_loss_breaks_order_statistics_alone() -> None:
    """Why it is never the default: a mechanism that is as private as claimed, whose canaries succeed or fail together.

    Each release draws one strength |L| by the law of the Gaussian's, for all canaries, and shows every coin through
    randomized response of that strength: mu-GDP for each coin, whatever the others are.
    """
    random, mu, canaries = np.random.default_rng(3), 1.0, 300
    tests = {kind: kind(gaussian(mu)) for kind in (CurveTest, OrderTest)}
    alarms, guarantee = dict.fromkeys(tests, 0), float(gaussian(mu).epsilon(DELTA))
    bare_alarms = 0
    for _ in range(200):
        coins = random.random(canaries) < 0.5
        strength = abs(mu * random.normal() + mu**2 / 2)
        right = random.random(canaries) < expit(strength)
        scores = Scores.of(np.where(right == coins, 1.0, -1.0) * strength + 1e-9 * random.normal(size=canaries), coins)
        for kind in alarms:
            alarms[kind] += _is_refuted(tests[kind], scores)
        tries = count_tries(scores, SHARES)
        bare_alarms += any(right_guesses_p(canaries, *one, guarantee, DELTA) < 0.05 / len(SHARES) for one in tries)
    assert alarms[CurveTest] <= 16
    assert bare_alarms <= 16
    assert alarms[OrderTest] > 40


def _is_refuted(test: CurveTest | OrderTest, scores: Scores) -> bool:
    tries = count_tries(scores, SHARES)
    return any(test.refutes(len(scores), guesses, right, 0.05 / len(SHARES)) for guesses, right in tries)
