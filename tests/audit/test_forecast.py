"""An examination says how long it takes before it starts."""

from __future__ import annotations

import logging

import pytest

from deniable.examination import forecast as room
from deniable.examination.forecast import Forecast


def test_one_trial_tells_how_long_all_take(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock, played = iter([100.0, 103.0]), []
    monkeypatch.setattr(room, "perf_counter", lambda: next(clock))
    found = Forecast(workers=2)
    assert found.words_of_bar() == "Trials"
    with caplog.at_level(logging.INFO, "deniable"):
        found.time_trial(lambda: played.append(1), 180)
    assert found.words == (
        "about 4.5 min for 180 trials, fewer where a leak is certain, and up to 2 min for twins and causes"
    )
    assert found.words in found.words_of_bar()
    assert found.words in caplog.text
    assert played == [1]
