"""Randomized response: the exact probabilities, its cost, and tests that a wrong mechanism fails."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, chisquare

import deniable as dn
from deniable.local import BinaryResponse, CategoricalResponse
from deniable.local.coins import BITS, Coins, below, chance_of_lie, entropy

LEAST = 1e-6
"""Least p-value of a right mechanism in the repeatable tests."""


def flips(randomizer: CategoricalResponse, count: int = 2_000_000, seed: int | None = 5) -> int:
    bits = (np.arange(count, dtype=np.uint8) % 2).reshape(-1, 100)
    return int((randomizer.perturb(bits, seed) != bits).sum())


def p_value(flipped: int, count: int, chance: float) -> float:
    """Two-sided and exact, by the binomial distribution."""
    return 2 * min(binom.cdf(flipped, count, chance), binom.sf(flipped - 1, count, chance))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 8.0])
def test_bits_are_flipped_as_often_as_epsilon_says(epsilon: float) -> None:
    assert p_value(flips(BinaryResponse(epsilon)), 2_000_000, 1 / (1 + exp(epsilon))) > LEAST


def test_a_wrong_mechanism_is_rejected() -> None:
    """Keeping with probability e^eps / (1 + e^eps) *and then* drawing uniformly would flip half as often."""
    honest = 1 / (1 + exp(1.0))
    assert p_value(flips(BinaryResponse(1.02)), 2_000_000, honest) < LEAST
    assert p_value(flips(BinaryResponse.from_retention(1 - honest)), 2_000_000, honest) < LEAST
    # a threshold of one byte alone is wrong by up to 1/256, and that would be seen
    byte = np.floor(256 * honest) / 256
    assert p_value(round(2_000_000 * byte), 2_000_000, honest) < LEAST


def empirical_loss(randomizer: CategoricalResponse, categories: int, runs: int) -> NDArray[np.float64]:
    """ln of the largest ratio between what two truths answer, estimated from `runs` answers to each."""
    truths = np.arange(categories).repeat(runs)[:, None]
    answers = randomizer.perturb(truths, seed=3)[:, 0].reshape(categories, runs)
    rates = np.stack([np.bincount(row, minlength=categories) for row in answers]) / runs
    return np.log(rates[:, None] / rates[None, :])


@pytest.mark.parametrize(("epsilon", "categories"), [(0.5, 2), (1.5, 3), (2.0, 7)])
def test_the_measured_loss_is_the_claimed_one(epsilon: float, categories: int) -> None:
    loss = empirical_loss(CategoricalResponse(epsilon, categories), categories, 400_000)
    exact = dn.privacy_loss(dn.RandomizedResponse(epsilon, categories)).epsilon(0)
    assert loss.max() == pytest.approx(float(exact), abs=0.05)
    assert exact == epsilon
    too_loud = empirical_loss(CategoricalResponse(1.2 * epsilon, categories), categories, 400_000)
    assert too_loud.max() > epsilon + 0.05  # what this test must not let pass


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_lies_are_uniform(categories: int) -> None:
    truth = np.full((300_000, 1), categories - 1)
    answers = CategoricalResponse(1.0, categories).perturb(truth, 1)[:, 0]
    counts = np.bincount(answers, minlength=categories)
    expected = np.full(categories, 1 / (exp(1) + categories - 1)) * len(truth)
    expected[-1] *= exp(1)
    assert chisquare(counts, expected).pvalue > LEAST


@given(st.floats(1e-6, 500), st.integers(2, 1000))
def test_the_chance_of_a_lie_is_rounded_to_the_safe_side(epsilon: float, categories: int) -> None:
    coin = Coins.of([chance_of_lie(epsilon, categories)])
    threshold = (int(coin.first[0]) << 64) + int(coin.rest[0])
    lie = Fraction(threshold, 2**BITS)
    ratio = (1 - lie) / (lie / (categories - 1))
    # the loss of the coin as tossed, in exact arithmetic, is at most epsilon, and less by no more than the grid costs
    assert Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()
    assert lie - Fraction(chance_of_lie(epsilon, categories)) < Fraction(1, 2**BITS)


def naive_toss(threshold: int, first: NDArray[np.uint8], words: NDArray[np.uint64]) -> list[bool]:
    """The twin: each coin as one comparison of a whole number of 72 bits, in Python integers."""
    supply, heads = iter(words.tolist()), []
    for byte in first.tolist():
        rest = next(supply) if byte == threshold >> 64 else 0
        heads.append((byte << 64) + rest < threshold)
    return heads


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 5.0, 60.0])
def test_two_stages_equal_one_comparison(epsilon: float) -> None:
    generator = np.random.default_rng(2)
    first = generator.integers(0, 256, 5000, dtype=np.uint8)
    words = generator.integers(0, 2**64, 5000, dtype=np.uint64)
    coin = Coins.of([chance_of_lie(epsilon, 2)])
    threshold = (int(coin.first[0]) << 64) + int(coin.rest[0])
    calls = iter([first.tobytes(), words.tobytes()])
    heads = coin.toss(50, 100, lambda count: next(calls)[:count])
    assert heads.reshape(-1).tolist() == naive_toss(threshold, first, words)


def test_below_is_uniform_and_redraws_the_incomplete_top() -> None:
    limit = 3 * 2**61 + 1  # a quarter of all words would be one value too often
    high = [2**64 - 1, 2**64 - 1, 5]
    supply = iter([np.array(high[:1], dtype=np.uint64), np.array(high[1:2], dtype=np.uint64), np.array([5], np.uint64)])
    assert below(limit, 1, lambda _: next(supply).tobytes()).tolist() == [5]
    assert chisquare(np.bincount(below(7, 70_000, entropy(0)), minlength=7)).pvalue > LEAST
    assert below(1, 4, entropy(0)).tolist() == [0, 0, 0, 0]


def test_retention_is_003s_two_coins() -> None:
    assert BinaryResponse.from_retention(0.5).epsilon == pytest.approx(log(3))
    for epsilon, retention in ((0.1, 0.05), (3.0, 0.905)):  # Bernau 2021b, Section 5: 5 % to 90 %
        assert BinaryResponse.from_retention(retention).epsilon == pytest.approx(epsilon, abs=0.01)
    kept = CategoricalResponse.from_retention((0.2, 0.7), categories=4)
    assert kept.epsilon == tuple(log((r + (1 - r) / 4) / ((1 - r) / 4)) for r in (0.2, 0.7))


@pytest.mark.parametrize(("features", "name"), [(600, "Purchases"), (6382, "Texas")])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 3])
def test_a_record_costs_what_003_table_1_says(features: int, name: str, epsilon: float) -> None:
    cost = BinaryResponse(epsilon).cost((features,))
    assert cost.epsilon == pytest.approx(features * epsilon)
    assert cost.features == features
    assert cost.mechanism == dn.RandomizedResponse(epsilon).composed(features)
    assert cost.loss.epsilon(0) == pytest.approx(features * epsilon)
    # the composed loss with a failure probability is far below the sum
    assert cost.loss.epsilon(1e-5) < cost.epsilon


def test_the_composed_loss_is_the_binomial_one() -> None:
    """Of 5 answers, k truths and 5 - k lies have the loss (2k - 5) epsilon: all 6 outcomes by hand."""
    q = 1 / (1 + exp(0.7))
    k = np.arange(6)
    with_truth, without = binom.pmf(k, 5, 1 - q), binom.pmf(k, 5, q)
    assert BinaryResponse(0.7).cost((5,)).loss.advantage() == pytest.approx(0.5 * np.abs(with_truth - without).sum())


def test_each_feature_may_have_its_own_epsilon_and_categories() -> None:
    randomizer = CategoricalResponse((0.2, 4.0, 1.0), (2, 2, 5))
    truth = np.ones((200_000, 3), dtype=np.int64)
    lies = (randomizer.perturb(truth, 4) != truth).sum(axis=0)
    for count, chance in zip(lies, (1 / (1 + exp(0.2)), 1 / (1 + exp(4)), 4 / (exp(1) + 4)), strict=True):
        assert p_value(int(count), 200_000, chance) > LEAST
    cost = randomizer.cost((3,))
    assert cost.epsilon == pytest.approx(5.2)
    assert cost.loss.epsilon(0) == pytest.approx(5.2)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float32])
def test_type_and_input_are_kept_and_seeds_repeat(dtype: type) -> None:
    bits = (np.arange(1200) % 3 == 0).astype(dtype).reshape(2, 600)
    before, randomizer = bits.copy(), BinaryResponse(1.0)
    first = randomizer.perturb(bits, seed=1)
    np.testing.assert_array_equal(bits, before)
    assert first.dtype == bits.dtype
    np.testing.assert_array_equal(first, randomizer.perturb(bits, seed=1))
    assert (first != randomizer.perturb(bits, seed=2)).any()
    assert (randomizer.perturb(bits) != randomizer.perturb(bits)).any()  # the operating system never repeats


def test_wide_records_and_waves_are_independent() -> None:
    """More than one wave, and a record wider than a wave."""
    for shape in ((3, 700_000), (9000, 150)):
        answers = BinaryResponse(0.5).perturb(np.zeros(shape, dtype=np.uint8), 7)
        assert p_value(int(answers.sum()), answers.size, 1 / (1 + exp(0.5))) > LEAST
        rows = answers.mean(axis=1 if shape[0] == 3 else 0)
        assert rows.std() > 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: BinaryResponse(0.0), "epsilon must be a finite number > 0, got 0.0"),
        (lambda: BinaryResponse(float("nan")), "epsilon"),
        (lambda: BinaryResponse(1.0, 3), "categories of a BinaryResponse must be 2"),
        (lambda: CategoricalResponse(1.0, 1), "categories must be a whole number >= 2, got 1"),
        (lambda: BinaryResponse.from_retention(1.0), "retention must be"),
        (lambda: BinaryResponse(1.0).perturb(np.array([[0, 2]])), "whole numbers from 0 to categories - 1"),
        (lambda: BinaryResponse(1.0).perturb(np.array([[0.5, np.nan]])), "whole numbers"),
        (lambda: CategoricalResponse(1.0, 3).perturb(np.array([[-1, 2]])), "whole numbers"),
        (lambda: CategoricalResponse(1.0, 3).perturb(np.array([[1.5, 2]])), "whole numbers"),
        (lambda: BinaryResponse(1.0).perturb(np.zeros(4)), r"records must be \(records, features\)"),
        (lambda: BinaryResponse((1.0, 2.0)).perturb(np.zeros((4, 3))), "one for each of the 3 features, got 2"),
        (lambda: BinaryResponse(1.0).perturb(np.array([["a"]])), "whole numbers"),
        (lambda: BinaryResponse(1.0).perturb(np.zeros((1, 2)), seed=-1), "seed"),
    ],
)
def test_bad_input_is_named(bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bad()  # type: ignore[operator]


def test_extreme_epsilons() -> None:
    bits = np.zeros((10, 1000), dtype=np.uint8)
    assert BinaryResponse(700.0).perturb(bits, 0).sum() == 0
    assert BinaryResponse(1e-12).perturb(bits, 0).mean() == pytest.approx(0.5, abs=0.03)
    assert len(BinaryResponse(1.0).perturb(bits[:0], 0)) == 0
