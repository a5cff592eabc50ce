"""The comparison's JSON document, and `compare`, which makes it from settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from math import inf, sqrt
from pathlib import Path
from statistics import stdev
from time import perf_counter
from typing import Any

from msgspec import convert, structs

from deniable.campaigns.plot_data import region
from deniable.campaigns.provenance import compare_command, now
from deniable.checks import probability
from deniable.comparison.comparison_plan import CENTRAL_NOISES, AttackName, ComparisonPlan, Level
from deniable.comparison.play import PlayedRepeat, Progress, play
from deniable.comparison.recommendation import Point, recommend
from deniable.comparison.repeat_measures import (
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
from deniable.engines import Engine, choose_engine, open_store
from deniable.local import suitable_randomizer
from deniable.mechanisms import Adjacency
from deniable.results.compare_result import (
    BlindSpread,
    Chance,
    CompareInput,
    CompareResult,
    LevelEpsilon,
    LevelResult,
    Recommended,
    RegionRow,
)
from deniable.results.shared import Spread
from deniable.scores import privacy_loss
from deniable.store import CampaignStore
from deniable.tradeoff import average_precision_bound, chance_level, phi

SCHEMA = "deniable/compare/1"
NOTHING = "undefined: the attack on the original model is at its baseline, so no gain in privacy can be measured"


def compare(
    data: str | Path | Callable[[], Any] = "purchases",
    *,
    central: Iterable[float] = CENTRAL_NOISES,
    local: Iterable[float] | None = None,
    attack: AttackName = "strongest",
    records: int | None = None,
    classes: int | None = None,
    label: str | None = None,
    repeats: int = 5,
    epochs: int | None = None,
    patience: int | None = 5,
    seed: int = 0,
    confidence: float = 0.95,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    engine: Engine | str = "local",
    progress: Progress | None = None,
) -> CompareResult:
    """Compare local and central privacy by what an attacker achieves and what accuracy is left (Bernau 2021b).

    ``compare("location30", central=[2, 16], local=[1], attack="threshold")``. Workers are spawned: a script needs
    ``if __name__ == "__main__":``, or ``processes=1``.

    Args:
        data: A name, a file, or a function (`deniable.data.load`).
        central: Noise multipliers of DP-SGD, a level each.
        local: Epsilons for each value of a record, a level each. Default: Bernau 2021b's for such data.
        attack: strongest (of LiRA, RMIA, Bayesian LiRA and the loss threshold, the one that does best on the records
            that the attacker knows), lira, rmia, bayes, whitebox, shadow or threshold.
        records: Members, and as many non-members, drawn for each repeat. Default 1000, or a third of what there is.
        classes: Of generated data, how many. Default 20.
        label: The label's column of a .csv file.
        repeats: Trainings of each level.
        epochs: Passes over the data. Default: Bernau 2021b, Table 2's.
        patience: Epochs without a better validation after which a training stops; None never stops early.
        seed: Of everything random.
        confidence: Of limits and bounds.
        out: A directory in which every finished training is kept.
        resume: Go on with the comparison in `out`.
        processes: Workers. Default: one a core.
        engine: Where the trainings run (`deniable.engines`); the result is the same everywhere.
        progress: Hears (trainings done, trainings in all).

    Returns:
        Accuracy and attack at every level; `report(path)` writes the page.

    Examples:
        >>> import deniable as dn
        >>> small = {"records": 60, "repeats": 1, "epochs": 1, "attack": "threshold", "processes": 1}
        >>> dn.compare("digits", central=[2.0], local=[1.0], **small).input.records
        60
    """
    chosen_engine = choose_engine(engine, processes)
    with open_store(chosen_engine, out, resume) as store:
        plan = ComparisonPlan.of(
            data,
            classes=classes,
            central=central,
            local=local,
            attack=attack,
            repeats=repeats,
            records=records,
            seed=seed,
            epochs=epochs,
            patience=patience,
            label=label,
        )
        return run(plan, store, engine=chosen_engine, progress=progress, confidence=confidence)


def run(
    plan: ComparisonPlan,
    store: CampaignStore | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    confidence: float = 0.95,
) -> CompareResult:
    """Play what of the plan `store` lacks, keep it there, and judge all."""
    probability("confidence", confidence, open_ends=True)
    started = perf_counter()
    if store is not None:
        store.begin(plan.settings)
    blind, levels = play(plan, store, engine=engine, progress=progress)
    found = judge(plan, blind, levels, confidence)
    return found.replace(seconds=perf_counter() - started, finished=now())


def judge(
    plan: ComparisonPlan,
    blind: Sequence[PlayedRepeat],
    levels: dict[Level, list[PlayedRepeat]],
    confidence: float = 0.95,
) -> CompareResult:
    """Every level's row, the region of privacy, the recommendation; the blind attack's warning on all of them."""
    delta = 1 / plan.records
    shifted = shift([played.attack_scores for played in blind])
    first = next(iter(levels.values()))
    chance = chance_level(2 * len(first[0].members), plan.repeats, confidence)
    alone = [_row(plan, level, repeats, shifted, confidence) for level, repeats in levels.items()]
    rows = _with_phi(alone, chance, plan.data.classes)
    command = compare_command(plan.settings, plan.source, confidence)
    return CompareResult(
        input=convert(plan.settings, CompareInput),
        delta=delta,
        confidence=confidence,
        chance=Chance(
            average_precision=0.5,
            stays_below=chance,
            accuracy=1 / plan.data.classes,
            majority_accuracy=plan.data.largest_class_share,
        ),
        blind=BlindSpread(average_precision=shifted.precision, stays_below=shifted.chance, differs=shifted.found),
        warning=shifted.warning,
        levels=tuple(rows),
        region=_region(plan, rows, delta),
        recommendation=_recommend(rows, chance, shifted, plan.data.largest_class_share),
        provenance=structs.replace(plan.source, command=command),
    )


def _with_phi(rows: Sequence[LevelResult], chance: float, classes: int) -> list[LevelResult]:
    """The rows with their phi, where the attack on the original model is better than chance."""
    if rows[0].average_precision.mean <= chance:
        return [structs.replace(row, phi_note=NOTHING) for row in rows]
    return [rows[0], *(_with_trade_off(rows[0], row, classes) for row in rows[1:])]


def _row(
    plan: ComparisonPlan, level: Level, repeats: Sequence[PlayedRepeat], shifted: Shift, confidence: float
) -> LevelResult:
    """A level by itself; the warning about members and others that differ is on every one."""
    scored, delta = [played.attack_scores for played in repeats], 1 / plan.records
    return LevelResult(
        kind=level.kind,
        name=level.name,
        value=level.value,
        epsilon=_epsilon(plan, level, max(int(played.steps) for played in repeats), delta),
        steps=tuple(int(played.steps) for played in repeats),
        judged=tuple(played.rule_name for played in repeats) if plan.attack == "strongest" else (),
        train_accuracy=spread_of([float(played.train_accuracy) for played in repeats]),
        test_accuracy=spread_of([float(played.test_accuracy) for played in repeats]),
        average_precision=precisions(scored),
        advantage=advantages(scored),
        tpr_at_fpr=rates_at(scored),
        epsilon_lower_bound=void(lower_bound(scored, delta, confidence).result(), shifted),
        precision_recall=curve(scored),
        phi=None,
        phi_error=None,
        phi_note=None,
        blind_average_precision=shifted.precision.mean,
        warning=shifted.warning,
    )


def _epsilon(plan: ComparisonPlan, level: Level, steps: int, delta: float) -> LevelEpsilon | None:
    """What the level promises; None without protection.

    Central: of the steps really taken (the most of all repeats) and of all planned ones. Local: for each value, their
    sum over the record (Bernau 2021b, Table 1), and the exact one of the composed release at the same delta.
    """
    if level.kind == "local" and level.value is not None:
        cost = suitable_randomizer(plan.data, level.value).cost(plan.data.features.shape[1:])
        exact, most = float(cost.loss.epsilon(delta)), float(cost.loss.advantage())
        promised = {"value": level.value, "record": cost.epsilon, "record_at_delta": exact}
    elif level.kind == "central":
        taken, planned = _releases(plan, level, steps)
        exact, most = float(taken.epsilon(delta)), float(taken.advantage())
        promised = {"value": exact, "planned": float(planned.epsilon(delta))}
    else:
        return None
    precision = average_precision_bound(min(1.0, most))
    return LevelEpsilon(**promised, advantage_at_most=most, average_precision_at_most=float(precision))


def _releases(plan: ComparisonPlan, level: Level, steps: int) -> Any:
    settings = plan.training(level)
    mechanisms = settings.mechanism(plan.records, steps), settings.mechanism(plan.records)
    return tuple(privacy_loss(mechanism, Adjacency.ADD_REMOVE) for mechanism in mechanisms if mechanism is not None)


def _with_trade_off(original: LevelResult, row: LevelResult, classes: int) -> LevelResult:
    """Phi of the means, and its standard error: the spread of each repeat's own phi (where defined) over their root."""

    def of(read: Callable[[Spread], float]) -> float | None:
        return phi(
            original_precision=read(original.average_precision),
            precision=read(row.average_precision),
            original_accuracy=read(original.test_accuracy),
            accuracy=read(row.test_accuracy),
            classes=classes,
        )

    single = [of(lambda spread, r=repeat: spread.values[r]) for repeat in range(len(row.steps))]  # type: ignore[misc]
    defined = [value for value in single if value is not None]
    error = stdev(defined) / sqrt(len(defined)) if len(defined) > 1 else None
    return structs.replace(row, phi=of(lambda spread: spread.mean), phi_error=error)


def _region(plan: ComparisonPlan, rows: Sequence[LevelResult], delta: float) -> tuple[RegionRow, ...]:
    given = []
    for row in rows:
        if row.kind != "central" or row.value is None:
            continue
        mechanism = plan.training(Level("central", row.value)).mechanism(plan.records, max(row.steps))
        if mechanism is not None:
            given.append((row.value, mechanism, row.epsilon_lower_bound.value))
    return tuple(region(given, delta))


def _recommend(rows: Sequence[LevelResult], chance: float, shifted: Shift, majority: float | None) -> Recommended:
    original = _point(rows[0])
    kinds = {kind: [_point(row) for row in rows if row.kind == kind] for kind in ("central", "local")}
    told: dict[str, Sequence[Point]] = {kind: points for kind, points in kinds.items() if points}
    found = recommend(original, told, chance, shifted, majority)
    return convert(asdict(found) | {"text": " ".join(found.sentences)}, Recommended)


def _record_epsilons(row: LevelResult) -> list[float]:
    """Of a whole record: of local noise the sum over its values, and what is proven at the comparison's delta."""
    promised = row.epsilon
    if promised is None:
        return [inf]
    known = [epsilon for epsilon in (promised.record, promised.record_at_delta) if epsilon is not None]
    return known or [promised.value]


def _point(row: LevelResult) -> Point:
    return Point(
        name=row.name,
        epsilon=row.epsilon.value if row.epsilon else inf,
        record_epsilon=_record_epsilons(row)[0],
        least_epsilon=min(_record_epsilons(row)),
        accuracy=row.test_accuracy.mean,
        precision=row.average_precision.mean,
        phi=row.phi,
        phi_error=row.phi_error,
        spread=row.test_accuracy.deviation,
        precision_error=(row.average_precision.deviation or 0.0) / sqrt(len(row.average_precision.values)),
    )
