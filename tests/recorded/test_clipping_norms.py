"""A clipping norm that changes: leaks where it follows the batch, schedules, and counts with too little noise."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from deniable.examination.recorded.checks.norms_check import norms_check
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Adjacency, Training
from tests.recorded.test_watched_runs import train

CLAIM = Training(1.0, 0.1, 24, Adjacency.ADD_REMOVE)


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return train().record()


def with_norms(record: RunRecord, norms: object) -> RunRecord:
    return msgspec.structs.replace(record, clips=tuple(np.asarray(norms, dtype=float).tolist()))


def test_a_norm_that_stays_needs_no_words(record: RunRecord) -> None:
    assert norms_check(record, CLAIM) is None


@pytest.mark.parametrize(("place", "name"), [(0, "the mean"), (1, "the median")])
@pytest.mark.parametrize(("lag", "whose"), [(0, "its"), (1, "the last")])
def test_a_norm_that_follows_the_batch_is_a_leak(
    record: RunRecord, place: int, name: str, lag: int, whose: str
) -> None:
    usual = [(step.usual_norms or (0.0, 0.0))[place] for step in record.steps]
    found = norms_check(with_norms(record, 1.5 * np.roll(usual, lag)), CLAIM)
    assert found is not None
    assert found.outcome == "less private"
    assert f"it is 1.5 x {name} of the norms of {whose} batch's gradients" in found.observed


def test_a_norm_that_is_a_running_mean_of_the_longest_is_a_leak(record: RunRecord) -> None:
    norms = [1.0]
    for step in record.steps[:-1]:
        norms.append(0.5 * norms[-1] + 0.25 * step.longest)
    found = norms_check(with_norms(record, norms), CLAIM)
    assert found is not None
    assert found.outcome == "less private"
    assert "it is made of the largest norm of its batch's gradients" in found.observed


def test_a_schedule_is_another_recipe_and_what_nothing_explains_is_not_judged(record: RunRecord) -> None:
    steps = np.arange(len(record.batches))
    for norms in (1 - 0.02 * steps, 0.97**steps, np.where(steps < 12, 1.0, 0.5)):
        found = norms_check(with_norms(record, norms), CLAIM)
        assert found is not None
        assert found.outcome == "another recipe"
    found = norms_check(with_norms(record, np.random.default_rng(0).uniform(0.5, 1, len(steps))), CLAIM)
    assert found is not None
    assert found.outcome == "not shown"
    assert "(0.5" in found.observed


@pytest.mark.parametrize(("count_noise", "leaks"), [(0.01, True), (0.5, True), (0.51, False), (5.0, False)])
def test_a_count_costs_as_much_as_its_noise_is_small(record: RunRecord, count_noise: float, leaks: bool) -> None:
    found = norms_check(msgspec.structs.replace(record, count_noise=count_noise), CLAIM)
    assert (found is not None and found.outcome == "less private") == leaks
    assert norms_check(msgspec.structs.replace(record, count_noise=count_noise), replace(CLAIM, noise=0.01)) is None
