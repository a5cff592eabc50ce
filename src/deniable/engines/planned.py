"""A campaign that is planned in a directory: the command that asked for it, and what its blocks depend on, as JSON.

Nothing of the user's is pickled: data is named by file or name, models and losses as module:function. Who plays blocks
plans the campaign again from the same words, and is refused unless it comes to the same settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deniable.engines.blocks import Campaign
from deniable.store import StoreError, canonical, differences, read_document, write_document

PLAN = "campaign.json"
PARTS = "trials"
"""Where the campaigns of a reproduction are, each in a directory of its own."""
_SCHEMA = "deniable/campaign/1"


@dataclass(frozen=True)
class Planned:
    """What a directory says of its campaign."""

    command: str
    """audit, compare, attack, frontier or reproduce."""
    options: Mapping[str, Any]
    """The command's options, as they were written."""
    directory: str
    """In which the command was given: relative names of files mean there."""
    blocks: int | None
    """None: many campaigns, whose blocks show when they are played."""
    settings: Mapping[str, Any]
    finish: str
    """The command that judges all blocks once they are there."""

    def write(self, place: Path | str) -> None:
        """Keep it in `place`."""
        Path(place).mkdir(parents=True, exist_ok=True)
        write_document(Path(place) / PLAN, {"schema": _SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, place: Path | str) -> Planned:
        """The plan in `place`; FileNotFoundError or ValueError says what is wrong with it."""
        path = Path(place) / PLAN
        if not path.is_file():
            how = "plan one with `deniable audit ... --out DIR --plan`, or compare, attack, frontier, reproduce"
            raise FileNotFoundError(f"{place} holds no planned campaign: {how}")
        found = read_document(path, "schema", *cls.__dataclass_fields__)
        if found.pop("schema") != _SCHEMA:
            raise ValueError(f"{path} is of another version of deniable: plan the campaign again")
        return cls(**found)

    def check(self, campaign: Campaign[Any]) -> None:
        """Refuse a campaign that came to other settings here than where it was planned."""
        if canonical(campaign.settings) != canonical(self.settings):
            unlike = "; ".join(differences(dict(self.settings), dict(campaign.settings)))
            raise StoreError(f"this machine would play another campaign than the one that was planned: {unlike}")
