"""How the evidence against a claim went up and down while it was watched."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from deniable.report.pictures.picture import BLUE, INK, Data, Picture, axes, legend_above
from deniable.report.words.amount_text import figure
from deniable.results.shared import Watched

_LEAST, _MOST = 1e-3, 1e12
"""Evidence below and above is drawn here: it says no more."""


def watch_picture(watched: Watched | None) -> tuple[Picture, ...]:
    """The picture, where there were looks enough for one."""
    if watched is None or len(watched.looks) < 2:
        return ()
    needed = 1 / watched.risk
    told = f"{watched.text} At {figure(needed)} (dashed) the claim is refuted; 1 says nothing for or against it."
    data = {"trials": watched.looks, "evidence": watched.evidence, "needed": needed}
    return (Picture("evidence-over-trials", "The evidence, trial by trial", told, told, data, _draw),)


def _draw(data: Data) -> Figure:
    drawing, found = axes("trials", "evidence against the claim")
    evidence = [min(max(value, _LEAST), _MOST) for value in data["evidence"]]
    found.plot(data["trials"], evidence, color=BLUE, label="evidence at every look")
    label = f"refuted at {figure(data['needed'])}"
    found.axhline(data["needed"], color=INK, linestyle="--", linewidth=1.2, label=label)
    found.set_yscale("log")
    found.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    found.set_ylim(min(0.1, *evidence) / 1.5, 3 * max(data["needed"], *evidence))
    found.set_xlim(left=0)
    found.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    legend_above(found)
    return drawing
