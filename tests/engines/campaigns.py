"""One small campaign of each kind, to be played on any engine: what it answers, without its times."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch

if str(AUDIT := Path(__file__).parents[1] / "audit") not in sys.path:
    sys.path.append(str(AUDIT))

from trainers import Broken, small

import deniable as dn
from deniable.campaigns import audit as own_audit
from deniable.comparison.own_model import attack
from deniable.data import from_arrays
from deniable.engines import Engine, Local
from deniable.evidence.anytime.watch import Watch
from deniable.mechanisms import Training
from deniable.scores import privacy_loss

__all__ = ["CAMPAIGNS", "Answer", "play_alone"]

Answer = dict[str, Any]
_TIMES = ("seconds", "trials_per_second", "forecast", "finished", "out")


def plain(result: Any) -> Answer:
    found: Answer = json.loads(result.to_json())
    return {name: value for name, value in found.items() if name not in _TIMES}


def play_audit(engine: Engine, out: Path | None) -> Answer:
    given: dict[str, Any] = {"noise": 5, "trials": 30, "steps": 3, "records": 20, "trials_per_block": 5}
    return plain(dn.audit("digits", engine=engine, out=out, **given))


def play_certain_audit(engine: Engine, out: Path | None) -> Answer:
    """Ends early: the watch tests a claim of twelve times the noise that the training has."""

    def strict(plan: Any, confidence: float) -> Watch:
        claimed = replace(Training.of(plan.training), noise=12 * plan.training.noise)
        return Watch.beside_limits(privacy_loss(claimed.mechanism, claimed.adjacency), plan.trials, confidence)

    given: dict[str, Any] = {"noise": 1, "trials": 100, "steps": 3, "records": 20, "sensitivity": "local"}
    with patch.object(own_audit, "watch_over", strict):
        found = plain(dn.audit("digits", engine=engine, out=out, stop="certain", trials_per_block=5, **given))
    assert found["verdict"] == "violated"
    assert found["measured"]["trials"] < 100
    return found


def play_final_model(engine: Engine, out: Path | None) -> Answer:
    given: dict[str, Any] = {"noise": 5, "trials": 15, "steps": 2, "records": 10, "trials_per_block": 5}
    return plain(dn.audit("digits", engine=engine, out=out, final_model=True, **given))


def play_frontier(engine: Engine, out: Path | None) -> Answer:
    one: dict[str, Any] = {"clip": [1.0], "learning_rate": [0.01, 0.1], "batch": [64], "epochs": [1], "repeats": 2}
    return plain(dn.frontier("digits", bounds=[0.9], model="logistic", engine=engine, out=out, **one))


def play_comparison(engine: Engine, out: Path | None) -> Answer:
    small: dict[str, Any] = {"records": 60, "classes": 5, "central": [4.0], "local": [1.0], "repeats": 1, "epochs": 2}
    return plain(dn.compare("purchases", engine=engine, out=out, attack="threshold", **small))


def play_attack(engine: Engine, out: Path | None) -> Answer:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(60, 64, generator=generator).numpy(), torch.randint(10, (60,), generator=generator).numpy()
    members, others = (from_arrays("own", *(values[part] for values in drawn)) for part in (slice(30), slice(30, 60)))
    torch.manual_seed(1)
    return plain(attack(small(), members, others, attack="threshold", repeats=3, engine=engine, out=out))


def play_examination(engine: Engine, out: Path | None) -> Answer:
    """A training of half of the claimed noise: the trials end when that is certain."""
    claimed = dn.Gaussian(3.0).composed(3)
    given: dict[str, Any] = {"model": small, "clip": 1.0, "adjacency": "add-remove", "records": 40, "trials": 10}
    return plain(
        dn.examine("digits", trainer=Broken(sigma=1.5, steps=3), claimed=claimed, engine=engine, out=out, **given)
    )


def play_reproduction(engine: Engine, out: Path | None) -> Answer:
    assert out is not None
    found = json.loads((dn.reproduce("dbsec", "figure-3", scale="test", out=out, engine=engine)).to_json())
    assert not found["absent"]
    return {item["item"]: item["values"] for item in found["items"]}


CAMPAIGNS: dict[str, Callable[[Engine, Path | None], Answer]] = {
    "audit": play_audit,
    "audit until certain": play_certain_audit,
    "final model": play_final_model,
    "compare": play_comparison,
    "frontier": play_frontier,
    "attack": play_attack,
    "examine": play_examination,
    "reproduce": play_reproduction,
}


@cache
def play_alone(name: str) -> Answer:
    """A campaign's answer in this process, which all engines are held against; as it comes back from JSON."""
    with TemporaryDirectory() as place:
        found: Answer = json.loads(json.dumps(CAMPAIGNS[name](Local(1), Path(place) / "alone")))
    return found
