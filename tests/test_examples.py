"""The example projects run in an empty folder and leave what they say; examples/privacy_test is run by testing/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script: str, place: Path) -> str:
    command = [sys.executable, str(EXAMPLES / script)]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_private_model(tmp_path: Path) -> None:
    pytest.importorskip("opacus", reason="the example needs Opacus")
    shown = run("private_model/train.py", tmp_path)
    assert "Consistent. Nothing speaks against the claim" in shown
    accuracy = int(shown.partition("unseen digits: ")[2].partition("%")[0])
    assert accuracy > 50  # guessing: 10
    assert "nobody who starts at 50 %" in (tmp_path / "assessment.md").read_text().lower()
    left = {"answer.json", "run.jsonl", "run.html", "model.pt", "card.md", "assessment.md"}
    assert left <= {path.name for path in tmp_path.iterdir()}


def test_an_attack_is_judged(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="the example needs the extra 'report'")
    assert "Violated." in run("judge_an_attack/judge.py", tmp_path)
    assert "Violated" in (tmp_path / "verdict.html").read_text()


def test_every_example_is_described() -> None:
    assert [place.name for place in EXAMPLES.iterdir() if place.is_dir() and not (place / "README.md").exists()] == []
