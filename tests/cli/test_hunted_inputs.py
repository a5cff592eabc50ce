"""A small share of the hunt for inputs: random command lines, bodies, files and stores with fixed seeds."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the audit needs the extra 'train'")
pytest.importorskip("fastapi", reason="the planner needs the extra 'web'")

from hunt import inputs
from hunt.inputs import fault_of, look


@pytest.mark.filterwarnings("ignore")  # of the test client's own
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_no_input_ends_in_a_traceback(first: int) -> None:
    assert [str(find) for seed in range(first, first + 20) if (find := look(seed)) is not None] == []


def test_the_hunt_notices_a_traceback_and_an_undocumented_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str]) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("deniable.cli.main", broken)
    assert "ZeroDivisionError" in str(fault_of(["explain"]))

    def odd(arguments: list[str]) -> None:
        raise SystemExit(3)

    monkeypatch.setattr("deniable.cli.main", odd)
    assert "exit code 3" in str(fault_of(["explain"]))
    assert inputs._not_json('{"a": NaN}')


@pytest.mark.parametrize(
    "line",
    [
        "choose --epsilon 4.885e-06 --delta 1e-6 --sampling shuffled --steps-per-epoch 9 --epochs 2 --json",
        "choose --tpr .842 --fpr .01 --sampling fixed --records 600 --batch 20 --steps 30 --with-replacement --json",
        "choose --accuracy .737 --sampling truncated --rate .01 --cap 20 --records 600 --steps 30 --json",
    ],
)
def test_lines_that_once_ended_in_a_traceback(line: str) -> None:
    assert fault_of(line.split()) is None
