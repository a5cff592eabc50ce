"""Records that change in a training's own memory while it runs.

Once a step has been yielded, only what it shows may move the weights. If the records are overwritten at that moment and
the next weights, the number of steps or the release change, the training looked at the records again, and no noise
hides what it saw. A training that keeps copies of its records does not notice, so that nothing is shown.
"""

from __future__ import annotations

from deniable.examination.trainer import AppliedStep, Records

__all__ = ["LaterRecords"]


class LaterRecords:
    """Overwrites the records `given` to a training by `later` ones, when so many steps have been yielded."""

    def __init__(self, given: Records, later: Records, after: int) -> None:
        self._given, self._later, self._left = given, later, after

    def hear(self, _: AppliedStep) -> None:
        """Count a step."""
        self._left -= 1
        if self._left == 0:
            self._given.features.copy_(self._later.features)
            self._given.labels.copy_(self._later.labels)
