"""The audit's three pictures: final beliefs, belief over the steps, local sensitivity over the steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from deniable.adversaries.identifiability import beliefs
from deniable.audit import Trials
from deniable.document import Document

__all__ = ["FIGURES", "belief_over_steps", "final_beliefs", "sensitivity_over_steps"]

ON_D, ON_OTHER, LIMIT = "#0072b2", "#d55e00", "#333333"
"""Colours that the colour-blind can tell apart (Okabe and Ito)."""


def final_beliefs(document: Document, trials: Trials) -> Figure:
    """How sure the observer ended, by what was really trained on, with the belief that was not to be exceeded."""
    figure, axes = _axes("belief in D after the last step", "trials")
    final, bins = beliefs(trials.log_likelihood_ratio[:, -1]), np.linspace(0, 1, 41).tolist()
    for on_d, name, colour in ((True, "trained on D", ON_D), (False, "trained on D'", ON_OTHER)):
        axes.hist(final[trials.trained_on_d == on_d], bins=bins, alpha=0.6, color=colour, label=name)
    bound = document["measured"]["belief"]["bound"]
    axes.axvline(bound, color=LIMIT, linestyle="--", label=f"bound {bound:.3g}, for D and D'")
    axes.axvline(1 - bound, color=LIMIT, linestyle="--")
    axes.set_xlim(0, 1)
    _legend(axes)
    return figure


def belief_over_steps(document: Document, trials: Trials) -> Figure:
    """How belief in D grows: median and the middle 90 % of the trials."""
    figure, axes = _axes("step (median and middle 90 % of the trials)", "belief in D")
    course = beliefs(trials.log_likelihood_ratio)
    for on_d, name, colour in ((True, "trained on D", ON_D), (False, "trained on D'", ON_OTHER)):
        _band(axes, course[trials.trained_on_d == on_d], name, colour)
    bound = document["measured"]["belief"]["bound"]
    axes.axhline(bound, color=LIMIT, linestyle="--", label=f"bound {bound:.3g}, for D and D'")
    axes.axhline(1 - bound, color=LIMIT, linestyle="--")
    axes.set_ylim(0, 1)
    _legend(axes)
    return figure


def sensitivity_over_steps(document: Document, trials: Trials) -> Figure:
    """How far the neighbours' clipped gradients lie apart, beside the worst case that clipping allows."""
    figure, axes = _axes("step (median and middle 90 % of the trials)", "distance of the two gradient sums")
    _band(axes, trials.local_sensitivity, "local sensitivity", ON_D)
    given = document["input"]
    factor, name = (2, "2C") if given["adjacency"] == "replace" else (1, "C")
    limit = factor * given["clip"]
    axes.axhline(limit, color=LIMIT, linestyle="--", label=f"global sensitivity {name} = {limit:g}")
    axes.set_ylim(0, 1.08 * limit)
    _legend(axes)
    return figure


FIGURES = {
    "final-beliefs": final_beliefs,
    "belief-over-steps": belief_over_steps,
    "sensitivity-over-steps": sensitivity_over_steps,
}
"""Every picture by the name of its file."""


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _band(axes: Axes, rows: NDArray[Any], name: str, colour: str) -> None:
    if not len(rows):
        return
    low, middle, high = np.quantile(rows, (0.05, 0.5, 0.95), axis=0)
    steps = np.arange(1, rows.shape[1] + 1)
    axes.plot(steps, middle, color=colour, label=name)
    axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlim(1, max(2, len(steps)))


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
