"""An examination says how long it takes before it starts."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.examination import patience as room
from deniable.examination.patience import Forecast
from deniable.results.audit_result import AuditResult
from deniable.training import Neighbours

sys.path.insert(0, str(Path(__file__).parents[2]))
from hunt.recipes import CLASSES, CLIP, FEATURES, RATE, RECORDS, SIGMA, STEPS, Training, network


def test_one_trial_tells_how_long_all_take(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock, played = iter([80.0, 98.0, 100.0, 103.0]), []  # the first one loads modules
    monkeypatch.setattr(room, "perf_counter", lambda: next(clock))
    found = Forecast(workers=2)
    assert found.words_of_bar() == "Trials"
    with caplog.at_level(logging.INFO, "deniable"):
        found.time_trial(lambda: played.append(1), 180)
    assert found.words == (
        "about 4.5 min for 180 trials, fewer where a leak is certain, and up to 4.5 min for twins and causes"
    )
    assert found.words in found.words_of_bar()
    assert found.words in caplog.text
    assert played == [1, 1]


def test_a_person_at_a_terminal_reads_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    found = Forecast(workers=1)
    found.time_trial(lambda: None, 10)
    assert capsys.readouterr().err == f"Examination: {found.words}.\n"


def test_a_long_trial_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, played = iter([0.0, 60.0]), []
    monkeypatch.setattr(room, "perf_counter", lambda: next(clock))
    found = Forecast(workers=1)
    found.time_trial(lambda: played.append(1), 10)
    assert found.words.startswith("about 10 min for 10 trials")
    assert played == [1]


def test_further_looks_train_no_twins_again() -> None:
    generator = np.random.default_rng(0)
    records = 1.2 * generator.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    neighbours = Neighbours.of(records, generator.integers(0, CLASSES, RECORDS), 3)
    claimed, trainings = dn.Gaussian(SIGMA).subsampled(RATE).composed(STEPS), []

    def train(*given: Any) -> Any:
        trainings.append(1)
        return Training(RATE)(*given)

    number = []
    for stop in ("certain", "never"):  # looks after 10 and 15 trials, and after 15 alone
        trainings.clear()
        found = dn.examine(
            neighbours, trainer=train, claimed=claimed, clip=CLIP, adjacency="add-remove", model=network, trials=15,
            processes=1, delta=1e-3, stop=stop,
        )  # fmt: skip
        assert found.verdict == "consistent"
        assert isinstance(found, AuditResult)
        assert found.forecast is not None
        assert found.forecast.startswith("about ")
        number.append(len(trainings))
    assert number[0] == number[1]
