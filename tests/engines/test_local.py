from __future__ import annotations

import os
import signal
from functools import partial
from multiprocessing.context import SpawnProcess

import pytest
from games import neighbours
from work import refuse_three, square

from deniable.engines import Local, choose_engine
from deniable.engines.local import Workers
from deniable.training.engine import run_block
from deniable.training.settings import TrainingSettings

SETTINGS = TrainingSettings("digits", noise=2.0, steps=3, trials_per_block=4, adjacency="replace")


@pytest.mark.parametrize("processes", [1, 2])
def test_blocks_equal_those_run_alone(processes: int) -> None:
    work = partial(run_block, SETTINGS, neighbours(), 5)
    results = dict(Local(processes).run(work, range(2, 8)))
    assert sorted(results) == [2, 3, 4, 5, 6, 7]
    for number in (2, 7):
        alone = run_block(SETTINGS, neighbours(), 5, number)
        assert alone.log_likelihood_ratio.tobytes() == results[number].log_likelihood_ratio.tobytes()
        assert alone.trained_on_d.tobytes() == results[number].trained_on_d.tobytes()


def test_a_consumer_may_stop_early() -> None:
    drawn: list[int] = []
    blocks = Local(2).run(square, (drawn.append(n) or n for n in range(1000)))
    assert next(blocks)[1].square.shape == (2,)
    blocks.close()
    assert len(drawn) <= 4  # two a worker: what is not needed is not drawn


def test_errors_in_a_worker_reach_the_caller() -> None:
    with pytest.raises(FloatingPointError, match="learning_rate"):
        list(Local(2).run(refuse_three, range(6)))


def test_what_cannot_be_sent_to_a_worker_is_refused_before_one_starts() -> None:
    with pytest.raises(ValueError, match="importable"):
        list(Local(2).run(lambda number: number, range(6)))


def test_bad_engines_are_refused() -> None:
    with pytest.raises(ValueError, match="processes must be"):
        Local(0)
    with pytest.raises(ValueError, match="engine must be"):
        choose_engine("slurm")
    with pytest.raises(ValueError, match="leave it out"):
        choose_engine(Local(2), processes=3)
    assert choose_engine("local", 3) == Local(3)


def test_a_signal_while_a_worker_starts_is_heard_when_it_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class HeardError(Exception):
        pass

    def hear(number: int, frame: object) -> None:
        raise HeardError

    seen = []
    monkeypatch.setattr(SpawnProcess, "start", lambda process: (os.kill(os.getpid(), signal.SIGTERM), seen.append(1)))
    before = signal.signal(signal.SIGTERM, hear)
    try:
        with pytest.raises(HeardError):
            Workers().Process(target=print).start()
        assert seen  # the start was not cut short, as it would leave a process that nobody ends
        assert signal.getsignal(signal.SIGTERM) is hear
    finally:
        signal.signal(signal.SIGTERM, before)
