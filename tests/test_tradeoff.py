"""Precision, recall and rates against their definitions, ties included; phi with all its edges."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from draws import when

pytest.importorskip("sklearn", reason="the measures need the extra 'train'")

from deniable.mechanisms import Gaussian
from deniable.scores import privacy_loss
from deniable.tradeoff import (
    advantage,
    average_precision,
    average_precision_bound,
    chance_level,
    phi,
    precision_recall,
    rank_correlation,
    ranks,
    rates,
    tpr_at,
)

scored = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30).filter(
    lambda rows: 0 < sum(member for _, member in rows) < len(rows)
)


def naive_points(rows: list[tuple[int, bool]]) -> list[tuple[int, int]]:
    """(members accused, non-members accused) at every threshold, from the highest down, by counting."""
    levels = sorted({score for score, _ in rows}, reverse=True)
    return [(sum(s >= level and m for s, m in rows), sum(s >= level and not m for s, m in rows)) for level in levels]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30))
def test_ranks_and_their_correlation_are_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    np.testing.assert_array_equal(ranks(first), rankdata(first))
    if when(bool(np.ptp(first) and np.ptp(second))):
        assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
    if np.ptp(first) == 0:
        assert rank_correlation(first, second) is None
    first[0] = np.nan
    assert np.isnan(ranks(first)[0])


@given(scored)
@settings(max_examples=40)
def test_curves_count_what_they_say(rows: list[tuple[int, bool]]) -> None:
    scores, member = [s for s, _ in rows], [m for _, m in rows]
    points, members = naive_points(rows), sum(member)
    others = len(rows) - members
    curve = precision_recall(scores, member)
    assert curve.precision == pytest.approx([tp / (tp + fp) for tp, fp in points])
    assert curve.recall == pytest.approx([tp / members for tp, _ in points])
    roc = rates(scores, member)
    assert roc.tpr == pytest.approx([0, *(tp / members for tp, _ in points)])
    assert roc.fpr == pytest.approx([0, *(fp / others for _, fp in points)])
    recalls = [0, *(tp / members for tp, _ in points)]
    gained = zip(points, np.diff(recalls), strict=True)
    assert average_precision(scores, member) == pytest.approx(sum(tp / (tp + fp) * step for (tp, fp), step in gained))
    assert advantage(scores, member) == pytest.approx(max(0, *(tp / members - fp / others for tp, fp in points)))
    for fpr in (0.0, 0.1, 0.5, 1.0):
        reached = [tp / members for tp, fp in points if fp / others <= fpr]
        assert tpr_at(scores, member, fpr) == pytest.approx(max([0, *reached]))


@settings(max_examples=30)
@given(scored, st.randoms(use_true_random=False))
def test_the_order_of_records_never_matters(rows: list[tuple[int, bool]], random: np.random.Generator) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    before, after = (average_precision([s for s, _ in r], [m for _, m in r]) for r in (rows, shuffled))
    assert before == pytest.approx(after)


def test_extremes() -> None:
    member = [True, True, False, False]
    assert average_precision([1, 1, 1, 1], member) == 0.5
    assert average_precision([inf, 3, 2, -inf], member) == 1
    assert advantage([4, 3, 2, 1], member) == 1
    assert advantage([4, 3, 2, 1], member, threshold=3.5) == 0.5
    assert advantage([1, 2, 3, 4], member, threshold=2.5) == -1
    assert tpr_at([4, 2, 3, 1], member, 0.001) == 0.5
    assert tpr_at([3, 2, 3, 1], member, 0.001) == 0  # the best member is tied with a non-member
    assert tpr_at(range(2000, 0, -1), [False] + [True] * 999 + [False] * 999 + [True], 0.001) == 0.999


@pytest.mark.parametrize(
    ("scores", "member", "said"),
    [
        ([1.0, float("nan")], [True, False], "NaN"),
        ([1.0, 2.0], [True, True], "both members and non-members"),
        ([1.0, 2.0], [0, 2], "True and False"),
        ([1.0], [True, False], "equally many"),
        ([], [], "both members"),
    ],
)
def test_bad_scores_are_refused(scores: list[float], member: list[bool], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        average_precision(scores, member)


def test_guessing_stays_below_the_chance_level_as_often_as_it_says() -> None:
    level = chance_level(100, repeats=3, confidence=0.9)
    generator = np.random.default_rng(7)
    member = np.repeat([True, False], 50)
    means = [np.mean([average_precision(generator.random(100), member) for _ in range(3)]) for _ in range(400)]
    assert 0.9 - 4 * np.sqrt(0.09 / 400) <= np.mean(np.array(means) <= level) <= 0.9 + 4 * np.sqrt(0.09 / 400)
    assert 0.5 < chance_level(2000) < chance_level(100)


@pytest.mark.parametrize("possible", [0.0, 0.01, 0.3, 0.9, 1.0])
def test_the_bound_on_average_precision_is_reached_and_kept(possible: float) -> None:
    """Reached by tpr = min(1, fpr + a): a share a of the members stands out, as many of the others stand back."""
    count = 10_000
    members, others = np.linspace(0, 1, count), np.linspace(possible, 1 + possible, count)
    found = average_precision(-np.concatenate([members, others]), np.repeat([True, False], count))
    bound = average_precision_bound(possible)
    assert found == pytest.approx(bound, abs=0.002)
    seen = np.random.default_rng(1).normal(np.repeat([1.0, 0.0], count))
    largest = float(privacy_loss(Gaussian(1)).advantage())
    assert average_precision(seen, np.repeat([True, False], count)) < average_precision_bound(largest)


ORIGINAL = {"original_precision": 0.9, "original_accuracy": 0.8, "classes": 10}


def test_phi_by_hand() -> None:
    """(0.9 - 0.7)(0.8 - 0.1) / ((0.8 - 0.6)(0.9 - 0.5)) = 1.75."""
    assert phi(precision=0.7, accuracy=0.6, **ORIGINAL) == pytest.approx(1.75)
    assert phi(precision=0.85, accuracy=0.4, **ORIGINAL) == pytest.approx(0.05 * 0.7 / (0.4 * 0.4))


@pytest.mark.parametrize(
    ("precision", "accuracy", "expected"),
    [
        (0.7, 0.8, 2),  # accuracy kept
        (0.7, 0.9, 2),  # accuracy gained
        (0.5, 0.79999, 2),  # bounded
        (0.9, 0.6, 0),  # AP kept
        (0.95, 0.6, 0),  # AP grown
        (0.9, 0.8, 0),  # nothing happened
        (0.95, 0.9, 0),  # AP grown, accuracy gained
        (0.5, 0.1, 1),  # all privacy gained, all accuracy lost
    ],
)
def test_phi_at_its_edges(precision: float, accuracy: float, expected: float) -> None:
    assert phi(precision=precision, accuracy=accuracy, **ORIGINAL) == pytest.approx(expected)


def test_phi_is_undefined_where_nothing_leaks() -> None:
    for original in (0.5, 0.49):
        assert phi(original_precision=original, precision=0.5, original_accuracy=0.8, accuracy=0.7, classes=2) is None


def test_phi_of_a_model_that_only_guesses() -> None:
    """No accuracy to lose: the numerator is 0 as soon as any is lost."""
    assert phi(original_precision=0.9, precision=0.6, original_accuracy=0.1, accuracy=0.05, classes=10) == 0


@given(*[st.floats(0, 1)] * 4, st.integers(2, 100))
def test_phi_is_the_printed_formula(p0: float, p: float, a0: float, a: float, classes: int) -> None:
    found = phi(original_precision=p0, precision=p, original_accuracy=a0, accuracy=a, classes=classes)
    above, below = max(0, (p0 - p) * (a0 - 1 / classes)), max(0, (a0 - a) * (p0 - 0.5))
    if when(p0 <= 0.5):
        assert found is None
    elif when(below > 1e-300 and p0 > p):
        assert found == pytest.approx(min(2, above / below))
    else:
        assert found in (0, 2)


def test_phi_refuses_what_is_no_share() -> None:
    with pytest.raises(ValueError, match=r"accuracy must be .* got 1\.2"):
        phi(precision=0.5, accuracy=1.2, **ORIGINAL)
