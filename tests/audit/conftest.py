"""One small campaign on the built-in digits, shared by the tests."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the audit needs the extra 'train'")

from plans import planned

from deniable.campaigns.campaign import Plan, play
from deniable.engines import Local
from deniable.evidence.measured import Trials

BELIEF, DELTA = 0.9, 0.01


@pytest.fixture(scope="session")
def local_plan() -> Plan:
    """Noise relative to local sensitivity, so that the observer reaches the bound."""
    return planned("digits", belief=BELIEF, delta=DELTA, sensitivity="local", trials=1000, steps=30, seed=7)


@pytest.fixture(scope="session")
def local_trials(local_plan: Plan) -> Trials:
    return play(local_plan, engine=Local(1))
