"""Small real runs of every kind, made once: an audit with exposure, a comparison, an attack, a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="runs need the extra 'train'")

from deniable.cli import main
from deniable.mechanisms import Adjacency, Training
from deniable.promises import Epsilon
from deniable.store import read_document

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
    found = {"audit": place / "audit", "compare": place / "compare", "attack": place / "attack"}
    _attack(found["attack"])
    return found | {"verdict": _verdict(place)}


def _attack(place: Path) -> None:
    """A model that has learned 60 of 120 records by heart."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    from deniable.comparison.own import attack  # noqa: PLC0415
    from deniable.data import from_arrays  # noqa: PLC0415
    from deniable.report.page import write  # noqa: PLC0415

    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(120, 30)).astype(np.float32), generator.integers(0, 4, 120)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 4))
    learner = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(150):
        learner.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.from_numpy(features[:60])), torch.from_numpy(labels[:60]))
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
    members, others = (from_arrays("noise", features[part], labels[part]) for part in (slice(60), slice(60, 120)))
    write(attack(model, members, others, attack="threshold", repeats=2, out=place), place)


def _verdict(place: Path) -> Path:
    from deniable.evidence.attack_scores import Scores  # noqa: PLC0415
    from deniable.evidence.examined_claim import Asked  # noqa: PLC0415
    from deniable.evidence.score_audit import judge_scores  # noqa: PLC0415

    generator = np.random.default_rng(0)
    scores = Scores(generator.normal(2, 1, 200), generator.normal(0, 1, 200))
    asked = Asked(Epsilon(2.0, 1e-5), Training(2.0, 0.5, 3, Adjacency.ADD_REMOVE))
    return judge_scores(scores, asked).save(place / "verdict.json")


@pytest.fixture(scope="session")
def joint(runs: dict[str, Path]) -> str:
    """The page of all of them."""
    from deniable.report import render  # noqa: PLC0415

    return render(list(runs.values()))


@pytest.fixture
def documents(runs: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """The runs' documents, to be changed at will."""
    files = {kind: path if path.suffix else path / f"{kind}.json" for kind, path in runs.items()}
    return {kind: read_document(file) for kind, file in files.items()}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and tables alone: nothing is drawn, and no curve is computed."""
    line = {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]}
    monkeypatch.setattr("deniable.report.page.inline", lambda picture, prefix: "")
    monkeypatch.setattr("deniable.report.audited.region_data", lambda document, lower: [])
    for room in ("observed", "scored"):
        monkeypatch.setattr(f"deniable.report.{room}.exact_curve", lambda *given: line)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Writes a document to a file of its own."""

    def write(document: dict[str, Any], name: str = "run.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    return write
