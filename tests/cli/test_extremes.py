"""The ends of every range: an answer or a refusal, never a traceback."""

from __future__ import annotations

import pytest

from .conftest import Run


@pytest.mark.parametrize(
    "line",
    [
        "explain --gdp 5 --prior 5e-324",
        "explain --epsilon 5 --prior 0.9999999999999999",
        "explain --noise 0.01 --delta 5e-324",
        "explain --noise 0.01 --steps 1000 --delta 1e-320",
        "choose --epsilon 1 --steps 100 --delta 5e-324",
        "explain --epsilon 1e6 --delta 5e-324 --prior 5e-324",
        "explain --tvd 5e-324 --delta 5e-324",
    ],
)
def test_the_smallest_numbers_have_an_answer(run: Run, line: str) -> None:
    assert run(*line.split(), "--json").document["scores"]
