"""Small real runs of every kind, made once: an audit with exposure, a comparison, a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="runs need the extra 'train'")

from deniable.cli import main

AUDIT = "audit digits --belief .9 --delta .05 --records 20 --steps 4 --trials 40 --processes 1 --exposure"
COMPARE = (
    "compare purchases --records 40 --classes 10 --central 16 --local 0.5 --repeats 1 --epochs 2 --attack threshold "
    "--processes 1"
)


def _run(*arguments: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert not left.value.code


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders and documents by the kind of run."""
    place = tmp_path_factory.mktemp("runs")
    _run(*AUDIT.split(), "--out", place / "audit")
    _run(*COMPARE.split(), "--out", place / "compare")
    return {"audit": place / "audit", "compare": place / "compare", "verdict": _verdict(place)}


def _verdict(place: Path) -> Path:
    from deniable.audit.scored import Asked, judge_scores  # noqa: PLC0415
    from deniable.audit.scores_input import Scores  # noqa: PLC0415

    generator = np.random.default_rng(0)
    scores = Scores(generator.normal(2, 1, 200), generator.normal(0, 1, 200))
    document = judge_scores(scores, Asked(2.0, 1e-5, noise=2.0, rate=0.5, steps=3))
    (place / "verdict.json").write_text(json.dumps(document))
    return place / "verdict.json"


@pytest.fixture
def documents(runs: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """The runs' documents, to be changed at will."""
    files = {kind: path if path.suffix else path / f"{kind}.json" for kind, path in runs.items()}
    return {kind: json.loads(file.read_text()) for kind, file in files.items()}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and tables alone: nothing is drawn, and no curve is computed."""
    line = {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]}
    monkeypatch.setattr("deniable.report.page.inline", lambda picture, prefix: "")
    monkeypatch.setattr("deniable.report.audited.region_data", lambda document, lower: [])
    for room in ("observed", "scored"):
        monkeypatch.setattr(f"deniable.report.{room}.exact_curve", lambda given: line)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Writes a document to a file of its own."""

    def write(document: dict[str, Any], name: str = "run.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    return write
