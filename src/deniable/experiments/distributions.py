"""Pictures of distributions: violins from counts, boxes from quantiles, bands over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes


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
