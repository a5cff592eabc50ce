"""How far a campaign has come, from its directory alone: nobody is asked, and nothing is locked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from deniable.engines.claims import PLACE as CLAIMS
from deniable.engines.planned import PLAN, Planned
from deniable.engines.players import Player, read_players
from deniable.engines.worker import CERTAIN
from deniable.store import FILE, SharedBlocks
from deniable.store.records import numbers_in

__all__ = ["CampaignStatus", "read_status"]

_SILENT_SECONDS = 300.0
"""A player that has said nothing for so long is no longer counted."""


@dataclass(frozen=True)
class CampaignStatus:
    """What a directory shows."""

    blocks: int | None
    """In all; None where nobody has said it."""
    finished: int
    under_way: int
    """Blocks that workers have claimed and not finished."""
    blocks_a_second: float
    """Of all who play now."""
    players: tuple[Player, ...]
    """Who plays now."""
    is_certain: bool
    """Whether the answer was certain before all blocks were played."""
    finish: str | None
    """The command that judges the blocks."""

    @property
    def seconds_left(self) -> float | None:
        """If all goes on as it does; None where nobody plays, or nobody knows how much is left."""
        if self.blocks is None or not self.blocks_a_second:
            return None
        return (self.blocks - self.finished) / self.blocks_a_second

    @property
    def nodes(self) -> dict[str, float]:
        """CPUs at work, by machine."""
        found: dict[str, float] = {}
        for player in self.players:
            for name, cpus in player.nodes.items():
                found[name] = found.get(name, 0.0) + cpus
        return found


def read_status(directory: Path | str) -> CampaignStatus:
    """The state of the campaign in `directory`; FileNotFoundError if there is none."""
    place = Path(directory)
    plan = Planned.read(place) if (place / PLAN).is_file() else None
    if plan is None and not (place / FILE).is_file():
        raise FileNotFoundError(f"{directory} holds no campaign: name the directory of --out")
    finished = numbers_in(place / FILE) | SharedBlocks(place, b"").finished()
    players = [player for player in read_players(place) if time.time() - player.told < _SILENT_SECONDS]
    known = [player.blocks for player in read_players(place)] if plan is None else [plan.blocks]
    total = max(known, default=None)
    return CampaignStatus(
        blocks=total,
        finished=len(finished),
        under_way=len(_claimed(place) - finished),
        blocks_a_second=sum(player.blocks_a_second for player in players),
        players=tuple(players) if total is None or len(finished) < total else (),
        is_certain=(place / CERTAIN).exists(),
        finish=None if plan is None else plan.finish,
    )


def _claimed(place: Path) -> set[int]:
    names = (path.name.partition(".")[0] for path in (place / CLAIMS).glob("*.*"))
    return {int(name) for name in names if name.isdecimal() and int(name) < 10**12}
