"""About how long an examination takes, told once its first trial has been played."""

from __future__ import annotations

import logging
from time import perf_counter

from deniable.campaigns.campaign import Progress

__all__ = ["Forecast"]

OTHER_TRAININGS = 40
"""Trainings beside the trials, at most about so many: twins, and small sets of records."""
_log = logging.getLogger("deniable")


class Forecast:
    """Times the first trial; `words` are empty until then."""

    def __init__(self, workers: float) -> None:
        self.workers, self.words = max(1.0, workers), ""
        self._begun: tuple[float, int] | None = None

    def words_of_bar(self) -> str:
        """What a bar says while the trials are played."""
        return f"Trials ({self.words})" if self.words else "Trials"

    def follow(self, progress: Progress | None) -> Progress:
        """`progress`, watched for the first trial; what a resumed examination brings is told at once, and left out."""

        def tell(done: int, total: int) -> None:
            if self._begun is None:
                self._begun = perf_counter(), done
            elif not self.words and done > self._begun[1]:
                self._time(done, total)
            if progress is not None:
                progress(done, total)

        return tell

    def _time(self, done: int, total: int) -> None:
        started, before = self._begun or (perf_counter(), done)
        each = (perf_counter() - started) / max(1, done - before)
        trials, others = each * (total - done), each * self.workers * OTHER_TRAININGS
        self.words = f"about {_duration(trials)} for the trials, then up to {_duration(others)} for the causes"
        _log.info("examination: %s", self.words)


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(1.0, seconds):.0f} s"
