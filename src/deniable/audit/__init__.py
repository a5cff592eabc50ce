"""Audit: the strongest observer against your own training, and what its trials say.

The package itself can be called: ``deniable.audit(...)`` is ``deniable.audit.audit(...)``. The function and the room
share a name, and Python binds a room to its house on import, so a function under that name would be lost as soon as
anything imports the room.

Rooms: promise (what is claimed, and its noise) | campaign (data, neighbours, trials, disk) | limits, evidence (what
the trials show, with confidence) | verdict | record (the JSON document, and `audit`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from deniable.audit.adapters import watch_opacus
from deniable.audit.campaign import Plan, Trials, play
from deniable.audit.evidence import Measured, measure
from deniable.audit.examination import examine_trainer
from deniable.audit.promise import Promise
from deniable.audit.record import audit, judge, planned, run
from deniable.audit.trainer import AppliedStep, Records
from deniable.audit.verdict import Verdict, verdict

__all__ = [
    "AppliedStep",
    "Measured",
    "Plan",
    "Promise",
    "Records",
    "Trials",
    "Verdict",
    "audit",
    "examine_trainer",
    "judge",
    "measure",
    "planned",
    "play",
    "run",
    "verdict",
    "watch_opacus",
]


class _CallableRoom(ModuleType):
    def __call__(self, *arguments: Any, trainer: Any = None, **settings: Any) -> dict[str, Any]:
        if trainer is not None:
            return examine_trainer(trainer, *arguments, **settings)
        return audit(*arguments, **settings)


_CallableRoom.__call__.__doc__ = (
    f"{audit.__doc__}\n\nWith `trainer`, somebody else's training is examined instead:\n\n{examine_trainer.__doc__}"
)
sys.modules[__name__].__class__ = _CallableRoom
