from __future__ import annotations

import numpy as np
import pytest
from games import neighbours

from deniable.training.engine import run_block
from deniable.training.pool import run_blocks
from deniable.training.settings import TrainingSettings

SETTINGS = TrainingSettings("digits", noise=2.0, steps=3, trials_per_block=4, adjacency="replace")


@pytest.mark.parametrize("processes", [1, 2])
def test_blocks_equal_those_run_alone(processes: int) -> None:
    heard: list[int] = []
    results = dict(run_blocks(SETTINGS, neighbours(), 5, range(2, 8), processes=processes, progress=heard.append))
    assert sorted(results) == [2, 3, 4, 5, 6, 7]
    assert heard == [4] * 6
    for number in (2, 7):
        alone = run_block(SETTINGS, neighbours(), 5, number)
        assert alone.log_likelihood_ratio.tobytes() == results[number].log_likelihood_ratio.tobytes()
        assert np.array_equal(alone.trained_on_d, results[number].trained_on_d)


def test_a_consumer_may_stop_early() -> None:
    blocks = run_blocks(SETTINGS, neighbours(), 5, range(1000), processes=2)
    assert next(blocks)[1].log_likelihood_ratio.shape == (4, 3)
    blocks.close()


def test_errors_in_a_worker_reach_the_caller() -> None:
    diverging = TrainingSettings(
        "digits", noise=2.0, steps=3, learning_rate=1e38, trials_per_block=4, adjacency="replace"
    )
    with pytest.raises(FloatingPointError, match="learning_rate"):
        list(run_blocks(diverging, neighbours(), 5, range(2), processes=2))


def test_bad_number_of_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="processes"):
        list(run_blocks(SETTINGS, neighbours(), 5, range(2), processes=0))
