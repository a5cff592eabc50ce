"""An examination says how long it takes once its first trial is played."""

from __future__ import annotations

import logging

import pytest

from deniable.examination import forecast as room
from deniable.examination.forecast import Forecast


def test_the_first_trial_tells_how_long_all_take(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, heard = iter([100.0, 103.0]), []
    monkeypatch.setattr(room, "perf_counter", lambda: next(clock))
    found = Forecast(workers=2)
    with caplog.at_level(logging.INFO, "deniable"):
        tell = found.follow(lambda *numbers: heard.append(numbers))
        tell(20, 200)  # a resumed examination brings twenty
        assert found.words_of_bar() == "Trials"
        tell(21, 200)
        tell(22, 200)
    assert found.words == "about 8.9 min for the trials, then up to 4 min for the causes"
    assert found.words in found.words_of_bar()
    assert found.words in caplog.text
    assert heard == [(20, 200), (21, 200), (22, 200)]
