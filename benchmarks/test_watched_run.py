"""A watcher costs at most a fifth of the training's time and memory; see watched_run.py beside this file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ratios import Ratio
from watched_run import BAR, MODELS, measure


@pytest.mark.parametrize("name", MODELS)
def test_watching_costs_at_most_a_fifth(record: Callable[[Ratio], None], name: str) -> None:
    plain, watched = measure(name)
    record(Ratio(f"{name}, watched", "not watched", watched.seconds, plain.seconds))
    assert watched.seconds <= BAR * plain.seconds
    assert watched.megabytes <= BAR * plain.megabytes
