"""Processes that share a directory: each comes to the whole answer, that of one process alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from campaigns import CAMPAIGNS, Answer, play_alone
from work import Squared, square, squares

from deniable.campaigns.look import look
from deniable.engines import Shared, open_store, play_missing
from deniable.store import SharedStore, Store, StoreError

CHILD = """
import json, sys
sys.path[:0] = [{here!r}]
from pathlib import Path
from campaigns import CAMPAIGNS
from deniable.engines import Shared
if __name__ == "__main__":
    for name, play in CAMPAIGNS.items():
        print(json.dumps([name, play(Shared(5.0), Path({place!r}) / name)]))
"""


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def answers(shared_place: Path) -> list[dict[str, Answer]]:
    """Of two processes that share all campaigns."""
    child = CHILD.format(here=str(Path(__file__).parent), place=str(shared_place))
    two = [subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return [dict(map(json.loads, process.communicate(timeout=500)[0].splitlines())) for process in two]


def test_both_of_two_processes_come_to_the_answer_of_one(answers: list[dict[str, Answer]]) -> None:
    """All kinds in one test: workers of pytest that shared them would each start the two processes."""
    for name in CAMPAIGNS:
        assert [both[name] for both in answers] == [play_alone(name)] * 2, name


def test_the_status_of_somebody_else_s_training_shows_the_evidence_of_its_result(
    answers: list[dict[str, Answer]], shared_place: Path
) -> None:
    found, judged = look(shared_place / "examine"), answers[0]["examine"]
    assert found.blocks == 10
    assert found.evidence is not None
    assert found.evidence.trials == found.finished == judged["watched"]["trials"]
    assert list(found.evidence.watched.evidence) == judged["watched"]["evidence"]


def play(place: Path, blocks: int, work: Callable[[int], Squared] = square, **given: Any) -> list[int]:
    with SharedStore(place) as store:
        store.begin(squares(blocks).settings)
        found = play_missing(squares(blocks, work), Shared(1.0), store, **given)
    assert [block.square.tolist() for block in found] == [square(n).square.tolist() for n in range(len(found))]
    return [int(block.square[0]) for block in found]


def test_blocks_are_divided_and_none_is_played_twice(tmp_path: Path) -> None:
    played: dict[str, list[int]] = {"a": [], "b": []}

    def work(name: str) -> Callable[[int], Squared]:
        return lambda number: (played[name].append(number), time.sleep(0.01), square(number))[-1]

    both = [Thread(target=play, args=(tmp_path, 40, work(name))) for name in played]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert sorted(played["a"] + played["b"]) == list(range(40))
    assert played["a"]
    assert played["b"]
    assert not list((tmp_path / "claims").iterdir())


def test_what_is_there_is_not_played_and_all_is_told(tmp_path: Path) -> None:
    with Store(tmp_path, squares(9).settings) as store:
        for number in (0, 5):
            store.save(number, {"square": square(number).square})
    told: list[int] = []
    assert play(tmp_path, 9, tell=told.append) == list(range(9))
    assert told == list(range(2, 10))
    assert play(tmp_path, 9, pytest.fail, certain=lambda block: block.square[0] == 3) == [0, 1, 2, 3]
    with Store(tmp_path, squares(9).settings, resume=True) as store:
        assert store.finished_blocks() == list(range(9))


def test_a_block_that_is_seen_in_another_way_is_not_waited_for(tmp_path: Path) -> None:
    with SharedStore(tmp_path) as mine, SharedStore(tmp_path) as other:
        for store in (mine, other):
            store.begin(squares(3).settings)
        running = Shared(1.0).run_in(mine, square, range(3))
        number, result = next(running)
        assert result is not None
        mine.save(number, {"square": result.square})
        other.save(rest := max({0, 1, 2} - {number}), {"square": square(rest).square})
        assert rest in mine.finished_blocks()  # it looked
        found = []
        for one, result in running:
            found.append(one)
            if result is not None:
                mine.save(one, {"square": result.square})
    assert sorted([number, *found]) == [0, 1, 2]


def test_another_campaign_in_the_directory_is_refused(tmp_path: Path) -> None:
    play(tmp_path / "shared", 3)
    with Store(tmp_path / "store", squares(3).settings):
        pass
    for place in ("shared", "store"):
        with pytest.raises(StoreError, match=r"other settings: blocks was 3, now 4"):
            play(tmp_path / place, 4)


def test_without_a_directory_there_is_nothing_to_share() -> None:
    with pytest.raises(ValueError, match="needs out"):
        open_store(Shared(), None)
    with pytest.raises(ValueError, match="needs out"):
        play_missing(squares(3), Shared())


def test_work_that_cannot_be_divided_is_done_by_one(tmp_path: Path) -> None:
    done: list[str] = []

    def do(name: str) -> None:
        Shared(1.0).do_once(tmp_path, lambda: bool(done), lambda: (time.sleep(0.2), done.append(name))[0])

    both = [Thread(target=do, args=(name,)) for name in "ab"]
    for one in both:
        one.start()
    for one in both:
        one.join(30)
    assert len(done) == 1
