"""Audit: the strongest observer against your own training, and what its trials say.

The package itself can be called: ``deniable.audit(...)`` is ``deniable.audit.audit(...)``. The function and the room
share a name, and Python binds a room to its house on import, so a function under that name would be lost as soon as
anything imports the room.

Rooms with torch, imported when they are first asked for:
- our own training: campaign (data, neighbours, trials, disk) | evidence, sensitivity (what the trials show) | region
  (the region of privacy) | record (the JSON document, and `audit`);
- somebody else's: recipe, claim, trainer (what it claims and yields) | adapters (Opacus) | recomputed, updates,
  alternatives (what it did) | residuals (one trial's statistics) | twins (the same seed, one record exchanged) |
  diagnostics (the causes) | mixing (models without per-example gradients) | examination (`examine_trainer`) |
  training_record (its document);
- who is exposed: exposure | exposure_record (its document); ground (data, D and training) carries it and campaigns.

Rooms with NumPy and SciPy alone, for scores from any tool: scores_input | limits, thresholds (rates and their limits)
| bound, estimators, credible, likelihood, one_run (epsilon) | intervals (AUC and others) | judgement (the verdict) |
decimals, file, scored (`deniable verdict`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.audit.adapters import watch_opacus
    from deniable.audit.campaign import Plan, Trials, play
    from deniable.audit.evidence import Measured, measure
    from deniable.audit.examination import examine_trainer
    from deniable.audit.judgement import Verdict, verdict
    from deniable.audit.recipe import Adaptive, AutoS, Normalised, PerLayer, Recipe
    from deniable.audit.record import audit, judge, planned, run
    from deniable.audit.trainer import AppliedStep, Records, Released

_HOMES = {
    "Adaptive": "recipe",
    "AppliedStep": "trainer",
    "AutoS": "recipe",
    "Measured": "evidence",
    "Normalised": "recipe",
    "PerLayer": "recipe",
    "Plan": "campaign",
    "Recipe": "recipe",
    "Records": "trainer",
    "Released": "trainer",
    "Trials": "campaign",
    "Verdict": "judgement",
    "audit": "record",
    "examine_trainer": "examination",
    "judge": "record",
    "measure": "evidence",
    "planned": "record",
    "play": "campaign",
    "run": "record",
    "verdict": "judgement",
    "watch_opacus": "adapters",
}

__all__ = [
    "Adaptive",
    "AppliedStep",
    "AutoS",
    "Measured",
    "Normalised",
    "PerLayer",
    "Plan",
    "Recipe",
    "Records",
    "Released",
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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"deniable.audit.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'deniable.audit' has no attribute {name!r}")


class _CallableRoom(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> dict[str, Any]:
        """Play the strongest observer against your own training; see `deniable.audit.record.audit`.

        With `trainer`, somebody else's training is examined; see `deniable.audit.examination.examine_trainer`.
        """
        own = settings.get("trainer") is None
        function = __getattr__("audit" if own else "examine_trainer")
        given = {name: value for name, value in settings.items() if name != "trainer" or not own}
        result: dict[str, Any] = function(*arguments, **given)
        return result


sys.modules[__name__].__class__ = _CallableRoom
