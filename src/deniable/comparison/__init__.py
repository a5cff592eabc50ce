"""Local against central privacy: what an attacker achieves and what accuracy is left (Bernau 2021b).

Rooms: plan (data, levels, attack) | play (train, attack, keep on disk) | results (means, spread, bounds) |
recommendation (words) | record (the JSON document, and `compare`).
"""

from __future__ import annotations

from deniable.comparison.plan import Level, Plan
from deniable.comparison.play import play
from deniable.comparison.record import compare, judge, run

__all__ = ["Level", "Plan", "compare", "judge", "play", "run"]
