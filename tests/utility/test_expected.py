"""What a frontier says of a promise: the ends of the two measured levels around it."""

from __future__ import annotations

from pathlib import Path

import pytest

import deniable as dn
from deniable.results.base import plain
from deniable.results.frontier_result import (
    FrontierInput,
    FrontierLevel,
    FrontierResult,
    Knee,
    Quality,
    Repeated,
    TunedSetting,
)
from deniable.store import write_document
from deniable.utility.expected_quality import expect_everywhere, expect_quality, read_frontier

SETTING = TunedSetting(clip=1.0, learning_rate=0.01, batch=10.0, epochs=2, rate=0.01, steps=200)


def quality(mean: float, metric: str = "accuracy") -> Quality:
    low, high = mean - 0.01, mean + 0.01
    return Quality(**{metric: Repeated(mean=mean, low=low, high=high, next_low=low, next_high=high, values=(mean,))})


def frontier(metric: str = "accuracy", means: tuple[float, ...] = (0.7, 0.8, 0.83)) -> FrontierResult:
    given = FrontierInput(
        data="people",
        data_sha256=(),
        task="classification",
        promise="belief",
        bounds=(0.6, 0.9),
        delta=1e-5,
        prior=0.5,
        model="mlp",
        optimizer="adam",
        metric=metric,
        tuning="uncovered",
        settings=1,
        repeats=2,
        seed=0,
        adjacency="add-remove",
        records=1000,
        validation_records=100,
        test_records=100,
        features=3,
    )
    levels = tuple(
        FrontierLevel(kind="central", bound=bound, noise=noise, setting=SETTING, quality=quality(mean, metric))
        for bound, noise, mean in zip((0.6, 0.9), (2.0, 0.8), means, strict=False)
    )
    return FrontierResult(
        input=given,
        confidence=0.95,
        without_model=quality(0.6, metric),
        usual_answer="no",
        none=FrontierLevel(kind="none", bound=None, quality=quality(means[2], metric)),
        levels=levels,
        knee=Knee(useless_up_to=None, cheap_from=None, sentences=("Said.",)),
        tuning_text="Told.",
    )


@pytest.mark.parametrize(
    ("bound", "low", "high", "said"),
    [
        (0.55, 0.6, 0.71, "No promise as strict as this was measured"),
        (0.6, 0.69, 0.71, "measured at 60 % certainty, with"),
        (0.7, 0.69, 0.81, "measured at 60 % certainty and 90 % certainty"),
        (0.95, 0.79, 0.84, "measured at 90 % certainty and no promise"),
    ],
)
def test_ends_are_those_of_the_levels_around(bound: float, low: float, high: float, said: str) -> None:
    found = expect_quality(frontier(), dn.Belief(bound, delta=1e-5))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert said in found.text
    assert f"{100 * found.low:.1f} to {100 * found.high:.1f} %" in found.text


def test_another_promise_is_held_against_the_releases_themselves() -> None:
    scores = [
        dn.privacy_loss(dn.Gaussian(noise).subsampled(0.01).composed(200), "add-remove").epsilon(1e-5)
        for noise in (2.0, 0.8)
    ]
    between = dn.Epsilon(sum(scores) / 2, delta=1e-5)
    found = expect_quality(frontier(), between)
    assert (found.low, found.high) == (pytest.approx(0.69), pytest.approx(0.81))
    strict = expect_quality(frontier(), dn.Epsilon(float(scores[0]) / 2, delta=1e-5))
    assert strict.low == pytest.approx(0.6)
    other_delta = expect_quality(frontier(), dn.Belief(0.6, delta=1e-3))
    assert other_delta.low == pytest.approx(0.69)  # a weaker promise: more may be exceeded


def test_ends_hold_both_levels_where_the_stricter_one_happens_to_be_better() -> None:
    """ "Expect 82.0 to 79.0 %"."""
    found = expect_quality(frontier(means=(0.83, 0.78, 0.8)), dn.Belief(0.7, delta=1e-5))
    assert (found.low, found.high) == (pytest.approx(0.77), pytest.approx(0.84))


@pytest.mark.parametrize("bound", [0.0, 1e-9, 0.6, 0.75, 0.9, 1.0])
def test_every_bound_lies_in_one_piece(bound: float) -> None:
    """An empty Opacus history, whose advantage is 0, lay in none: the page ended with an error."""
    pieces = expect_everywhere(frontier(), (0.6, 0.9))
    inside = [
        piece
        for piece in pieces
        if (piece.above == piece.up_to == bound)
        or (piece.above < bound and (piece.up_to is None or bound < piece.up_to))
    ]
    assert len(inside) == 1


def test_errors_are_turned_round() -> None:
    found = expect_quality(frontier("error", (3.0, 2.0, 1.0)), dn.Belief(0.7, delta=1e-5))
    assert (found.low, found.high) == (pytest.approx(1.99), pytest.approx(3.01))


def test_a_frontier_is_read_from_its_file_or_folder(tmp_path: Path) -> None:
    write_document(tmp_path / "frontier.json", plain(frontier()))
    assert read_frontier(tmp_path) == read_frontier(tmp_path / "frontier.json") == frontier()
    with pytest.raises(FileNotFoundError, match="there is no frontier"):
        read_frontier(tmp_path / "nowhere")
