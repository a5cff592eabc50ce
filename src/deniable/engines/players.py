"""Who plays a campaign's blocks, and how fast: each driver and each worker says so in a file of its own, for people.

The times are dates of the machine that wrote them. They are shown, and decide nothing.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from deniable.store import read_document, write_document

PLACE = "players"
_TELL_SECONDS = 2.0


@dataclass(frozen=True)
class Player:
    """What one process says of itself."""

    name: str
    nodes: Mapping[str, float]
    """CPUs that it plays on, by machine."""
    blocks: int
    """Of the whole campaign."""
    played: int
    """Blocks that it has played."""
    begun: float
    told: float
    """Seconds since 1970, by its own clock."""

    @property
    def blocks_a_second(self) -> float:
        """Since it began."""
        return self.played / max(self.told - self.begun, 1e-9) if self.played else 0.0


class Playing:
    """Tells `directory`, every other second at most, how far this process has come; without a directory, nobody."""

    def __init__(self, directory: Path | str | None, blocks: int, nodes: Mapping[str, float] | None = None) -> None:
        self.name = f"{platform.node()}-{os.getpid()}"
        self._place = None if directory is None else Path(directory) / PLACE
        self._blocks, self._nodes = blocks, dict(nodes or {platform.node(): 1})
        self._begun, self._last, self._played = time.time(), time.monotonic(), 0
        self._write()

    def add(self, played: int = 1) -> None:
        """So many blocks more are played."""
        self._played += played
        if time.monotonic() - self._last >= _TELL_SECONDS:
            self._last = time.monotonic()
            self._write()

    def close(self) -> None:
        """Tell the last count."""
        self._write()

    def _write(self) -> None:
        if self._place is None:
            return
        player = Player(self.name, self._nodes, self._blocks, self._played, self._begun, time.time())
        with suppress(OSError):  # nothing depends on it
            self._place.mkdir(parents=True, exist_ok=True)
            write_document(self._place / f"{self.name}.json", asdict(player))


def read_players(directory: Path | str) -> list[Player]:
    """All that ever played in `directory`; a file that cannot be read is left out."""
    found = []
    for path in sorted((Path(directory) / PLACE).glob("*.json")):
        with suppress(OSError, ValueError, TypeError):
            found.append(Player(**read_document(path)))
    return found
