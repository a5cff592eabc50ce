"""The comparison's pictures, and those of an attack on one model.

After Bernau et al. 2021 (DBSec), Figures 2 to 5, and Erlingsson et al. 2019, Figures 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import structs

from deniable.formatting import at_most
from deniable.report.pictures.epsilon_pictures import region_picture
from deniable.report.pictures.picture import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    RED,
    WIDTH_INCHES,
    YELLOW,
    Data,
    Picture,
    axes,
    legend_above,
    percent_axes,
)
from deniable.report.words.verdict_words import ATTACKS
from deniable.results.attack_result import AttackResult
from deniable.results.compare_result import CompareResult, LevelResult
from deniable.results.shared import Curve, Spread

COLOURS = {"original": INK, "central": BLUE, "local": ORANGE}
ROC_COLOURS = (ORANGE, BLUE, GREEN, RED, PURPLE, YELLOW, GREY)
AXIS = {"central": "epsilon of the training", "local": "epsilon for each value"}
_NO_CURVE = Curve(precision=(), recall=())


def comparison_pictures(document: CompareResult) -> Iterator[Picture]:
    """Every picture of a comparison, by the name of its file."""
    levels = [structs.replace(row, precision_recall=_NO_CURVE) for row in document.levels]
    majority = document.chance.majority_accuracy
    usual = (majority, "always the most common class") if majority else (document.chance.accuracy, "guessing")
    data = {"levels": levels, "without_model": usual}
    accuracy, precision = (_describe_levels(data, score) for score in ("test_accuracy", "average_precision"))
    told = "How often the trained model is right on new records, with the spread over repeats."
    title = "What accuracy is left"
    yield Picture("accuracy-over-epsilon", title, told, f"{told} {accuracy}.", data, _draw_accuracy)
    told = "How well the attack finds members, with the spread over repeats; 0.5 is guessing."
    title = "What the attack achieves"
    yield Picture("precision-over-epsilon", title, told, f"{told} {precision}.", data, _draw_precision)
    yield _phi(data)
    yield _curves(document)
    told = (
        "Up is useful, left is private: what a level costs, and what it gives. Numbers: the level's noise or epsilon."
    )
    title = "Accuracy against attack"
    yield Picture("accuracy-against-precision", title, told, f"{told} Accuracy {accuracy}.", data, _draw_absolute)
    if document.region:
        yield region_picture(document.region, document.delta, _attacker(document))


def _attacker(document: CompareResult) -> str:
    return f"{ATTACKS.get(document.input.attack, '')} attack".strip()


def _describe_levels(data: Data, score: str) -> str:
    return "; ".join(f"{row.name}: {_spread(row, score).mean:.2f}" for row in data["levels"])


def _phi(data: Data) -> Picture:
    known = [f"{row.name}: {row.phi:.2f}" for row in data["levels"] if row.phi is not None and row.value]
    told = "Relative gain in privacy over relative loss in accuracy: above 1 more is gained than lost, 2 is the most."
    note = data["levels"][0].phi_note
    description = f"{told} {'; '.join(known) or note or 'undefined'}."
    return Picture("phi-over-epsilon", "Is the trade favourable? (phi)", told, description, data, _draw_phi)


def _curves(document: CompareResult) -> Picture:
    data = {"levels": document.levels}
    told = "Precision of the attack's accusations over the share of members that is accused; darker is less protection."
    found = "; ".join(f"{row.name}: average {row.average_precision.mean:.2f}" for row in data["levels"])
    title = "The curves behind the averages"
    return Picture("precision-recall", title, told, f"{told} {found}.", data, _draw_curves)


def attack_pictures(document: AttackResult) -> list[Picture]:
    """The ROC and precision-recall curves of one attacked model."""
    mean = document.average_precision.mean
    told = f"Precision of the attack's accusations over the share of members that is accused; average {mean:.3f}."
    data = {"precision": document.precision_recall.precision, "recall": document.precision_recall.recall, "mean": mean}
    return [*_roc(document), Picture("precision-recall", "Precision and recall", told, told, data, _draw_curve)]


def _roc(document: AttackResult) -> Iterator[Picture]:
    """Both axes logarithmic: the few records that are found with hardly a false alarm show there."""
    if not document.attacks:
        return
    told = "Share of the members that is found over the share of others that is accused; both axes are logarithmic."
    found = "; ".join(f"{ATTACKS.get(row.name, row.name)}: AUC {row.auc.value:.3f}" for row in document.attacks)
    proven = [] if document.proven is None else [(each.fpr, each.tpr) for each in document.proven.tpr]
    data = {"attacks": document.attacks, "proven": proven, "tested": document.input.tested}
    yield Picture("roc", "Members found at few false alarms", told, f"{told} {found}.", data, _draw_roc)


def _draw_roc(data: Data) -> Figure:
    drawing, found = axes("false positive rate", "true positive rate", height=4.0)
    least = 1 / max(2, data["tested"])
    looks = [(style, colour) for style in ("-", "--", "-.") for colour in ROC_COLOURS]  # each attack has its own
    for row, (style, colour) in zip(data["attacks"], looks, strict=False):
        points = [(max(x, least), max(y, least)) for x, y in zip(row.roc.fpr, row.roc.tpr, strict=True)]
        label = f"{ATTACKS.get(row.name, row.name)}: AUC {row.auc.value:.3f}"
        found.step(*zip(*points, strict=True), where="post", color=colour, linestyle=style, label=label, linewidth=1.3)
    found.plot([least, 1], [least, 1], color=INK, linestyle=":", linewidth=1)
    if data["proven"]:
        found.plot(*zip(*data["proven"], strict=True), "v", color=INK, label="proven: at most")
    found.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.05))
    percent_axes(found)
    legend_above(found, columns=2)
    return drawing


def _draw_curve(data: Data) -> Figure:
    drawing, found = axes("recall: share of the members that is accused", "precision")
    found.plot(data["recall"], data["precision"], color=ORANGE)
    found.axhline(0.5, color=INK, linestyle=":", linewidth=1)
    found.set(xlim=(0, 1), ylim=(min(0.4, *data["precision"]), 1.02))
    found.set_title(f"average precision {data['mean']:.3f}", fontsize="medium")
    return drawing


def _draw_accuracy(data: Data) -> Figure:
    return _over_epsilon(data, "test_accuracy", "test accuracy", data["without_model"], 0.0)


def _draw_precision(data: Data) -> Figure:
    return _over_epsilon(data, "average_precision", "average precision", (0.5, "guessing"), 0.4)


def _over_epsilon(data: Data, name: str, title: str, line: tuple[float, str], bottom: float) -> Figure:
    drawing, (height, label) = _figure(), line
    for found, kind, rows in _panels(drawing, data, title):
        means, spread = (_column(rows, name, key) for key in ("mean", "deviation"))
        found.errorbar(range(len(rows)), means, yerr=spread, fmt="o-", color=COLOURS[kind], capsize=3)
        found.axhline(height, color=INK, linestyle=":", linewidth=1)
        found.annotate(label, (0, height), (-8, -9), textcoords="offset points", fontsize=7.5, color=MUTED)
        found.set_ylim(bottom, 1.05)
    return drawing


def _draw_phi(data: Data) -> Figure:
    drawing = _figure()
    for found, kind, rows in _panels(drawing, data, "relative trade-off phi"):
        given = [
            (place, row.phi, row.phi_error or 0) for place, row in enumerate(rows) if row.phi is not None and row.value
        ]
        found.axhline(1, color=INK, linestyle="--", linewidth=1)
        if given:
            places, values, errors = zip(*given, strict=True)
            found.errorbar(places, values, yerr=errors, fmt="o-", color=COLOURS[kind], capsize=3)
        else:
            found.text(
                0.5, 0.6, "undefined: the attack\nguesses anyway", transform=found.transAxes, ha="center", fontsize=8
            )
        found.set_ylim(-0.05, 2.1)
    return drawing


def _draw_curves(data: Data) -> Figure:
    drawing = Figure(figsize=(WIDTH_INCHES, 4.3), layout="constrained")
    for found, _, rows in _panels(drawing, data, "precision of the attack"):
        for place, row in enumerate(rows):
            curve, shade = row.precision_recall, 1 - 0.75 * place / max(1, len(rows) - 1)
            label = f"{_tick(row)}: {row.average_precision.mean:.2f}"
            colour = COLOURS["original"] if row.value is None else COLOURS[row.kind]
            found.plot(curve.recall, curve.precision, color=colour, alpha=shade, label=label, linewidth=1.3)
        found.set(xlim=(0, 1), ylim=(0.4, 1.02), xlabel="recall")
        found.set_xticks([0, 0.5, 1], labels=["0", "0.5", "1"])
        found.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=7.5, columnspacing=1)
    return drawing


def _draw_absolute(data: Data) -> Figure:
    drawing, found = axes("average precision of the attack (0.5: guessing)", "test accuracy", height=3.6)
    for kind in ("original", "central", "local"):
        rows = [row for row in data["levels"] if row.kind == kind]
        if rows:
            _points(found, kind, rows)
    found.axvline(0.5, color=INK, linestyle=":", linewidth=1)
    found.set_ylim(0, 1.05)
    legend_above(found)
    return drawing


def _points(found: Axes, kind: str, rows: list[LevelResult]) -> None:
    read = partial(_column, rows)
    x, y = read("average_precision", "mean"), read("test_accuracy", "mean")
    across, up = read("average_precision", "deviation"), read("test_accuracy", "deviation")
    found.errorbar(x, y, xerr=across, yerr=up, fmt="o", color=COLOURS[kind], label=kind, capsize=2, markersize=5)
    for row, right, height in zip(rows, x, y, strict=True):
        if row.value is not None:
            found.annotate(f"{row.value:g}", (right, height), (5, 4), textcoords="offset points", fontsize=7.5)


def _column(rows: list[LevelResult], score: str, key: str) -> list[float]:
    return [getattr(_spread(row, score), key) or 0 for row in rows]


def _spread(row: LevelResult, score: str) -> Spread:
    return row.test_accuracy if score == "test_accuracy" else row.average_precision


def _figure() -> Figure:
    return Figure(figsize=(WIDTH_INCHES, 3.0), layout="constrained")


def _panels(drawing: Figure, data: Data, title: str) -> Iterator[tuple[Axes, str, list[LevelResult]]]:
    """One panel for each kind of protection, both on the same scale: the original first, then ever more protection."""
    kinds = [kind for kind in ("central", "local") if any(row.kind == kind for row in data["levels"])]
    for place, kind in enumerate(kinds):
        found = drawing.add_subplot(1, len(kinds), place + 1)
        rows = [row for row in data["levels"] if row.kind in ("original", kind)]
        found.set_title(f"{kind} privacy", fontsize=9.5)
        found.set(xlabel=AXIS[kind], ylabel=title if place == 0 else "")
        found.set_xticks(range(len(rows)), labels=[_tick(row) for row in rows], fontsize=8)
        yield found, kind, rows


def _tick(row: LevelResult) -> str:
    return "none" if row.epsilon is None else at_most(row.epsilon.value, 2)
