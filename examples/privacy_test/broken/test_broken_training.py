"""Fails, with the cause and the line: this is what a privacy test is for."""

import pytest
from broken_training import BATCH, RECORDS, STEPS, train

import deniable as dn

pytestmark = pytest.mark.filterwarnings("ignore")


def test_private(privacy):
    claim = dn.Training(noise=1.0, rate=BATCH / RECORDS, steps=STEPS, adjacency="add-remove")
    privacy.check(train, claimed=claim, budget="5 min")
