"""The comparison's JSON document, and `compare`, which makes it from settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from statistics import stdev
from time import perf_counter
from typing import Any

from deniable.audit.provenance import compare_command, now, versions
from deniable.audit.region import region
from deniable.checks import probability
from deniable.comparison.plan import Level, Plan
from deniable.comparison.play import Played, Progress, play
from deniable.comparison.recommendation import Point, Recommendation, recommend
from deniable.comparison.results import (
    Shift,
    advantages,
    curve,
    lower_bound,
    precisions,
    rates_at,
    shift,
    spread_of,
    void,
)
from deniable.document import Document
from deniable.local import suited
from deniable.mechanisms import Adjacency
from deniable.scores import privacy_loss
from deniable.store import Store, opened
from deniable.tradeoff import average_precision_bound, chance_level, phi

__all__ = ["SCHEMA", "compare", "judge", "run"]

SCHEMA = "deniable/compare/1"
NOTHING = "undefined: the attack on the original model is at its baseline, so no gain in privacy can be measured"


def compare(
    data: str | Path | Callable[[], Any] = "purchases",
    *,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    progress: Progress | None = None,
    confidence: float = 0.95,
    **settings: Any,
) -> Document:
    """Compare local and central privacy by what an attacker achieves and what accuracy is left (Bernau 2021b).

    ``compare("location30", central=[2, 16], local=[1], attack="threshold")``; `settings` are those of `Plan.of`. With
    `out`, every finished training is kept in that directory, and `resume` goes on there. Workers are spawned: a script
    needs ``if __name__ == "__main__":``, or ``processes=1``.
    """
    with opened(out, resume) as store:
        plan = Plan.of(data, **settings)
        return run(plan, store, processes=processes, progress=progress, confidence=confidence)


def run(
    plan: Plan,
    store: Store | None = None,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    confidence: float = 0.95,
) -> Document:
    """Play what of the plan `store` lacks, keep it there, and judge all."""
    probability("confidence", confidence, open_ends=True)
    started = perf_counter()
    if store is not None:
        store.begin(plan.settings)
    blind, levels = play(plan, store, processes=processes, progress=progress)
    return {**judge(plan, blind, levels, confidence), "seconds": perf_counter() - started, "finished": now()}


def judge(plan: Plan, blind: Sequence[Played], levels: dict[Level, list[Played]], confidence: float = 0.95) -> Document:
    """Every level's row, the region of privacy, the recommendation; the blind attack's warning on all of them."""
    delta = 1 / plan.records
    shifted = shift([played.scored for played in blind])
    first = next(iter(levels.values()))
    chance = chance_level(2 * len(first[0].members), plan.repeats, confidence)
    rows = [_row(plan, level, repeats, delta, confidence) for level, repeats in levels.items()]
    leaks = rows[0]["average_precision"]["mean"] > chance
    for row in rows:
        traded = leaks and row is not rows[0]
        row.update(_trade_off(rows[0], row, plan.data.classes) if traded else {"phi": None, "phi_error": None})
        row["phi_note"] = None if leaks else NOTHING
        row["epsilon_lower_bound"] = void(row["epsilon_lower_bound"], shifted)
        row["blind_average_precision"] = shifted.precision.mean
        row["warning"] = shifted.warning
    found = _recommended(rows, chance, shifted)
    return {
        "schema": SCHEMA,
        "input": plan.settings,
        "delta": delta,
        "confidence": confidence,
        "chance": {"average_precision": 0.5, "stays_below": chance, "accuracy": 1 / plan.data.classes},
        "blind": {
            "average_precision": asdict(shifted.precision),
            "stays_below": shifted.chance,
            "differs": shifted.found,
        },
        "warning": shifted.warning,
        "levels": rows,
        "region": _region(plan, rows, delta),
        "recommendation": asdict(found) | {"text": " ".join(found.sentences)},
        "provenance": {
            **plan.source,
            "versions": versions(),
            "command": compare_command(plan.settings, plan.source, confidence) if plan.source else None,
        },
    }


def _row(plan: Plan, level: Level, repeats: Sequence[Played], delta: float, confidence: float) -> Document:
    scored = [played.scored for played in repeats]
    points = curve(scored)
    return {
        "kind": level.kind,
        "name": level.name,
        "value": level.value,
        "epsilon": _epsilon(plan, level, max(int(played.steps) for played in repeats), delta),
        "steps": [int(played.steps) for played in repeats],
        "train_accuracy": asdict(spread_of([float(played.train_accuracy) for played in repeats], confidence)),
        "test_accuracy": asdict(spread_of([float(played.test_accuracy) for played in repeats], confidence)),
        "average_precision": asdict(precisions(scored, confidence)),
        "advantage": asdict(advantages(scored, confidence)),
        "tpr_at_fpr": rates_at(scored),
        "epsilon_lower_bound": lower_bound(scored, delta, confidence).document(),
        "precision_recall": {"precision": points.precision.tolist(), "recall": points.recall.tolist()},
    }


def _epsilon(plan: Plan, level: Level, steps: int, delta: float) -> Document | None:
    """What the level promises; None without protection.

    Central: of the steps really taken (the most of all repeats) and of all planned ones. Local: for each value, their
    sum over the record (Bernau 2021b, Table 1), and the exact one of the composed release at the same delta.
    """
    if level.kind == "local" and level.value is not None:
        cost = suited(plan.data, level.value).cost(plan.data.features.shape[1:])
        exact, most = float(cost.loss.epsilon(delta)), float(cost.loss.advantage())
        promised = {"value": level.value, "record": cost.epsilon, "record_at_delta": exact}
    elif level.kind == "central":
        taken, planned = _releases(plan, level, steps)
        exact, most = float(taken.epsilon(delta)), float(taken.advantage())
        promised = {"value": exact, "planned": float(planned.epsilon(delta))}
    else:
        return None
    return promised | {"advantage_at_most": most, "average_precision_at_most": average_precision_bound(min(1.0, most))}


def _releases(plan: Plan, level: Level, steps: int) -> Any:
    settings = plan.training(level)
    mechanisms = settings.mechanism(plan.records, steps), settings.mechanism(plan.records)
    return tuple(privacy_loss(mechanism, Adjacency.ADD_REMOVE) for mechanism in mechanisms if mechanism is not None)


def _trade_off(original: Document, row: Document, classes: int) -> Document:
    """Phi of the means, and its standard error: the spread of each repeat's own phi (where defined) over their root."""

    def of(read: Callable[[Document], float]) -> float | None:
        names = ("average_precision", "test_accuracy")
        old, new = ([read(one[name]) for name in names] for one in (original, row))
        return phi(
            original_precision=old[0], precision=new[0], original_accuracy=old[1], accuracy=new[1], classes=classes
        )

    single = [of(lambda spread, r=repeat: spread["values"][r]) for repeat in range(len(row["steps"]))]  # type: ignore[misc]
    defined = [value for value in single if value is not None]
    error = stdev(defined) / sqrt(len(defined)) if len(defined) > 1 else None
    return {"phi": of(lambda spread: float(spread["mean"])), "phi_error": error}


def _region(plan: Plan, rows: Sequence[Document], delta: float) -> list[Document]:
    central = [row for row in rows if row["kind"] == "central"]
    given = []
    for row in central:
        mechanism = plan.training(Level("central", row["value"])).mechanism(plan.records, max(row["steps"]))
        if mechanism is not None:
            given.append((row["value"], mechanism, row["epsilon_lower_bound"]["value"]))
    return [asdict(found) for found in region(given, delta)]


def _recommended(rows: Sequence[Document], chance: float, shifted: Shift) -> Recommendation:
    original = _point(rows[0])
    kinds = {kind: [_point(row) for row in rows if row["kind"] == kind] for kind in ("central", "local")}
    return recommend(original, {kind: points for kind, points in kinds.items() if points}, chance, shifted)


def _point(row: Document) -> Point:
    return Point(
        name=row["name"],
        epsilon=row["epsilon"]["value"] if row["epsilon"] else float("inf"),
        accuracy=row["test_accuracy"]["mean"],
        precision=row["average_precision"]["mean"],
        phi=row["phi"],
        phi_error=row["phi_error"],
        spread=row["test_accuracy"]["deviation"],
    )
