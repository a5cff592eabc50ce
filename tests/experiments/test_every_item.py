"""Every table and figure, at the tests' size: it runs, meets what it states, and is written whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deniable.experiments import PAPERS, Scale, expected_seconds, find, run_items
from deniable.experiments.item import Item, Paper
from deniable.experiments.statements import Printed

EVERYTHING = find()
NAMES = [f"{paper.name}-{item.name}" for paper, item in EVERYTHING]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all items, so that they share their trials."""
    return tmp_path_factory.mktemp("reproduced")


@pytest.mark.parametrize(("paper", "item"), EVERYTHING, ids=NAMES)
def test_item_meets_what_it_states(paper: Paper, item: Item, out: Path, request: pytest.FixtureRequest) -> None:
    if item.needs:
        request.getfixturevalue("real_data")
    found = run_items([(paper, item)], Scale.TEST, out, every=PAPERS)
    assert found.missed == (), found.items[0].comparisons
    place = out / paper.name
    record = json.loads((place / f"{item.name}.json").read_text())
    assert record["versions"]["deniable"]
    assert (place / f"{item.name}.svg").read_text().rstrip().endswith("</svg>")
    with Image.open(place / f"{item.name}.png") as picture:
        assert min(picture.size) > 60
        assert len(picture.convert("L").getcolors()) > 2  # something is drawn
    page = (out / "RESULTS.md").read_text()
    assert f'<img src="{paper.name}/{item.name}.svg"' in page or f"[as a picture]({paper.name}/{item.name}.svg)" in page
    for comparison in item.comparisons:
        if isinstance(comparison, Printed):  # numbers that are 30 % off do not pass for the paper's
            assert not comparison.judge(_off(record["values"]), item.printed).passed


def _off(value: Any) -> Any:
    """Everything 30 % larger; 0, which has no percents, becomes 1."""
    if isinstance(value, dict):
        return {name: _off(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_off(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value * 1.3 if value else 1.0


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_all_five_papers_are_here() -> None:
    assert [paper.key for paper in PAPERS] == [
        "Bernau 2020",
        "Bernau 2021",
        "Jia 2023",
        "Bernau 2021b",
        "Erlingsson 2019",
    ]
    assert all(paper.items for paper in PAPERS)


@pytest.mark.parametrize(("paper", "item"), EVERYTHING, ids=NAMES)
def test_item_says_what_it_takes(paper: Paper, item: Item) -> None:
    assert {Scale.SMOKE, Scale.FULL} <= set(item.seconds)
    assert item.comparisons
    assert item.caption.startswith(item.name.partition("-")[0].capitalize())


def test_smoke_is_promised_within_ten_minutes() -> None:
    assert sum(expected_seconds((item for _, item in EVERYTHING), Scale.SMOKE)) < 600
