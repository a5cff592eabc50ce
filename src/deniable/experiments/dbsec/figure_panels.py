"""Bernau 2021b, Figures 2 to 5: nine panels a data set, local against central privacy under white-box membership
inference."""

# ruff: noqa: PLC0415 (torch is imported when there is something to train)

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.experiments.drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, add_letters, legend, panels
from deniable.experiments.games import available
from deniable.experiments.item import Item, ItemRun, Scale, Values, present
from deniable.experiments.statements import Claim, Comparison
from deniable.results.base import Part
from deniable.results.compare_result import CompareResult, LevelResult

COLOURS = (BLUE, ORANGE, GREEN, RED)
SHADES = (BLACK, BLUE, GREEN, ORANGE, RED, PURPLE)
CURVE_POINTS = 40


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


class MeanDeviation(Part, frozen=True, kw_only=True):
    """Over the repeats; a single repeat has no deviation."""

    mean: float
    deviation: float | None


class CurvePoints(Part, frozen=True, kw_only=True):
    """Some points of the curve."""

    precision: list[float]
    recall: list[float]


class LevelFigures(Part, frozen=True, kw_only=True):
    """One level of noise (or none), as the panels need it."""

    kind: str
    value: float | None
    epsilon: float | None
    record_epsilon: float | None
    phi: float | None
    accuracy: MeanDeviation
    train_accuracy: float
    precision: MeanDeviation
    curve: CurvePoints


class VariantFigures(Part, frozen=True, kw_only=True):
    """All levels of one variant of the data."""

    data: str
    classes: int
    records: int
    repeats: int
    blind: float
    chance: float
    majority_accuracy: float | None = None
    """Of always answering the most common class."""
    original: LevelFigures
    central: list[LevelFigures]
    local: list[LevelFigures]


class NinePanels(Part, frozen=True, kw_only=True):
    """One of Figures 2 to 5."""

    variants: list[VariantFigures]
    shown: int

    @property
    def shown_variant(self) -> VariantFigures:
        """The one that the last three panels show."""
        return self.variants[self.shown]


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


def _compare_variant(run: ItemRun, source: Source, data: str, classes: int | None) -> VariantFigures:
    settings = _settings(run, source, (data, classes) in source.real)

    def work() -> VariantFigures:
        from deniable.comparison import ComparisonPlan
        from deniable.comparison import run as compare
        from deniable.engines import Local, resume_store

        given = {"attack": "whitebox"} | {name: value for name, value in settings.items() if value is not None}
        if "central" in settings:  # a small run
            given["local"] = _ends(data)
        plan = ComparisonPlan.of(data, classes=classes, **given)
        place = run.trials / f"compare-{data}-{plan.data.classes}-{plan.records}-{plan.repeats}"
        engine = run.engine or Local(_cores(run))
        with resume_store(engine, place) as store:
            return _variant_figures(compare(plan, store, engine=engine))

    kept = {**settings, "data": data, "classes": classes}
    return run.once(f"compared-{data}-{classes}", kept, work, VariantFigures, divided=True)


def _ends(data: str) -> tuple[float, float]:
    """The two ends of the local levels, for a small run."""
    return (10_000.0, 1.0) if data.startswith("lfw") else (3.0, 0.1)


def _cores(run: ItemRun) -> int:
    return run.size(1, os.cpu_count() or 1, os.cpu_count() or 1)


def _variant_figures(result: CompareResult) -> VariantFigures:
    levels = [_level_figures(row) for row in result.levels]
    given = result.input
    return VariantFigures(
        data=given.data,
        classes=given.classes,
        records=given.records,
        repeats=given.repeats,
        blind=result.levels[0].blind_average_precision,
        chance=result.chance.stays_below,
        majority_accuracy=result.chance.majority_accuracy,
        original=levels[0],
        central=[level for level in levels if level.kind == "central"],
        local=[level for level in levels if level.kind == "local"],
    )


def _level_figures(row: LevelResult) -> LevelFigures:
    promised, curve = row.epsilon, row.precision_recall
    thin = slice(None, None, max(1, len(curve.recall) // CURVE_POINTS))
    accuracy, precision = (
        MeanDeviation(mean=one.mean, deviation=one.deviation) for one in (row.test_accuracy, row.average_precision)
    )
    return LevelFigures(
        kind=row.kind,
        value=row.value,
        epsilon=promised.value if promised else None,
        record_epsilon=(promised.value if promised.record is None else promised.record) if promised else None,
        phi=row.phi,
        accuracy=accuracy,
        train_accuracy=row.train_accuracy.mean,
        precision=precision,
        curve=CurvePoints(
            precision=[round(value, 4) for value in curve.precision[thin]],
            recall=[round(value, 4) for value in curve.recall[thin]],
        ),
    )


def _compute(source: Source, run: ItemRun) -> NinePanels:
    variants = source.variants()
    one: tuple[int, ...] = (source.shown,)
    chosen = run.size(one, one, tuple(range(len(variants))), hours=source.at_hours)
    found = []
    for done, place in enumerate(chosen, start=1):
        found.append(_compare_variant(run, source, *variants[place]))
        run.tell(done / len(chosen))
    return NinePanels(variants=found, shown=chosen.index(source.shown))


def _draw(found: NinePanels) -> Figure:
    shown, kinds = found.shown_variant, ("CDP", "LDP")
    titles = [f"{what} ({kind})" for kind in kinds for what in ("Accuracy", "MI AP", "Rel. trade-off φ")]
    titles += [f"PR curve, {shown.classes} classes ({kind})" for kind in kinds]
    figure, axes = panels(add_letters([*titles, f"Abs. trade-off, {shown.classes} classes"]), 3, x="", y="", size=2.7)
    for variant, colour in zip(found.variants, COLOURS, strict=False):
        _draw_lines(axes[:3], variant, variant.central, colour)
        _draw_lines(axes[3:6], variant, variant.local, colour)
    noises = [f"{level.value:g}\n{_short_epsilon(level)}" for level in shown.central]
    _name_levels(axes[:3], noises, f"noise z, and ε for {shown.classes} classes")
    _name_levels(axes[3:6], map(_short_epsilon, shown.local), "ε of one value")
    _draw_curves(axes[6], [shown.original, *shown.central])
    _draw_curves(axes[7], [shown.original, *shown.local])
    legend(axes[0], fontsize="x-small")
    _scatter(axes[8], shown)
    return figure


def _draw_lines(axes: Sequence[Axes], variant: VariantFigures, levels: list[LevelFigures], colour: str) -> None:
    """Accuracy, average precision and phi over the levels, the original first."""
    every, name = [variant.original, *levels], f"{variant.classes} classes"
    accuracies, precisions = [one.accuracy for one in every], [one.precision for one in every]
    for part, rows, low in ((axes[0], accuracies, 0.0), (axes[1], precisions, 0.4)):
        means, bars = [row.mean for row in rows], [row.deviation or 0.0 for row in rows]
        part.errorbar(range(len(rows)), means, bars, color=colour, marker="o", markersize=3, capsize=2, label=name)
        part.set(ylim=(low, 1.05))
    if variant.majority_accuracy is not None:
        axes[0].axhline(variant.majority_accuracy, color=colour, linestyle=":", linewidth=1)
    traded = [(place, level.phi) for place, level in enumerate(levels, start=1) if level.phi is not None]
    axes[2].plot([place for place, _ in traded], [phi for _, phi in traded], color=colour, marker="o", markersize=3)


def _name_levels(axes: Sequence[Axes], names: Iterable[str], what: str) -> None:
    labels = ["orig.", *names]
    for part in axes:
        part.set_xticks(range(len(labels)), labels, fontsize="x-small")
        part.set_xlabel(what, fontsize="small")
    axes[2].axhline(1, color="grey", linewidth=0.5)
    axes[2].set(ylim=(-0.05, 2.1))


def _short_epsilon(level: LevelFigures) -> str:
    epsilon = present(level.epsilon)
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"


def _draw_curves(axes: Axes, levels: Iterable[LevelFigures]) -> None:
    for level, colour in zip(levels, SHADES, strict=False):
        name = "orig." if level.epsilon is None else f"ε = {_short_epsilon(level)}"
        label = f"{name} (AP = {level.precision.mean:.2f})"
        axes.plot(level.curve.recall, level.curve.precision, color=colour, linewidth=1, label=label)
    axes.set(ylim=(0, 1.05), xlim=(0, 1))
    axes.set_xlabel("MI recall", fontsize="small")
    axes.set_ylabel("MI precision", fontsize="small")
    legend(axes, fontsize="xx-small", loc="lower left")


def _scatter(axes: Axes, shown: VariantFigures) -> None:
    for kind, levels, marker in (("CDP", shown.central, "o"), ("LDP", shown.local, "^")):
        for level, colour in zip(levels, SHADES[1:], strict=False):
            name = f"{kind} ε = {_short_epsilon(level)}"
            axes.scatter(level.precision.mean, level.accuracy.mean, color=colour, marker=marker, label=name)
    original = shown.original
    axes.scatter(original.precision.mean, original.accuracy.mean, color=BLACK, marker="*", label="orig.")
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
) -> Item[NinePanels]:
    """One of the four figures."""
    return Item(
        name=f"figure-{number}",
        title=f"local against central privacy: {source.name}",
        caption=(
            f"Figure {number}: test accuracy, average precision of the white-box attack and relative trade-off"
            " phi over central noise (a-c) and local epsilon (d-f), precision-recall curves (g, h) and absolute "
            f"trade-off (i). Dotted in (a, d): the accuracy of always answering the most common class. {caption}"
        ),
        compute=partial(_compute, source),
        read_as=NinePanels,
        draw=_draw,
        comparisons=(_LARGER, *claims),
        seconds=seconds,
        needs=tuple({data for data, _ in source.stand_in or source.real} & {"location30", "lfw"}),
        notes=notes,
    )


def _epsilons_apart(found: NinePanels) -> bool:
    """At the strongest levels, whose attacks are alike, a record's local epsilon is far above the central one."""
    ends = ((one.central[-1], one.local[-1]) for one in found.variants)
    return all(present(local.record_epsilon) >= 10 * present(central.epsilon) for central, local in ends)


_LARGER = Claim(
    "at the strongest levels a record's local epsilon is at least ten times the central one",
    _epsilons_apart,
    NinePanels,
    hindsight=True,
)
