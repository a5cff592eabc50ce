"""What the items' pictures share: panels, colours, legends, tables drawn as pictures, violins, boxes and bands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

BLUE, RED, GREEN, ORANGE, PURPLE, YELLOW = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#b8a800"
BLACK, GREY = "#222222", "#999999"
"""Colours that the colour-blind can tell apart (Okabe and Ito)."""


def add_letters(titles: Iterable[str]) -> list[str]:
    """The panels' titles with (a), (b), ... before them."""
    return [f"({letter}) {title}" for letter, title in zip(ascii_lowercase, titles, strict=False)]


def panels(titles: Sequence[str], columns: int = 2, *, x: str, y: str, size: float = 3.1) -> tuple[Figure, list[Axes]]:
    """A grid of panels with the same axes' names, each with its title."""
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(1.25 * size * columns, size * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    axes: list[Axes] = np.asarray(grid).ravel().tolist()
    for part, title in zip(axes, titles, strict=False):
        part.set(title=title, xlabel=x, ylabel=y)
        part.title.set_fontsize("medium")
        part.spines[["top", "right"]].set_visible(False)
    for part in axes[len(titles) :]:
        part.set_visible(False)
    return figure, axes[: len(titles)]


Place = Literal["best", "upper left", "upper right", "upper center", "lower left", "lower right"]


def legend(
    axes: Axes,
    *,
    loc: Place = "best",
    fontsize: str = "small",
    ncols: int = 1,
    anchor: tuple[float, float] | None = None,
    first: int | None = None,
) -> None:
    """A small legend without a frame; of the `first` lines alone, if so many are named."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[:first], labels[:first], frameon=False, fontsize=fontsize, loc=loc, ncols=ncols, bbox_to_anchor=anchor
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str, note: str = "") -> Figure:
    """A table as a picture, columns as wide as their longest text."""
    lines = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(cell) for cell in column) + 3 for column in zip(*lines, strict=True)]
    height = 0.26 * (len(lines) + (2 if note else 1))
    figure = Figure(figsize=(0.083 * sum(widths), height))
    figure.text(0.01, 1 - 0.13 / height, title, fontsize=10, va="center")
    figure.text(0.01, 0.13 / height, note, fontsize=8, va="center", color=BLACK)
    axes = figure.add_axes((0, 0.26 / height if note else 0, 1, 0.26 * len(lines) / height))
    axes.set_axis_off()
    shares = [width / sum(widths) for width in widths]
    drawn = axes.table(lines, colWidths=shares, cellLoc="center", bbox=Bbox.unit())
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_linewidth(0)
        if row == 0:
            cell.set_text_props(weight="bold")
            cell.set_facecolor("#eeeeee")
    return figure


def beside(ours: Any, printed: str | None, digits: str = ".4g") -> str:
    """Our value with the paper's in brackets; an interval by its two ends."""
    shown = _plain(ours, digits) if not isinstance(ours, Sequence) else "–".join(_plain(end, digits) for end in ours)
    return shown if printed is None else f"{shown}  [{printed}]"


def _plain(value: float, digits: str) -> str:
    """Thousands in full, since a reader compares them with the paper's digit by digit."""
    return f"{value:,.0f}" if 1e3 <= value < 1e6 else f"{value:{digits}}"


def violins(axes: Axes, counts: Sequence[Sequence[int]], medians: Sequence[float], colours: Sequence[str]) -> None:
    """Each distribution's histogram over [0, 1] as a violin, with its median."""
    for place, (row, median, colour) in enumerate(zip(counts, medians, colours, strict=True), start=1):
        width = 0.42 * np.asarray(row) / max(row)
        centres = (np.arange(len(row)) + 0.5) / len(row)
        seen = np.asarray(row) > 0
        axes.fill_betweenx(
            centres[seen], place - width[seen], place + width[seen], color=colour, alpha=0.55, linewidth=0
        )
        axes.plot([place - 0.2, place + 0.2], [median, median], color=colour, linewidth=2)


def boxes(axes: Axes, quantiles: Sequence[Sequence[float]], colours: Sequence[str], labels: Sequence[str]) -> None:
    """Boxes of quartiles with whiskers from the 5 % to the 95 % quantile."""
    keys = ("whislo", "q1", "med", "q3", "whishi")
    stats = [{**dict(zip(keys, row, strict=True)), "label": name} for row, name in zip(quantiles, labels, strict=True)]
    drawn = axes.bxp(stats, showfliers=False, patch_artist=True, widths=0.6)
    for patch, middle, colour in zip(drawn["boxes"], drawn["medians"], colours, strict=True):
        patch.set(facecolor=colour, alpha=0.55)
        middle.set(color="black")


def bands(axes: Axes, quantiles: Sequence[Sequence[float]], colour: str, label: str) -> None:
    """The median over the steps, and the band of the middle 90 %; a row for each of the five quantiles."""
    low, _, middle, _, high = quantiles
    numbers = np.arange(1, len(middle) + 1)
    axes.plot(numbers, middle, color=colour, label=label)
    axes.fill_between(numbers, low, high, color=colour, alpha=0.2, linewidth=0)
