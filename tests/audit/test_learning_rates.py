"""Learning rates read off the moves: a rule that fits every move ends the search, and changes no answer."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.examination.updates.learning_rates import _best_rule

nan = np.nan


@pytest.mark.parametrize("rates", [
    [[nan, 1.0], [2.0, 2.0], [3.0, 3.0]], [[nan, nan], [1.0, nan], [nan, 1.0]], [[nan], [nan]], [[], []],
])  # fmt: skip
def test_the_first_rule_by_which_most_is_known(rates: list[list[float]]) -> None:
    tried: list[list[float]] = []
    best = _best_rule((tried.append(one) or one for one in rates), lambda one: list(np.isfinite(one)))
    naive = max(rates, key=lambda one: int(np.isfinite(one).sum()))
    assert best is naive
    known = [number for number, one in enumerate(rates) if np.isfinite(one).all()]
    assert len(tried) == (known[0] + 1 if known else len(rates))
