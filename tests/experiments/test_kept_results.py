"""docs/results: judged anew it says the same, and every statement in it can fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from deniable.experiments import find
from deniable.experiments.item import Item, Paper, Scale
from deniable.experiments.results_page import results_page
from deniable.experiments.run import judge_item
from deniable.experiments.statements import Comparison
from deniable.results.base import plain
from deniable.results.reproduce_result import ItemResult

KEPT = Path(__file__).parents[2] / "docs" / "results"
EVERYTHING = find()
NAMES = [f"{paper.name}-{item.name}" for paper, item in EVERYTHING]
JUDGED = [(paper, item, one) for paper, item in EVERYTHING for one in item.comparisons]


def _record(paper: Paper, item: Item) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((KEPT / paper.name / f"{item.name}.json").read_text())
    return found


@pytest.mark.parametrize(("paper", "item"), EVERYTHING, ids=NAMES)
def test_records_are_as_the_items_describe_them(paper: Paper, item: Item) -> None:
    record = _record(paper, item)
    made = {"seed": 0, "seconds": record["seconds"], "versions": record["versions"]}
    judged = plain(judge_item((paper, item), record["values"], Scale(record["scale"]), **made))
    assert {**record, **judged} == record
    assert plain(convert(record["values"], item.read_as)) == record["values"]
    assert record["passed"]
    assert Scale(record["scale"]).rank >= Scale.HOURS.rank
    assert record["not_judged"] == []
    for kind, most in (("svg", 150_000), ("png", 80_000)):
        assert (KEPT / paper.name / f"{item.name}.{kind}").stat().st_size < most


def test_the_page_is_made_of_the_records() -> None:
    assert (KEPT / "RESULTS.md").read_text() == results_page(
        [convert(_record(paper, item), ItemResult) for paper, item in EVERYTHING]
    )


def _changed(value: Any, change: Callable[[float], float]) -> Any:
    if isinstance(value, dict):
        return {name: _changed(part, change) for name, part in value.items()}
    if isinstance(value, list):
        return [_changed(part, change) for part in value]
    return value if isinstance(value, bool | str | None) else change(value)


def _mutants(value: Any, depth: int = 4) -> Iterator[Any]:
    """The value with one part of it, down to some depth, wrong in one way."""
    yield from (_changed(value, change) for change in CHANGES)
    if isinstance(value, list):
        yield value[::-1]
    if isinstance(value, dict | list) and depth:
        for name in value if isinstance(value, dict) else range(len(value)):
            for wrong in _mutants(value[name], depth - 1):
                other = value.copy()
                other[name] = wrong
                yield other


CHANGES: tuple[Callable[[float], float], ...] = (
    lambda x: 1.5 * x + 0.3,
    lambda x: 0.5 * x - 0.3,
    lambda x: 1 - x,
    lambda x: 1000 * x + 1,
    lambda x: 1.0,
)


def _fails(comparison: Comparison, values: dict[str, Any], item: Item) -> bool:
    try:
        return not comparison.judge(values, item.printed).passed
    except (ValueError, TypeError):  # no such values at all: that proves nothing
        return False


@pytest.mark.parametrize(
    ("paper", "item", "comparison"), JUDGED, ids=[f"{p.name}-{i.name}-{i.comparisons.index(c)}" for p, i, c in JUDGED]
)
def test_every_statement_can_fail(paper: Paper, item: Item, comparison: Comparison) -> None:
    values = _record(paper, item)["values"]
    assert not _fails(comparison, values, item)
    assert any(_fails(comparison, wrong, item) for wrong in _mutants(values))
