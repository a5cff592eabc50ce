"""Bernau 2021b, Figures 2 to 5: nine panels a data set, local against central privacy under white-box membership
inference."""

# ruff: noqa: PLC0415 (torch is imported when there is something to train)

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.experiments.drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, legend, panels
from deniable.experiments.games import available
from deniable.experiments.item import Item, ItemRun, Scale, Values
from deniable.experiments.statements import Claim, Comparison
from deniable.results.compare_result import CompareResult, LevelResult
from deniable.results.shared import Spread

__all__ = ["Source", "figure"]

COLOURS = (BLUE, ORANGE, GREEN, RED)
SHADES = (BLACK, BLUE, GREEN, ORANGE, RED, PURPLE)
CURVE_POINTS = 40
KINDS = ("central", "local")


@dataclass(frozen=True)
class Source:
    """Where a figure's records come from: the paper's data where its files are, else the stand-in.

    `real` are (name, classes) of the paper's variants, `stand_in` those of what stands in (empty: the paper's data can
    be had). The records of a training are the paper's at full, `few` at hours.
    """

    name: str
    real: tuple[tuple[str, int | None], ...]
    stand_in: tuple[tuple[str, int], ...]
    records: int | None
    few: int | None
    repeats: int
    shown: int
    """Which variant the last three panels show."""
    at_hours: tuple[int, ...]
    """Which variants there is time for at scale hours."""

    def variants(self) -> tuple[tuple[str, int | None], ...]:
        """What is trained on."""
        return self.real if not self.stand_in or available(self.real[0][0]) else self.stand_in


def _settings(run: ItemRun, source: Source, real: bool) -> Values:
    tiny = {"central": (16.0,), "local": None, "epochs": 2, "attack": "threshold"}
    small = {"central": (0.5, 16.0), "local": None, "epochs": 30}
    sizes: Values = run.size(
        {"records": 40, "repeats": 1, **tiny},
        {"records": 200, "repeats": 2, **small},
        {"records": source.records if real else source.few, "repeats": 5},
        hours={"records": source.few, "repeats": source.repeats},
    )
    return sizes


def _compare_variant(run: ItemRun, source: Source, data: str, classes: int | None) -> Values:
    """Every level of one variant, as the panels need it."""
    settings = _settings(run, source, (data, classes) in source.real)
    levels = run.size(2, 2, None) if "central" in settings else None

    def work() -> Values:
        from deniable.comparison import ComparisonPlan
        from deniable.comparison import run as compare
        from deniable.engines import Local, resume_store

        given = {name: value for name, value in settings.items() if value is not None}
        if levels is not None:
            given["local"] = _ends(data)
        plan = ComparisonPlan.of(data, classes=classes, **given)
        place = run.trials / f"compare-{data}-{plan.data.classes}-{plan.records}-{plan.repeats}"
        engine = run.engine or Local(_cores(run))
        with resume_store(engine, place) as store:
            return _level_values(compare(plan, store, engine=engine))

    return run.once(f"compared-{data}-{classes}", {**settings, "data": data, "classes": classes}, work, divided=True)


def _ends(data: str) -> tuple[float, float]:
    """The two ends of the local levels, for a small run."""
    return (10_000.0, 1.0) if data.startswith("lfw") else (3.0, 0.1)


def _cores(run: ItemRun) -> int:
    return run.size(1, os.cpu_count() or 1, os.cpu_count() or 1)


def _level_values(result: CompareResult) -> Values:
    levels = [_level(row) for row in result.levels]
    given = result.input
    return {
        "data": given.data,
        "classes": given.classes,
        "records": given.records,
        "repeats": given.repeats,
        "blind": result.levels[0].blind_average_precision,
        "chance": result.chance.stays_below,
        "original": levels[0],
        **{kind: [level for level in levels if level["kind"] == kind] for kind in KINDS},
    }


def _level(row: LevelResult) -> Values:
    promised, curve = row.epsilon, row.precision_recall
    thin = max(1, len(curve.recall) // CURVE_POINTS)
    lines = {"precision": curve.precision, "recall": curve.recall}
    return {
        "kind": row.kind,
        "value": row.value,
        "epsilon": promised and promised.value,
        "record_epsilon": promised and (promised.value if promised.record is None else promised.record),
        "phi": row.phi,
        "accuracy": _figures(row.test_accuracy),
        "train_accuracy": row.train_accuracy.mean,
        "precision": _figures(row.average_precision),
        "curve": {name: [round(value, 4) for value in values[::thin]] for name, values in lines.items()},
    }


def _figures(spread: Spread) -> Values:
    return {"mean": spread.mean, "deviation": spread.deviation}


def _compute(source: Source) -> Callable[[ItemRun], Values]:
    def compute(run: ItemRun) -> Values:
        variants = source.variants()
        one: tuple[int, ...] = (source.shown,)
        chosen = run.size(one, one, tuple(range(len(variants))), hours=source.at_hours)
        found = []
        for done, place in enumerate(chosen, start=1):
            found.append(_compare_variant(run, source, *variants[place]))
            run.tell(done / len(chosen))
        return {"variants": found, "shown": chosen.index(source.shown)}

    return compute


def _draw(found: Values) -> Figure:
    letters = "abcdefghi"
    names = [f"{what} ({kind})" for kind in ("CDP", "LDP") for what in ("Accuracy", "MI AP", "Rel. trade-off φ")]
    shown = found["variants"][found["shown"]]
    last = [
        f"PR curve, {shown['classes']} classes (CDP)",
        f"PR curve, {shown['classes']} classes (LDP)",
        f"Abs. trade-off, {shown['classes']} classes",
    ]
    titles = [f"({letter}) {name}" for letter, name in zip(letters, [*names, *last], strict=True)]
    figure, axes = panels(titles, 3, x="", y="", size=2.7)
    for place, kind in enumerate(KINDS):
        for variant, colour in zip(found["variants"], COLOURS, strict=False):
            _lines(axes[3 * place : 3 * place + 3], variant, kind, colour)
        _levels_named(axes[3 * place : 3 * place + 3], shown, kind)
        _curves(axes[6 + place], shown, kind)
    legend(axes[0], fontsize="x-small")
    _scatter(axes[8], shown)
    return figure


def _lines(axes: Sequence[Axes], variant: Values, kind: str, colour: str) -> None:
    """Accuracy, average precision and phi over the levels, the original first."""
    levels = variant[kind]
    for part, key, low in ((axes[0], "accuracy", 0.0), (axes[1], "precision", 0.4)):
        rows = [level[key] for level in (variant["original"], *levels)]
        part.errorbar(
            range(len(rows)),
            [row["mean"] for row in rows],
            [row["deviation"] or 0.0 for row in rows],
            color=colour,
            marker="o",
            markersize=3,
            capsize=2,
            label=f"{variant['classes']} classes",
        )
        part.set(ylim=(low, 1.05))
    traded = [(place, level["phi"]) for place, level in enumerate(levels, start=1) if level["phi"] is not None]
    axes[2].plot([place for place, _ in traded], [phi for _, phi in traded], color=colour, marker="o", markersize=3)


def _levels_named(axes: Sequence[Axes], shown: Values, kind: str) -> None:
    """Ticks by local epsilon, or by noise with the central epsilon of the variant that is shown in the last panels."""
    local = kind == "local"
    names = [
        f"{_short(level['epsilon'])}" if local else f"{level['value']:g}\n{_short(level['epsilon'])}"
        for level in shown[kind]
    ]
    for part in axes:
        part.set_xticks(range(len(names) + 1), ["orig.", *names], fontsize="x-small")
        text = "ε of one value" if local else f"noise z, and ε for {shown['classes']} classes"
        part.set_xlabel(text, fontsize="small")
    axes[2].axhline(1, color="grey", linewidth=0.5)
    axes[2].set(ylim=(-0.05, 2.1))


def _short(epsilon: float) -> str:
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"


def _curves(axes: Axes, shown: Values, kind: str) -> None:
    for level, colour in zip((shown["original"], *shown[kind]), SHADES, strict=False):
        name = "orig." if level["epsilon"] is None else f"ε = {_short(level['epsilon'])}"
        axes.plot(
            level["curve"]["recall"],
            level["curve"]["precision"],
            color=colour,
            linewidth=1,
            label=f"{name} (AP = {level['precision']['mean']:.2f})",
        )
    axes.set(ylim=(0, 1.05), xlim=(0, 1))
    axes.set_xlabel("MI recall", fontsize="small")
    axes.set_ylabel("MI precision", fontsize="small")
    legend(axes, fontsize="xx-small", loc="lower left")


def _scatter(axes: Axes, shown: Values) -> None:
    for kind, marker in zip(KINDS, ("o", "^"), strict=True):
        for level, colour in zip(shown[kind], SHADES[1:], strict=False):
            name = f"{'CDP' if kind == 'central' else 'LDP'} ε = {_short(level['epsilon'])}"
            axes.scatter(level["precision"]["mean"], level["accuracy"]["mean"], color=colour, marker=marker, label=name)
    axes.scatter(
        shown["original"]["precision"]["mean"],
        shown["original"]["accuracy"]["mean"],
        color=BLACK,
        marker="*",
        label="orig.",
    )
    axes.set(xlim=(0.4, 1.05), ylim=(0, 1.05))
    axes.set_xlabel("MI average precision", fontsize="small")
    axes.set_ylabel("test accuracy", fontsize="small")
    legend(axes, fontsize="xx-small", ncols=2)


def figure(
    number: int,
    source: Source,
    *,
    caption: str,
    seconds: Mapping[Scale, float],
    claims: tuple[Comparison, ...],
    notes: tuple[str, ...],
) -> Item:
    """One of the four figures."""
    return Item(
        name=f"figure-{number}",
        title=f"local against central privacy: {source.name}",
        caption=(
            f"Figure {number}: test accuracy, average precision of the white-box attack and relative trade-off"
            " phi over central noise (a-c) and local epsilon (d-f), precision-recall curves (g, h) and absolute "
            f"trade-off (i). {caption}"
        ),
        compute=_compute(source),
        draw=_draw,
        comparisons=(_LARGER, *claims),
        seconds=seconds,
        printed={},
        needs=tuple({data for data, _ in source.stand_in or source.real} & {"location30", "lfw"}),
        notes=notes,
    )


def _epsilons_apart(values: Values) -> bool:
    """At the strongest levels, whose attacks are alike, a record's local epsilon is far above the central one."""
    ends = ((one["central"][-1], one["local"][-1]) for one in values["variants"])
    return all(local["record_epsilon"] >= 10 * central["epsilon"] for central, local in ends)


_LARGER = Claim(
    "at the strongest levels a record's local epsilon is at least ten times the central one",
    _epsilons_apart,
    hindsight=True,
)
