"""The words: which is better, where the trade is favourable, when to say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="comparisons need the extra 'train'")

from deniable.comparison.recommendation import Point, recommend
from deniable.comparison.repeat_measures import Shift, spread_of

CHANCE = 0.52


def point(epsilon: float, accuracy: float, precision: float, phi: float | None = 1.5) -> Point:
    name = f"level {epsilon:g}"
    rest = {"accuracy": accuracy, "precision": precision, "phi": phi, "phi_error": 0.1, "spread": 0.01}
    return Point(name, epsilon, epsilon, epsilon, **rest)  # type: ignore[arg-type]


ORIGINAL = point(float("inf"), 0.9, 0.8, None)
CENTRAL = [point(10, 0.8, 0.7), point(2, 0.5, 0.6), point(0.1, 0.1, 0.5, 0.9)]


def test_the_one_that_keeps_more_accuracy_is_chosen() -> None:
    better = [point(3, 0.88, 0.7, 2), point(1, 0.8, 0.6, 2), point(0.1, 0.3, 0.51, 1.05)]
    found = recommend(ORIGINAL, {"central": CENTRAL, "local": better}, CHANCE)
    assert found.better == "local"
    assert found.common == (0.51, 0.8)
    assert found.difference == pytest.approx(0.16, abs=0.03)
    assert "keeps on average" in found.sentences[0]
    assert found.favourable == {"central": [10, 2], "local": [3, 1]}  # 1.05 is not above 1 by its error
    text = " ".join(found.sentences)
    assert "Central privacy: the trade is favourable (phi above 1) for epsilon from 2 to 10." in text
    assert (
        "level 0.1 (epsilon 0.1 a record) is the first to bring the attack down to guessing; accuracy is then 30 %"
        in text
    )
    mirrored = recommend(ORIGINAL, {"central": better, "local": CENTRAL}, CHANCE)
    assert mirrored.better == "central"
    assert mirrored.difference == pytest.approx(-found.difference)


def test_a_difference_within_the_spread_is_none() -> None:
    found = recommend(ORIGINAL, {"central": CENTRAL, "local": CENTRAL}, CHANCE)
    assert (found.better, found.difference) == ("alike", 0)
    assert "the same accuracy" in found.sentences[0]


def test_alike_means_alike_everywhere() -> None:
    """Curves that cross have a mean difference of about 0 and may be 45 percentage points apart."""
    crossing = [point(10, 0.35, 0.7), point(1, 0.95, 0.6), point(0.1, 0.548, 0.5)]
    found = recommend(ORIGINAL, {"central": crossing, "local": CENTRAL}, CHANCE)
    assert found.better == "depends"
    assert "Neither is better throughout" in found.sentences[0]
    loud = [replace(one, spread=0.3) for one in CENTRAL]
    unsure = recommend(ORIGINAL, {"central": loud, "local": loud}, CHANCE)
    assert unsure.better is None
    assert "cannot be told" in unsure.sentences[0]


def test_favourable_levels_apart_from_each_other_are_told_apart() -> None:
    levels = [point(10, 0.8, 0.7), point(2, 0.5, 0.6, 0.9), point(1, 0.1, 0.5)]
    found = recommend(ORIGINAL, {"central": levels}, CHANCE)
    assert "at epsilon 10 and at epsilon 1." in " ".join(found.sentences)
    assert found.better is None
    assert "cannot be compared" in found.sentences[0]


def test_an_attack_that_guesses_recommends_nothing_and_is_no_comfort() -> None:
    found = recommend(point(1, 0.9, 0.51, None), {"central": CENTRAL, "local": CENTRAL}, CHANCE)
    assert found.better is None
    assert "cannot be told from guessing even on the unprotected model (average precision 0.51)" in found.sentences[0]
    assert "does not show that nothing leaks" in found.sentences[0]


def test_one_training_of_each_level_decides_nothing() -> None:
    once = [replace(one, spread=None, phi_error=None) for one in CENTRAL]
    better = [replace(one, accuracy=one.accuracy + 0.1) for one in once]
    found = recommend(ORIGINAL, {"central": once, "local": better}, CHANCE)
    assert found.better is None
    assert found.favourable == {"central": [], "local": []}
    assert "cannot be told from one training" in found.sentences[0]


def test_a_level_that_only_this_attack_finds_good_is_no_protection() -> None:
    large, small = point(1e5, 0.9, 0.5), point(0.5, 0.9, 0.5)
    assert "promises hardly any protection" in recommend(ORIGINAL, {"central": [large]}, CHANCE).sentences[-1]
    assert "hardly any" not in recommend(ORIGINAL, {"central": [small]}, CHANCE).sentences[-1]


def test_a_large_shift_forbids_a_recommendation_a_small_one_warns() -> None:
    large, small, none = (Shift(spread_of([value, value]), CHANCE) for value in (0.99, 0.55, 0.5))
    levels = {"central": CENTRAL, "local": CENTRAL}
    silenced = recommend(ORIGINAL, levels, CHANCE, large)
    assert silenced.better is None
    assert "measures this shift, not what the model gives away" in silenced.sentences[0]
    assert "No recommendation" in silenced.sentences[1]
    warned = recommend(ORIGINAL, levels, CHANCE, small)
    assert warned.better == "alike"
    assert "differ by themselves" in warned.sentences[0]
    assert recommend(ORIGINAL, levels, CHANCE, none).sentences == recommend(ORIGINAL, levels, CHANCE).sentences


def test_a_fall_of_precision_within_its_error_is_no_gain() -> None:
    """Phi is 2 wherever no accuracy is lost, also where precision fell from 0.651 to 0.637 by chance."""
    level = replace(point(26.0, 0.9, 0.637, phi=2.0), phi_error=0.0, precision_error=0.045)
    original = replace(point(float("inf"), 0.9, 0.651, phi=None), precision_error=0.018)
    found = recommend(original, {"central": [level]}, 0.55)
    assert found.favourable == {"central": []}
    assert "no level clearly gains" in " ".join(found.sentences)
    clear = recommend(original, {"central": [replace(level, precision=0.56)]}, 0.55)
    assert clear.favourable == {"central": [26.0]}
    assert "level 26 (epsilon 26 a record) promises hardly any" in " ".join(clear.sentences)


def test_local_noise_promises_what_its_values_give_together() -> None:
    """Epsilon 0.1 a value, 60 a record, was praised without the warning that its epsilon promises hardly anything."""
    local = replace(point(0.1, 0.9, 0.5), name="epsilon 0.1 a value", record_epsilon=60.0, least_epsilon=8.61)
    said = " ".join(recommend(ORIGINAL, {"local": [local]}, CHANCE).sentences)
    assert "epsilon 0.1 a value (epsilon 60 a record) promises hardly any protection" in said
    assert "favourable (phi above 1) at epsilon 0.1 a value." in said
    assert "epsilon 0.1 a value (epsilon 60 a record) is the first" in said
    mild = recommend(ORIGINAL, {"local": [replace(local, record_epsilon=5.0, least_epsilon=1.5)]}, CHANCE)
    assert "hardly any protection" not in " ".join(mild.sentences)


@pytest.mark.parametrize("accuracy", [0.04, 0.05, 0.06])
def test_an_accuracy_of_the_most_common_class_is_called_so(accuracy: float) -> None:
    """The first level that stops the attack was told with "accuracy is then 4 %", where always "1" is right in 5 %."""
    for precision in (0.5, 0.7):
        level = point(0.1, accuracy, precision)
        said = " ".join(recommend(ORIGINAL, {"central": [level]}, CHANCE, majority=0.05).sentences)
        assert ("no better than always answering the most common class (5 %)" in said) == (accuracy <= 0.05)
        assert f"{100 * accuracy:g} %" in said
