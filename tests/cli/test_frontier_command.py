"""`deniable frontier`: words, table, JSON, picture, refusals on one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="frontiers need the extra 'train'")

from .conftest import Run

TINY = "--bounds .6,.99 --epochs 4 --batch 64 --repeats 2 --model logistic --processes 1"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    hours = generator.normal(40, 10, 300)
    rows = (f"{value:.1f},{'ab'[int(value) % 2]},{'yes' if value > 45 else 'no'}" for value in hours)
    path = tmp_path / "people.csv"
    path.write_text("hours,kind,rich\n" + "\n".join(rows))
    return path


def test_words_table_picture_and_json(run: Run, table: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    outcome = run("frontier", table, "--label", "rich", "--group", "kind", *TINY.split(), "--out", place)
    assert (outcome.code, outcome.err) == (0, f"report: {place / 'report.html'}\n")
    document = json.loads((place / "frontier.json").read_text())
    text = " ".join(outcome.out.split())
    assert " ".join(document["knee"]["sentences"]) in text
    assert "225 training records of people.csv (3 features, 2 classes)" in text
    assert "no promise" in text
    assert "no model: no" in text
    assert "does NOT cover this choice" in text
    assert "became numbers by statistics of the training records" in text
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert (place / "frontier.png").read_bytes().startswith(b"\x89PNG")
    page = (place / "report.html").read_text()
    assert "What privacy costs on people.csv" in page
    assert "yes: not private" in page
    again = run(
        "frontier", table, "--label", "rich", "--group", "kind", *TINY.split(), "--out", place, "--resume", "--json"
    )
    assert again.document["levels"] == document["levels"]
    assert run("report", place, "--out", tmp_path / "again.html").code == 0
    chosen = run("choose", "--belief", 0.8, "--records", 225, "--batch", 64, "--epochs", 4, "--frontier", place)
    assert "At this promise expect" in " ".join(chosen.out.split())
    refused = run("choose", "--belief", 0.8, "--rate", 0.1, "--steps", 10, "--frontier", tmp_path / "nowhere")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--bounds 1,x", ["--bounds", "'1,x'"]),
        ("--bounds 0.4", ["belief", "above 0.5"]),
        ("--promise hope", ["promise", "'hope'"]),
        ("--repeats 1", ["repeats", ">= 2", "got 1"]),
        ("--epochs 1.5", ["--epochs must be whole numbers"]),
        ("--batch 0", ["batch", "got 0"]),
        ("--tuning secret", ["tuning", "uncovered, public, accounted"]),
        ("--metric error", ["metric", "accuracy, balanced_accuracy, auc"]),
        ("--label wealth", ["no column 'wealth'", "hours, kind, rich"]),
        ("--group town", ["no column 'town'"]),
        ("--task clustering", ["task must be one of classification, regression"]),
        ("--label kind --task regression", ["holds words"]),
        ("--model cnn", ["cnn needs images"]),
        ("--fpr 0.1", ["fpr is no parameter of a promise of belief"]),
        ("--resume", ["--resume needs --out"]),
        ("--tuning accounted --batch 8,16", ["batch must be one value"]),
        ("--test nowhere.csv", ["there is no file nowhere.csv"]),
    ],
)
def test_one_line_says_what_is_wrong(run: Run, table: Path, line: str, said: list[str]) -> None:
    outcome = run("frontier", table, *line.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    for part in said:
        assert part in outcome.err


def test_bad_data_is_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for text in ("a,y\n1,2\n", "a,y\n" + "1,x\n" * 50, "", "\x00\x01", "a,y\n" + "nan,1\n" * 30 + "nan,2\n" * 30):
        path.write_text(text)
        outcome = run("frontier", path, "--label", "y")
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1), text[:20]
