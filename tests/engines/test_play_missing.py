"""What is kept, what is played again, and when a campaign ends: the same on an engine that finishes in any order."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from work import Squared, square, squares

from deniable.engines import Campaign, Local, play_missing
from deniable.store import Store, StoreError


@dataclass(frozen=True)
class Shuffled:
    """Finishes in random order, with `window` blocks under way; some of them twice."""

    seed: int
    window: int = 5

    def nodes(self) -> dict[str, float]:
        return {}

    def run(self, work: Any, blocks: Iterable[int]):
        draw, rest = random.Random(self.seed), iter(blocks)
        running = list(islice(rest, self.window))
        while running:
            number = running.pop(draw.randrange(len(running)))
            for _ in range(draw.choice([1, 1, 2])):
                yield number, work(number)
            running += islice(rest, self.window - len(running))


def numbers(results: list[Squared]) -> list[int]:
    return [int(result.square[0]) for result in results]


@given(seed=st.integers(0, 2**32), total=st.integers(1, 30), last=st.integers(0, 40), window=st.integers(1, 9))
def test_the_blocks_of_the_answer_do_not_depend_on_the_order(seed: int, total: int, last: int, window: int) -> None:
    heard: list[int] = []

    def certain(block: Squared) -> bool:
        heard.append(int(block.square[0]))
        return heard[-1] == last

    found = play_missing(squares(total), Shuffled(seed, window), certain=certain)
    assert numbers(found) == heard == list(range(min(last + 1, total)))


def test_without_a_question_all_blocks_are_played_once(tmp_path: Path) -> None:
    told: list[int] = []
    with Store(tmp_path, squares(9).settings) as store:
        found = play_missing(squares(9), Shuffled(1), store, tell=told.append)
        assert store.finished_blocks() == list(range(9))
    assert numbers(found) == list(range(9))
    assert sorted(set(told)) == list(range(10))


def test_what_is_kept_is_not_played_and_what_is_behind_the_end_is_left_out(tmp_path: Path) -> None:
    with Store(tmp_path, squares(9).settings) as store:
        for number in (0, 1, 5):
            store.save(number, {"square": square(number).square})
        played: list[int] = []

        def work(number: int) -> Squared:
            played.append(number)
            return square(number)

        found = play_missing(squares(9, work), Local(1), store, certain=lambda block: block.square[0] == 3)
        assert played == [2, 3]
        assert numbers(found) == [0, 1, 2, 3]
        again = play_missing(squares(9, work), Local(1), store, certain=lambda block: block.square[0] == 3)
        assert numbers(again) == [0, 1, 2, 3]
        assert played == [2, 3]


def test_blocks_of_another_kind_are_refused_before_the_work(tmp_path: Path) -> None:
    with Store(tmp_path, {}) as store:
        store.save(0, {"cube": np.zeros(2)})
        with pytest.raises(StoreError, match=r"another kind or version \(cube, square\)"):
            play_missing(Campaign({}, 3, Squared, pytest.fail), Local(1), store)


def test_blocks_of_two_kinds_share_a_store(tmp_path: Path) -> None:
    """Those before the first number are another campaign's: neither read, nor counted, nor played."""
    behind = Campaign({}, 9, Squared, square, first=4)
    told: list[int] = []
    with Store(tmp_path, {}) as store:
        for number in (0, 1):
            store.save(number, {"cube": np.zeros(2)})
        store.save(6, {"square": square(6).square})
        found = play_missing(behind, Shuffled(2), store, tell=told.append)
        assert numbers(found) == [4, 5, 6, 7, 8]
        assert (told[0], told[-1]) == (1, 5)
        assert store.finished_blocks() == [0, 1, 4, 5, 6, 7, 8]
        ended = play_missing(behind, Shuffled(2), store, certain=lambda block: block.square[0] == 5)
        assert numbers(ended) == [4, 5]
