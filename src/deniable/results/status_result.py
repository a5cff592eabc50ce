"""What `status` shows of a campaign that is under way."""

from __future__ import annotations

import msgspec

from deniable.results.base import Part
from deniable.results.shared import Watched


class EvidenceSoFar(Part, frozen=True, kw_only=True):
    """What the first trials of an audit show, up to the first one that is missing."""

    trials: int
    right: int
    """In so many of them the observer named the data set that was trained on."""
    watched: Watched
    """The evidence against the claimed noise: it may be looked at as often as one likes."""


class StatusResult(Part, frozen=True, kw_only=True, tag_field="schema", tag="deniable/status/1"):
    """How far a campaign has come, and who plays it."""

    blocks: int | None
    """In all, where that is known."""
    finished: int
    under_way: int
    blocks_a_minute: float
    seconds_left: float | None
    nodes: dict[str, float]
    """CPUs at work, by machine."""
    is_certain: bool
    """Whether the answer was certain before all blocks were played."""
    evidence: EvidenceSoFar | None = None
    finish: str | None = None
    """The command that judges the blocks."""

    def to_json(self) -> str:
        """One JSON document."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()
