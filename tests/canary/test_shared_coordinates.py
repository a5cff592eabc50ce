"""Canaries that share coordinates, guesses that know earlier coins, people with several records: twins and coverage."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom, norm
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import deniable as dn
from deniable.canary import CanaryPlan, canaries, read_plan
from deniable.canary.canary_claim import claim_for_people
from deniable.canary.gradient_canaries import GradientCanaries, guess_adaptively, guess_at_once
from deniable.evidence.attack_scores import Scores
from deniable.evidence.one_run import SHARES, count_tries, epsilon_from_guesses, right_guesses, right_guesses_p

Floats = NDArray[np.float64]
DELTA = 1e-5


def tables(random: np.random.Generator, coins: NDArray[np.bool_], noise: float, rate: float, steps: int) -> Floats:
    """Log-likelihoods of coordinates with k canaries each, sampled and noised in every step."""
    coordinates, k = coins.shape
    drawn = random.binomial(coins.sum(1)[:, None], rate, (coordinates, steps))
    seen = drawn + noise * random.normal(size=drawn.shape)
    found = np.zeros((coordinates, k + 1))
    for inside in range(k + 1):
        j = np.arange(inside + 1)
        law = binom.logpmf(j, inside, rate)
        found[:, inside] = logsumexp(law + (seen[..., None] * j - j * j / 2) / noise**2, axis=2).sum(1)
    return found


def play(plan: CanaryPlan, claim: dn.Training, noise: float) -> GradientCanaries:
    """A loop of one's own with this noise in place of the claimed one, on one coordinate for each that is needed."""
    random, size = torch.Generator().manual_seed(0), len(plan) // plan.per_coordinate
    run = plan.gradients([nn.Parameter(torch.zeros(size))], clip=1.0, noise=claim.noise, rate=claim.rate)
    for _ in range(claim.steps):
        sums = [torch.zeros(size)]
        run.add(sums, torch.nonzero(torch.rand(plan.records, generator=random) < claim.rate).flatten().tolist())
        run.observe([sums[0] + noise * torch.randn(size, generator=random)])
    return run


@pytest.mark.parametrize(("k", "records", "rate"), [(1, 1, 0.3), (3, 1, 0.3), (2, 3, 0.3), (2, 2, 1.0)])
def test_likelihoods_are_sums_over_who_is_drawn(k: int, records: int, rate: float) -> None:
    """Against a sum over all batches, by hand."""
    number = 2 * k
    plan = canaries(100, number, per_coordinate=k, records_per_person=records)
    run = plan.gradients([nn.Parameter(torch.zeros(5))], clip=2.0, noise=0.8, rate=rate)
    naive, drawn = np.zeros((2, k + 1)), torch.Generator().manual_seed(1)
    for _ in range(3):
        sums = [torch.ones(5)]
        run.add(sums, torch.nonzero(torch.rand(100, generator=drawn) < rate).flatten().tolist())
        noisy = sums[0] + 1.6 * torch.randn(5, generator=drawn)
        run.observe([noisy])
        for place in range(2):
            seen = float((noisy[int(run._place[place, 0])] - 1) * run._sign[place, 0]) / 2
            for inside in range(k + 1):
                naive[place, inside] += _log_density(seen, inside * records, rate) - norm.logpdf(seen, 0, 0.8)
    np.testing.assert_allclose(run._likelihoods, naive, rtol=1e-4, atol=1e-5)


def _log_density(seen: float, records: int, rate: float) -> float:
    terms = [
        np.prod([rate if one else 1 - rate for one in batch]) * norm.pdf(seen, sum(batch), 0.8)
        for batch in product((0, 1), repeat=records)
    ]
    return float(np.log(sum(terms)))


def test_ratios_are_sums_over_all_other_coins() -> None:
    found = np.random.default_rng(3).normal(size=(4, 4))
    expected = [
        np.log(
            sum(np.exp(found[place, 1 + sum(others)]) for others in product((0, 1), repeat=2))
            / sum(np.exp(found[place, sum(others)]) for others in product((0, 1), repeat=2))
        )
        for place in range(4)
    ]
    np.testing.assert_allclose(guess_at_once(found), np.repeat(expected, 3), atol=1e-8)


def test_adaptive_guesses_follow_the_coins_that_were_shown() -> None:
    """Against a plain replay: every guess from the coins of earlier guesses alone, counted as the estimators count."""
    random = np.random.default_rng(5)
    coins = random.random((6, 3)) < 0.5
    found = random.normal(size=(6, 4))
    scores = guess_adaptively(found, coins.ravel())
    known: list[list[bool]] = [[] for _ in range(6)]
    right = []
    for turn in range(18):
        odds = {place: _odds(found[place], known[place], 3) for place in range(6) if len(known[place]) < 3}
        place = max(odds, key=lambda one: odds[one]) if turn % 2 == 0 else min(odds, key=lambda one: odds[one])
        truth = bool(coins[place, len(known[place])])
        right.append(truth == (turn % 2 == 0))
        known[place].append(truth)
    counted = Scores.of(scores, coins.ravel())
    assert [right_guesses(counted, guesses) for guesses in range(1, 19)] == np.cumsum(right).tolist()


def _odds(found: Floats, known: list[bool], k: int) -> float:
    """By listing all coins that are not known."""
    weights = {True: 0.0, False: 0.0}
    for rest in product((False, True), repeat=k - len(known)):
        weights[rest[0]] += np.exp(found[sum(known) + sum(rest)])
    return float(np.log(weights[True] / weights[False]))


def test_a_guess_never_knows_its_own_coin() -> None:
    """Turning the coin of the last guess changes no score."""
    random = np.random.default_rng(8)
    coins, found = random.random(12) < 0.5, random.normal(size=(4, 4))
    before = guess_adaptively(found, coins)
    last = int(np.abs(before).argmin())
    coins[last] = ~coins[last]
    np.testing.assert_array_equal(guess_adaptively(found, coins), before)


@pytest.mark.parametrize("adaptive", [False, True], ids=["at once", "adaptive"])
@pytest.mark.parametrize("k", [1, 4])
def test_coverage_and_power_of_the_bound_for_every_mechanism(k: int, adaptive: bool) -> None:
    """Bounds above the truth: at most 5 % of 80 trainings (9 or more have probability 2 %); less noise is caught."""
    noise, canaries = 2.0, 800
    epsilon = float(dn.privacy_loss(dn.Gaussian(noise)).epsilon(DELTA))
    random = np.random.default_rng(17)

    def refuted(played: float) -> bool:
        coins = random.random((canaries // k, k)) < 0.5
        found = tables(random, coins, played, 1.0, 1)
        scores = guess_adaptively(found, coins.ravel()) if adaptive else guess_at_once(found)
        tries = count_tries(Scores.of(scores, coins.ravel()), SHARES)
        return any(right_guesses_p(canaries, r, v, epsilon, DELTA) < 0.05 / len(SHARES) for r, v in tries)

    assert sum(refuted(noise) for _ in range(80)) <= 8
    assert all(refuted(0.05) for _ in range(3))


def test_guesses_that_peek_at_their_own_coin_are_far_above_the_truth() -> None:
    """What the assumption of adaptive guessing is for: break it, and the bound says nothing about the training."""
    coins = np.random.default_rng(2).random(300) < 0.5
    peeked = Scores.of(np.where(coins, 1.0, -1.0) * np.arange(300, 0, -1), coins)
    (tried,) = count_tries(peeked, (1.0,))
    assert epsilon_from_guesses(300, *tried, DELTA) > 2  # of a training that shows nothing


def test_several_canaries_a_coordinate_show_more_where_coordinates_are_few() -> None:
    """Keinan, Shenfeld, Ligett 2025: 1,000 coordinates, 100 steps, rate .1, epsilon 2: .49 with one, .62 with eight."""
    rate, steps = 0.1, 100
    plan = dn.calibrate(
        lambda noise: dn.Gaussian(noise).subsampled(rate).composed(steps), dn.Epsilon(2.0, DELTA), "add-remove"
    )
    random = np.random.default_rng(4)

    def shown(k: int) -> float:
        coins = random.random((1000, k)) < 0.5
        scores = Scores.of(guess_at_once(tables(random, coins, plan.value, rate, steps)), coins.ravel())
        return epsilon_from_guesses(1000 * k, 100, right_guesses(scores, 100), DELTA)

    one, eight = (np.mean([shown(k) for _ in range(3)]) for k in (1, 8))
    assert 0.2 < one < 0.8
    assert eight > one


def test_a_plan_with_shared_coordinates_is_judged_and_kept(tmp_path: object) -> None:
    for noise, verdict in ((5.0, "consistent"), (0.1, "violated")):
        plan = canaries(1000, 800, per_coordinate=4)
        claim = dn.Training(5.0, 0.5, 5, "add-remove")
        plan.score(play(plan, claim, noise), adaptive=noise < 1)
        assert plan.verdict(claim, delta=DELTA).verdict == verdict
        with pytest.raises(ValueError, match="share a coordinate"):
            plan.verdict(claim, delta=DELTA, method="order-statistics")
    with pytest.raises(ValueError, match="made at once"):
        plan.verdict(claim, delta=DELTA, method="one-run-mechanism")
    place = plan.save(f"{tmp_path}/plan.json")
    again = read_plan(place)
    assert (again.adaptive, again.per_coordinate) == (True, 4)
    assert again.verdict() == plan.verdict()
    assert any("never its own" in one.text for one in again.verdict().measured.epsilon.lower_bound.assumptions)


def test_a_person_with_several_records_is_one_canary() -> None:
    """Its own claim is that of a person, exactly; a bound above it is a violation, and only that."""
    for noise in (6.0, 0.1):
        plan = canaries(2000, 500, records_per_person=3)
        assert len(set(plan.carriers.tolist())) == 1500
        claim = dn.Training(6.0, 0.2, 10, "add-remove")
        plan.score(play(plan, claim, noise))
        found = plan.verdict(claim, delta=DELTA)
        assert (found.verdict == "violated") == (noise < 6)
        assert (found.measured.epsilon.lower_bound.value > found.input.claimed_epsilon) == (noise < 6)
        alone = float(dn.privacy_loss(claim.mechanism, "add-remove").epsilon(DELTA))
        assert found.input.claimed_epsilon > alone
        assert claim_for_people(claim, DELTA, 1).bound == pytest.approx(alone, rel=1e-6)


def test_records_of_a_person_stand_in_several_places() -> None:
    data = TensorDataset(torch.randn(60, 4), torch.randint(0, 3, (60,)))
    plan = canaries(data, 10, kind="mislabelled", classes=3, records_per_person=4)
    assert plan.dataset is not None
    changed = {i for i in range(60) if int(plan.dataset[i][1]) != int(data[i][1])}
    assert changed == set(plan.carriers.reshape(10, 4)[plan.coins].ravel().tolist())

    def loss(model: object, items: list[tuple[Tensor, Tensor]]) -> Tensor:
        return torch.ones(len(items))

    plan.score(nn.Linear(4, 3), loss=loss)
    np.testing.assert_array_equal(plan.scores, np.full(10, -4.0))


def test_tokens_that_no_record_has() -> None:
    items = [torch.arange(6)] * 8
    plan = canaries(items, 5, kind="new-token", vocabulary=[100, 101])
    assert plan.dataset is not None
    assert {int(token) for item in plan.dataset.items for token in item} <= {100, 101}


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple"):
        canaries(100, 10, per_coordinate=3)
    with pytest.raises(ValueError, match="for gradient canaries"):
        canaries([0] * 100, 10, kind="new-token", vocabulary=5, per_coordinate=2)
    with pytest.raises(ValueError, match="a person with 3 of them"):
        canaries(29, 10, records_per_person=3)
    plan = canaries(100, 10)
    with pytest.raises(ValueError, match="adaptive guesses need the run"):
        plan.score(dict.fromkeys(plan.identifiers, 1.0), adaptive=True)
    people = canaries(100, 10, records_per_person=2)
    people.score(dict.fromkeys(people.identifiers, 1.0))
    with pytest.raises(ValueError, match=r"claim dn\.Epsilon"):
        people.verdict(dn.Training(1.0, 0.1, 5, "replace"), delta=DELTA)
