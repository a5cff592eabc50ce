"""Audit: the strongest observer against your own training, and what its trials say.

The package itself can be called: ``deniable.audit(...)`` is ``deniable.audit.audit(...)``. The function and the room
share a name, and Python binds a room to its house on import, so a function under that name would be lost as soon as
anything imports the room.

Rooms with torch: campaign (data, neighbours, trials, disk) | evidence (what the trials show) | record (the JSON
document, and `audit`). They are imported when they are first asked for.

Rooms with NumPy and SciPy alone, for scores from any tool: scores_input | limits, thresholds (rates and their limits)
| bound, estimators, credible, likelihood, one_run (epsilon) | intervals (AUC and others) | judgement (the verdict) |
file, scored (`deniable verdict`) | promise (what is claimed, and its noise).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.audit.campaign import Plan, Trials, play
    from deniable.audit.evidence import Measured, measure
    from deniable.audit.judgement import Verdict, verdict
    from deniable.audit.promise import Promise
    from deniable.audit.record import audit, judge, planned, run

_HOMES = {
    "Measured": "evidence",
    "Plan": "campaign",
    "Promise": "promise",
    "Trials": "campaign",
    "Verdict": "judgement",
    "audit": "record",
    "judge": "record",
    "measure": "evidence",
    "planned": "record",
    "play": "campaign",
    "run": "record",
    "verdict": "judgement",
}

__all__ = [
    "Measured",
    "Plan",
    "Promise",
    "Trials",
    "Verdict",
    "audit",
    "judge",
    "measure",
    "planned",
    "play",
    "run",
    "verdict",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"deniable.audit.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'deniable.audit' has no attribute {name!r}")


class _CallableRoom(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> dict[str, Any]:
        """Play the strongest observer against your own training; see `deniable.audit.record.audit`."""
        result: dict[str, Any] = import_module("deniable.audit.record").audit(*arguments, **settings)
        return result


sys.modules[__name__].__class__ = _CallableRoom
