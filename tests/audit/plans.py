"""Campaigns for the tests, from a promise and settings by name."""

from __future__ import annotations

from typing import Any

from deniable.campaigns.campaign import Ground, Plan
from deniable.promises import AUDITED


def planned(data: str, *, trials: int = 1000, **settings: Any) -> Plan:
    claim = {name: settings.pop(name) for name in AUDITED if name in settings}
    return Plan.on(Ground.of(data, claim, **{"adjacency": "replace", **settings}), trials)
