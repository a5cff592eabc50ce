"""A trial of `dn.examine(trainer=)` costs at most three times its training; see examined_trials.py beside this file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from examined_trials import BAR, RECORDS, measure
from ratios import Ratio
from watched_run import MODELS


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("name", MODELS)
def test_a_trial_costs_at_most_three_trainings(record: Callable[[Ratio], None], name: str, kind: str) -> None:
    found = measure(name, kind)
    record(Ratio(f"{name}, a trial with {kind} batches", "its training", found.trial, found.training))
    assert found.trial <= BAR * found.training
