"""About how long an examination takes, told before it starts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from time import perf_counter

OTHER_TRAININGS = 90
"""Trainings beside the trials, about so many: twins, small sets of records, trials once more for a fault's cause."""
STARTING_SECONDS = 30.0
"""A trial that takes less is played twice: the first time, modules are loaded and memory is made."""
_log = logging.getLogger("deniable")


class Forecast:
    """Plays and times a trial before all others; `words` are empty until then."""

    def __init__(self, workers: float) -> None:
        self.workers, self.words = max(1.0, workers), ""

    def time_trial(self, play: Callable[[], object], trials: int) -> None:
        """`play` plays a trial, of which `trials` are to come."""
        each = _seconds(play)
        if each < STARTING_SECONDS:
            each = min(each, _seconds(play))
        most, others = each * trials / self.workers, each * OTHER_TRAININGS
        about = f"about {_duration(most)} for {trials:,} trials, fewer where a leak is certain"
        self.words = f"{about}, and up to {_duration(others)} for twins and causes"
        _log.info("examination: %s", self.words)
        if sys.stderr.isatty():  # a bar goes when it is done, this line stays
            print(f"Examination: {self.words}.", file=sys.stderr)

    def words_of_bar(self) -> str:
        """What a bar says while the trials are played."""
        return f"Trials ({self.words})" if self.words else "Trials"


def _seconds(play: Callable[[], object]) -> float:
    started = perf_counter()
    play()
    return perf_counter() - started


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(1.0, seconds):.0f} s"
