"""Coins, places and signs are random, but the same in every run of a test: a verdict may be wrong 1 time in 20."""

from __future__ import annotations

import random

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _same_canaries_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, fresh = random.Random(1), np.random.default_rng
    monkeypatch.setattr("deniable.canary.plan.urandom", drawn.randbytes)
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed=None: fresh(drawn.getrandbits(64) if seed is None else seed)
    )
