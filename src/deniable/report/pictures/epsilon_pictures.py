"""Epsilon from both sides: every estimator's interval beside what is claimed and exact, and the region of privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import structs

from deniable.campaigns.plot_data import region
from deniable.formatting import at_least, at_most, short, told_apart
from deniable.mechanisms import Training
from deniable.report.pictures.picture import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    RED,
    YELLOW,
    Data,
    Picture,
    axes,
    legend_above,
    plain,
)
from deniable.report.words.amount_text import allowed_figure, figure
from deniable.results.audit_result import AuditResult, EpsilonMeasured
from deniable.results.compare_result import RegionRow
from deniable.results.shared import EpsilonBound
from deniable.results.verdict_result import BoundsOnEpsilon

NAMED = {"naive": (GREY, ":"), "advanced": (PURPLE, "-."), "rdp": (YELLOW, "--")}
"""Weaker analyses, and how they are drawn."""
NAMES = {"naive": "naive composition", "advanced": "advanced composition", "rdp": "Renyi DP"}
WITHOUT_CONFIDENCE = {
    "sensitivity": "local sensitivities",
    "belief": "largest belief",
    "advantage": "advantage, Gaussian",
    "advantage_theorem_3": "advantage, classic formula",
}
"""Figures that are read off the trials, and make no statement of confidence."""
MOST_ESTIMATORS = 20
"""Estimators that are drawn; there are fewer."""
FACTORS = np.geomspace(0.4, 2.5, 9)
"""Noise levels around the audited one, at which analyses are shown."""


def epsilon_picture(
    measured: EpsilonMeasured | BoundsOnEpsilon, claimed: float | None, exact: float | None, delta: float
) -> Picture:
    """Epsilon by every estimator that was measured."""
    named = {name: getattr(measured, key, None) for key, name in WITHOUT_CONFIDENCE.items()}
    points = {name: value for name, value in named.items() if value is not None}
    estimators = measured.estimators[:MOST_ESTIMATORS]
    data = {"claimed": claimed, "exact": exact, "delta": delta, "estimators": estimators, "points": points}
    marks = [_mark(word, at) for word, at in (("claimed", claimed), ("exact", exact)) if at is not None]
    told = (
        f"What each estimator shows of epsilon at delta {short(delta)}: a bar is its interval, a diamond a figure "
        f"without confidence. Beside them: {', '.join(marks) or 'nothing is claimed'}. A bar wholly to the right of "
        "the claim speaks against it where all holds that its estimator assumes."
    )
    title = "Epsilon by every estimator"
    return Picture("epsilon-estimators", title, told, told, data, _draw_epsilons)


def _draw_epsilons(data: Data) -> Figure:
    rows = [plain(bound.name) for bound in data["estimators"]] + list(data["points"])
    drawing, found = axes(f"epsilon at delta {short(data['delta'])}", "", height=1.3 + 0.27 * len(rows))
    right = 1.15 * _furthest(data)
    for place, bound in enumerate(data["estimators"]):
        _interval(found, place, bound, right)
    for place, value in enumerate(data["points"].values(), start=len(data["estimators"])):
        found.plot([value], [place], marker="D", markersize=5, color=GREY, linestyle="none")
    for name, at, colour, style in (("claimed", data["claimed"], RED, "-."), ("exact", data["exact"], INK, "--")):
        if at is not None:
            found.axvline(at, color=colour, linestyle=style, linewidth=1.4, label=_mark(name, at))
    found.set_yticks(range(len(rows)), rows)
    found.tick_params(axis="y", length=0)
    found.grid(axis="y", visible=False)
    found.set(xlim=(0, right), ylim=(len(rows) - 0.4, -0.6))
    if data["claimed"] is not None or data["exact"] is not None:
        legend_above(found)
    return drawing


def _mark(word: str, at: float) -> str:
    return f"{word} {figure(at) if word == 'claimed' else allowed_figure(at)}"


def _furthest(data: Data) -> float:
    shown = [data["claimed"], data["exact"], *data["points"].values()]
    shown += [end for bound in data["estimators"] if bound.valid for end in (bound.value, bound.upper)]
    return float(max([0.1, *(value for value in shown if value is not None and isfinite(value))]))


def _interval(found: Axes, place: int, bound: EpsilonBound, right: float) -> None:
    """A bar from the lower to the upper limit, open to the right where there is none."""
    if not bound.valid:
        found.text(0.01 * right, place, "does not apply", color=MUTED, va="center", fontsize=8, style="italic")
        return
    low = right if bound.value is None else bound.value
    high = right if bound.upper is None else bound.upper
    colour = GREY if bound.kind == "credible" else BLUE
    found.plot([low, high], [place, place], color=colour, linewidth=6, alpha=0.35, solid_capstyle="butt")
    found.plot([low], [place], marker="|", markersize=11, markeredgewidth=2.2, color=colour)
    if bound.upper is None:
        found.plot([right], [place], marker=">", markersize=6, color=colour, clip_on=False)


def region_data(document: AuditResult, lower: float | None) -> list[RegionRow]:
    """The region of privacy around an audited training: analyses over the noise, and what was shown at its own."""
    training = Training.of(document.input)
    levels = [(training.noise * float(factor), None) for factor in FACTORS] + [(training.noise, lower)]
    rows = [(noise, replace(training, noise=noise).mechanism, shown) for noise, shown in levels]
    known = region(rows, document.exact.delta, training.adjacency)
    return [row for row in known if isfinite(row.exact)]


def region_picture(rows: Sequence[RegionRow], delta: float, attack: str, caveat: str = "") -> Picture:
    """Upper bounds on epsilon, the attack's lower bounds, and the truth between them, unless there is a `caveat`.

    Erlingsson et al. 2019, Figures 1 and 2.
    """
    shown = [row for row in rows if row.lower is not None]
    told = (
        f"Analyses bound epsilon from above, the {attack} from below (with its confidence)"
        f"{_where_truth_is(shown, not caveat)}. Weaker analyses state a larger epsilon.{caveat and ' ' + caveat}"
    )
    data = {"rows": rows, "delta": delta, "attack": attack, "holds": not caveat}
    return Picture("region-of-privacy", "The region of privacy", told, told, data, _draw_region)


def _where_truth_is(shown: Sequence[RegionRow], holds: bool) -> str:
    """Between the two, if the analyses hold for the training; if more is shown than they allow, they do not."""
    if not shown:
        return ", here not told"
    refuted = [row for row in shown if (row.lower or 0) > row.exact]
    if refuted:
        said = ", ".join(f"at noise {figure(row.noise)} {_more_than_allowed(row)}" for row in refuted)
        return f". Here more is shown than they allow ({said}): they are not those of this training"
    said = ", ".join(
        f"at noise {figure(row.noise)} between {at_least(row.lower or 0)} and {at_most(row.exact)}" for row in shown
    )
    return f"; the truth lies between, here {said}" if holds else f", here {said}"


def _more_than_allowed(row: RegionRow) -> str:
    low, most = told_apart(row.lower or 0, row.exact)
    return f"at least {low}, and {most} is allowed"


def _draw_region(data: Data) -> Figure:
    drawing, found = axes("noise multiplier", f"epsilon at delta {short(data['delta'])}", height=3.6)
    floor = _foot(data["rows"])
    rows = [structs.replace(row, exact=max(row.exact, floor)) for row in data["rows"]]
    for name, (colour, style) in NAMED.items():
        known = [(row.noise, getattr(row.named, name)) for row in rows if getattr(row.named, name)]
        if known:
            found.plot(*zip(*known, strict=True), style, color=colour, label=f"{NAMES[name]}, upper")
    found.plot([row.noise for row in rows], [row.exact for row in rows], "-", color=BLUE, label="exact, upper")
    _from_below(found, [row for row in rows if row.lower is not None], data["attack"], floor, data["holds"])
    found.set(xscale="log", yscale="log")
    noise = [row.noise for row in (rows if len(rows) < 7 else rows[:: len(rows) // 4])]
    found.set_xticks(noise, [figure(z) for z in noise])
    found.set_xticks([], minor=True)
    found.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    found.yaxis.set_minor_formatter("")
    legend_above(found, columns=2)
    return drawing


def _foot(rows: list[RegionRow]) -> float:
    """Where epsilon 0 is drawn on a logarithmic axis: below all else."""
    known = [value for row in rows for value in (row.exact, row.lower, *structs.astuple(row.named))]
    return min((value for value in known if value), default=1.0) / 10


def _from_below(found: Axes, rows: list[RegionRow], attack: str, floor: float, holds: bool) -> None:
    """The attack's lower bounds, 0 at the foot of the picture, and the region above them where the analyses hold."""
    if not rows:
        return
    lower = [max(row.lower or 0.0, floor) for row in rows]
    noise, exact = [row.noise for row in rows], [row.exact for row in rows]
    found.plot(noise, lower, "s-", color=ORANGE, markersize=5, label=f"{attack}, lower")
    for row, height in zip(rows, lower, strict=True):
        if row.lower == 0:
            found.annotate("0", (row.noise, height), (4, 3), textcoords="offset points", fontsize=8, color=INK)
    if not holds:
        return
    if len(rows) > 1:
        found.fill_between(noise, lower, exact, color=GREEN, alpha=0.15, linewidth=0, label="region of privacy")
    else:
        found.plot([noise[0]] * 2, [lower[0], exact[0]], color=GREEN, linewidth=7, alpha=0.3, label="region of privacy")
