"""The comparison's pictures (003 Figures 2-5, 004 Figures 1 and 2) and its record, written into a directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.document import Document
from deniable.report.page import drawn, replace_file

__all__ = ["FIGURES", "write", "write_attack"]

COLOURS = {"original": "#333333", "central": "#0072b2", "local": "#d55e00"}
"""Colours that the colour-blind can tell apart (Okabe and Ito)."""
NAMED = {"naive": ("#999999", ":"), "advanced": ("#cc79a7", "-."), "rdp": ("#e69f00", "--")}
AXIS = {"central": "epsilon of the training", "local": "epsilon for each value"}


def accuracy_over_epsilon(document: Document) -> Figure:
    """Test accuracy of each level, with its spread over repeats."""
    return _over_epsilon(document, "test_accuracy", "test accuracy", document["chance"]["accuracy"], 0.0)


def precision_over_epsilon(document: Document) -> Figure:
    """The attack's average precision at each level, with its spread over repeats."""
    return _over_epsilon(document, "average_precision", "average precision of the attack", 0.5, 0.4)


def phi_over_epsilon(document: Document) -> Figure:
    """The relative trade-off; above 1 more privacy is gained than accuracy lost."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, kind, rows in _panels(figure, document, "relative trade-off phi"):
        levels = [(place, row) for place, row in enumerate(rows) if row["phi"] is not None and row["value"]]
        given = [(place, row["phi"], row["phi_error"] or 0) for place, row in levels]
        axes.axhline(1, color=COLOURS["original"], linestyle="--", linewidth=1)
        if given:
            places, values, errors = zip(*given, strict=True)
            axes.errorbar(places, values, yerr=errors, fmt="o-", color=COLOURS[kind], capsize=3)
        else:
            _empty(axes, rows[0]["phi_note"])
        axes.set_ylim(-0.05, 2.1)
    return figure


def precision_recall(document: Document) -> Figure:
    """The curves behind the average precisions, over all repeats' records."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    for axes, _, rows in _panels(figure, document, "precision of the attack"):
        for place, row in enumerate(rows):
            curve, shade = row["precision_recall"], 1 - 0.75 * place / max(1, len(rows) - 1)
            label = f"{_tick(row)} (AP {row['average_precision']['mean']:.2f})"
            colour = COLOURS["original"] if row["value"] is None else COLOURS[row["kind"]]
            axes.plot(curve["recall"], curve["precision"], color=colour, alpha=shade, label=label, linewidth=1.3)
        axes.set(xlim=(0, 1), ylim=(0.4, 1.02), xlabel="recall: share of the members that is accused")
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "0.25", "0.5", "0.75", "1"])
        axes.legend(frameon=False, fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    return figure


def accuracy_against_precision(document: Document) -> Figure:
    """The absolute trade-off: up is useful, left is private."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for kind in ("original", "central", "local"):
        rows = [row for row in document["levels"] if row["kind"] == kind]
        if not rows:
            continue
        x, y = ([row[name]["mean"] for row in rows] for name in ("average_precision", "test_accuracy"))
        across, up = ([row[name]["deviation"] or 0 for row in rows] for name in ("average_precision", "test_accuracy"))
        axes.errorbar(x, y, xerr=across, yerr=up, fmt="o", color=COLOURS[kind], label=kind, capsize=2, markersize=5)
        for row, *place in zip(rows, x, y, strict=True):
            if row["value"] is not None:
                axes.annotate(f"{row['value']:g}", tuple(place), (5, 4), textcoords="offset points", fontsize=7)
    axes.axvline(0.5, color=COLOURS["original"], linestyle=":", linewidth=1)
    axes.set(xlabel="average precision of the attack (0.5: guessing)", ylabel="test accuracy", ylim=(0, 1.05))
    axes.legend(frameon=False, fontsize="small", title="numbers: noise, or epsilon for each value", title_fontsize=7)
    _plain(axes)
    return figure


def region_of_privacy(document: Document) -> Figure:
    """Upper bounds on epsilon, the attack's lower bound, and the truth between them (004 Figures 1 and 2)."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes, rows = figure.add_subplot(), document["region"]
    noise, exact = [row["noise"] for row in rows], [row["exact"] for row in rows]
    for name, (colour, style) in NAMED.items():
        known = [(row["noise"], row["named"][name]) for row in rows if row["named"][name]]
        if known:
            axes.plot(*zip(*known, strict=True), style, color=colour, marker=".", label=f"{name} (upper)")
    axes.plot(noise, exact, "o-", color=COLOURS["central"], label="exact (upper)")
    if all(row["lower"] is not None for row in rows):
        _from_below(axes, rows, f"{document['input']['attack']} attack (lower)")
    axes.set(xscale="log", yscale="log", xlabel="noise multiplier", ylabel=f"epsilon at delta {document['delta']:.2g}")
    axes.set_xticks(noise, labels=[f"{z:g}" for z in noise])
    axes.set_xticks([], minor=True)
    axes.legend(frameon=False, fontsize="small")
    _plain(axes)
    return figure


def _from_below(axes: Axes, rows: list[Document], name: str) -> None:
    """The attack's lower bound, 0 at the foot of the picture, and the region above it."""
    noise, exact = [row["noise"] for row in rows], [row["exact"] for row in rows]
    floor = min([*exact, *(row["lower"] for row in rows if row["lower"] > 0)]) / 10
    lower = [max(row["lower"], floor) for row in rows]
    axes.plot(noise, lower, "s-", color=COLOURS["local"], label=name)
    for row, height in zip(rows, lower, strict=True):
        if row["lower"] == 0:
            axes.annotate("0", (row["noise"], height), (4, 3), textcoords="offset points", fontsize=8)
    axes.fill_between(noise, lower, exact, color="#009e73", alpha=0.15, label="region of privacy")


FIGURES: dict[str, Callable[[Document], Figure]] = {
    "accuracy-over-epsilon": accuracy_over_epsilon,
    "precision-over-epsilon": precision_over_epsilon,
    "phi-over-epsilon": phi_over_epsilon,
    "precision-recall": precision_recall,
    "accuracy-against-precision": accuracy_against_precision,
    "region-of-privacy": region_of_privacy,
}
"""Every picture by the name of its file."""


def write(document: Document, directory: Path | str) -> list[Path]:
    """Write compare.json and the pictures (.svg and .png) into `directory`; the paths of the .png files."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / "compare.json", (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
    written = []
    for name, draw in FIGURES.items():
        if name == "region-of-privacy" and not document["region"]:
            continue
        figure = draw(document)
        replace_file(place / f"{name}.svg", drawn(figure, "svg"))
        replace_file(place / f"{name}.png", drawn(figure, "png"))
        written.append(place / f"{name}.png")
    return written


def write_attack(document: Document, directory: Path | str) -> Path:
    """Write attack.json and the precision-recall curve of one attacked model; the path of the .png file."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / "attack.json", (json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes, curve = figure.add_subplot(), document["precision_recall"]
    axes.plot(curve["recall"], curve["precision"], color=COLOURS["local"])
    axes.axhline(0.5, color=COLOURS["original"], linestyle=":", linewidth=1)
    axes.set(xlabel="recall: share of the members that is accused", ylabel="precision", xlim=(0, 1), ylim=(0.4, 1.02))
    axes.set_title(f"average precision {document['average_precision']['mean']:.3f}", fontsize="medium")
    _plain(axes)
    for kind in ("svg", "png"):
        replace_file(place / f"precision-recall.{kind}", drawn(figure, kind))
    return place / "precision-recall.png"


def _over_epsilon(document: Document, name: str, title: str, guessing: float, bottom: float) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, kind, rows in _panels(figure, document, title):
        means, spread = ([row[name][key] or 0 for row in rows] for key in ("mean", "deviation"))
        axes.errorbar(range(len(rows)), means, yerr=spread, fmt="o-", color=COLOURS[kind], capsize=3)
        axes.axhline(guessing, color=COLOURS["original"], linestyle=":", linewidth=1)
        axes.annotate("guessing", (0, guessing), (0, -8), textcoords="offset points", fontsize=7, ha="center")
        axes.set_ylim(bottom, 1.05)
    return figure


def _panels(figure: Figure, document: Document, title: str) -> Iterator[tuple[Axes, str, list[Document]]]:
    """One panel for each kind of protection, both on the same scale: the original first, then ever more protection."""
    kinds = [kind for kind in ("central", "local") if any(row["kind"] == kind for row in document["levels"])]
    for place, kind in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds), place + 1)
        rows = [row for row in document["levels"] if row["kind"] in ("original", kind)]
        axes.set(title=f"{kind} privacy", xlabel=AXIS[kind], ylabel=title if place == 0 else "")
        axes.set_xticks(range(len(rows)), labels=[_tick(row) for row in rows])
        _plain(axes)
        yield axes, kind, rows


def _tick(row: Document) -> str:
    return "orig." if row["value"] is None else f"{row['epsilon']['value']:.2g}"


def _empty(axes: Axes, note: str | None) -> None:
    axes.text(0.5, 0.5, (note or "undefined").replace(": ", ":\n"), transform=axes.transAxes, ha="center", fontsize=7)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
