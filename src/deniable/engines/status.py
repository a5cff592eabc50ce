"""How far a campaign has come, from its directory alone: nobody is asked, and nothing is locked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from deniable.engines.beside import find_claimed
from deniable.engines.planned import PARTS, PLAN, Planned
from deniable.engines.players import Player, read_players
from deniable.engines.worker import CERTAIN, WATCH_CLAIM
from deniable.store import FILE, SETTINGS_FILE, SharedBlocks
from deniable.store.records import numbers_in

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

    def seconds_until(self, blocks: int | None) -> float | None:
        """Until so many are finished, if all goes on as it does; None where nobody plays, or knows the number."""
        if blocks is None or not self.blocks_a_second:
            return None
        return max(0, blocks - self.finished) / self.blocks_a_second

    @property
    def nodes(self) -> dict[str, float]:
        """CPUs at work, by machine."""
        found: dict[str, float] = {}
        for player in self.players:
            for name, cpus in player.nodes.items():
                found[name] = found.get(name, 0.0) + cpus
        return found


def read_status(directory: Path | str) -> CampaignStatus:
    """The state of the campaign, or of the campaigns of a reproduction, in `directory`; FileNotFoundError if none."""
    place = Path(directory)
    plan = Planned.read(place) if (place / PLAN).is_file() else None
    if plan is not None and plan.blocks is None:
        return _add_up([_status(one, None) for one in sorted((place / PARTS).glob("*/"))], plan)
    if plan is None and not any((place / name).is_file() for name in (FILE, SETTINGS_FILE)):
        raise FileNotFoundError(f"{directory} holds no campaign: name the directory of --out")
    return _status(place, plan)


def _status(place: Path, plan: Planned | None) -> CampaignStatus:
    finished = numbers_in(place / FILE) | SharedBlocks(place, b"").finished_blocks()
    players = read_players(place)
    known = [player.blocks for player in players] if plan is None or plan.blocks is None else [plan.blocks]
    total = max(known, default=None)
    now = [player for player in players if time.time() - player.told < _SILENT_SECONDS]
    playing = now if total is None or len(finished) < total else []
    return CampaignStatus(
        blocks=total,
        finished=len(finished),
        under_way=sum(number < WATCH_CLAIM for number in find_claimed(place) - finished),
        blocks_a_second=sum(player.blocks_a_second for player in playing),
        players=tuple(playing),
        is_certain=(place / CERTAIN).exists(),
        finish=None if plan is None else plan.finish,
    )


def _add_up(parts: list[CampaignStatus], plan: Planned) -> CampaignStatus:
    """Of many campaigns; how many blocks they have in all shows when the last is begun."""
    return CampaignStatus(
        blocks=None,
        finished=sum(part.finished for part in parts),
        under_way=sum(part.under_way for part in parts),
        blocks_a_second=sum(part.blocks_a_second for part in parts),
        players=tuple(player for part in parts for player in part.players),
        is_certain=False,
        finish=plan.finish,
    )
