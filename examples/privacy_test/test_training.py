"""The training does what is claimed of it."""

import pytest

from training import CLAIM, train

pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus speaks of its random numbers and hooks


def test_private(privacy):
    privacy.check(train, claimed=CLAIM, budget="5 min")
