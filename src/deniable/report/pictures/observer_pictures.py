"""What the observer saw and became sure of: final beliefs, their course, sensitivities, rates beside the possible.

Also how the evidence against a claim went up and down while it was watched.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from deniable.bounds.risk_bounds import least_fnr
from deniable.formatting import percent_at_most
from deniable.mechanisms import Adjacency, Training
from deniable.report.pictures.picture import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    RED,
    Data,
    Picture,
    axes,
    legend_above,
    log_roc,
)
from deniable.report.words.amount_text import figure, share
from deniable.report.words.verdict_words import exceedance_text, whose_noise
from deniable.results.audit_result import AuditResult, CourseResult, Roc
from deniable.results.shared import Watched
from deniable.scores import privacy_loss

SIDES = (("d", "trained on D", BLUE), ("other", "trained on D'", ORANGE))
CURVE_POINTS = 37
MIDDLE = "median and middle 90 % of the trials"


def course_pictures(document: AuditResult) -> Iterator[Picture]:
    """Every picture that the document's `course` allows."""
    course = document.course
    if course is None:
        return
    yield _final_beliefs(document, course)
    yield _belief_over_steps(document, course)
    if course.sensitivity is not None:
        yield _sensitivity(document, course)
    if course.roc is not None:
        ordinary = _roc(document, course.roc)
        yield ordinary
        yield _log_roc(ordinary)


def _final_beliefs(document: AuditResult, course: CourseResult) -> Picture:
    bound = document.game.belief.bound
    told = (
        f"Each training ends with a belief that D was trained on. {exceedance_text(document)} At 50 % the "
        "observer learned nothing."
    )
    data = {"d": course.final_beliefs.d, "other": course.final_beliefs.other, "bound": bound}
    title = "How sure the observer ended"
    return Picture("final-beliefs", title, told, f"Histogram. {told}", data, _draw_final_beliefs)


def _draw_final_beliefs(data: Data) -> Figure:
    drawing, found = axes("belief in D after the last step", "trainings")
    edges = np.linspace(0, 1, len(data["d"]) + 1)
    for side, name, colour in SIDES:
        found.stairs(data[side], edges, fill=True, color=colour, alpha=0.35)
        found.stairs(data[side], edges, color=colour, linewidth=1.3, label=name)
    _bounds(found.axvline, data["bound"])
    _percent_axis(found, "x")
    legend_above(found)
    return drawing


def _belief_over_steps(document: AuditResult, course: CourseResult) -> Picture:
    bound, bands = document.game.belief.bound, {"d": course.belief.d, "other": course.belief.other}
    told = f"How belief in D moves as the observer watches step after step: {MIDDLE}.{_thinning_note(course)}"
    ends = [f"{name}: {share(band[1][-1])}" for side, name, _ in SIDES if (band := bands[side]) is not None]
    description = f"{told} Median at the end, {', '.join(ends)}; bound {percent_at_most(bound)}."
    data = {"steps": course.steps, **bands, "bound": bound}
    return Picture("belief-over-steps", "How its belief grew", told, description, data, _draw_belief_over_steps)


def _draw_belief_over_steps(data: Data) -> Figure:
    drawing, found = axes("training step", "belief in D")
    for side, name, colour in SIDES:
        if data[side] is not None:
            _band(found, data["steps"], data[side], name, colour)
    _bounds(found.axhline, data["bound"])
    _percent_axis(found, "y")
    legend_above(found)
    return drawing


def _sensitivity(document: AuditResult, course: CourseResult) -> Picture:
    given = document.input
    factor, name = (2, "2C") if given.adjacency == Adjacency.REPLACE else (1, "C")
    limit, middle = factor * given.clip, float(np.median((course.sensitivity or ((), ()))[1]))
    told = (
        f"How far one record moves the sum of clipped gradients ({MIDDLE}), beside the most that clipping allows, "
        f"{name} = {figure(limit)}: {share(middle / limit)} of it in the middle.{_thinning_note(course)}"
    )
    data = {"steps": course.steps, "band": course.sensitivity, "limit": limit, "name": name}
    title = "What one record changes, beside the worst case"
    return Picture("sensitivity-over-steps", title, told, told, data, _draw_sensitivity)


def _draw_sensitivity(data: Data) -> Figure:
    drawing, found = axes("training step", "distance of the two gradient sums")
    _band(found, data["steps"], data["band"], "local sensitivity", BLUE)
    label = f"global sensitivity {data['name']} = {figure(data['limit'])}"
    found.axhline(data["limit"], color=INK, linestyle="--", linewidth=1.2, label=label)
    found.set_ylim(0, 1.08 * max(data["limit"], *data["band"][2]))
    legend_above(found)
    return drawing


def _roc(document: AuditResult, roc: Roc) -> Picture:
    given, delta = document.input, document.exact.delta
    promised = document.claimed.epsilon
    data = {
        "measured": {"fpr": roc.fpr, "tpr": roc.tpr},
        "exact": exact_curve(Training.of(given)),
        "promised": None if promised is None else promised_line(promised, delta),
        "noise": whose_noise(document),
    }
    nor = "" if promised is None else ", nor may any be above what this epsilon alone allows"
    told = (
        "How many trainings on D are recognised (up) for how many wrong alarms (right). No attack on "
        f"{whose_noise(document)} can be above the exact curve but by chance{nor}."
    )
    shown = len(roc.fpr)
    few = f" {shown} of {roc.thresholds:,} thresholds are drawn." if shown < roc.thresholds else ""
    return Picture("roc", "What the observer recognised", told + few, f"ROC curve. {told}", data, _draw_roc)


def _log_roc(ordinary: Picture) -> Picture:
    told = (
        "The same curves on logarithmic axes: what is recognised at hardly any wrong alarm, which is where attacks do "
        "harm. Rates that so few trainings cannot show are left out."
    )
    title = "What it recognised at few wrong alarms"
    return Picture("roc-log", title, told, f"ROC curve. {told}", ordinary.data, _draw_log_roc)


def _draw_log_roc(data: Data) -> Figure:
    drawing, found = axes("wrong alarms (false positive rate)", "recognised (true positive rate)", height=4.0)
    if data["promised"] is not None:
        log_roc(found, *_xy(data["promised"]), color=RED, linestyle="-.", label="this epsilon alone allows")
    log_roc(found, *_xy(data["exact"]), color=INK, linestyle="--", label=f"exact for {data['noise']}")
    log_roc(found, *_xy(data["measured"]), color=GREEN, linewidth=2, label="measured")
    legend_above(found, columns=2)
    return drawing


def exact_curve(training: Training) -> Data:
    """The trade-off curve of a training: the largest true positive rate at every false one."""
    fpr, tpr = privacy_loss(training.mechanism, training.adjacency).roc(CURVE_POINTS)
    return {"fpr": fpr.tolist(), "tpr": tpr.tolist()}


def promised_line(epsilon: float, delta: float) -> Data:
    """What (epsilon, delta)-DP allows: TPR <= e^epsilon FPR + delta, and the same seen from the other side."""
    fpr = np.concatenate([[0.0], np.geomspace(1e-4, 0.1, 25), np.linspace(0.1, 1, 46)[1:]])
    return {"fpr": fpr.tolist(), "tpr": [1 - least_fnr(epsilon, delta, float(rate)) for rate in fpr]}


def _draw_roc(data: Data) -> Figure:
    drawing, found = axes("wrong alarms (false positive rate)", "recognised (true positive rate)", height=4.0)
    found.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", label="guessing")
    if data["promised"] is not None:
        found.plot(*_xy(data["promised"]), color=RED, linestyle="-.", label="this epsilon alone allows")
    found.plot(*_xy(data["exact"]), color=INK, linestyle="--", label=f"exact for {data['noise']}")
    found.plot(*_xy(data["measured"]), color=GREEN, linewidth=2, label="measured")
    found.set_aspect("equal")
    _percent_axis(found, "x")
    _percent_axis(found, "y")
    legend_above(found, columns=2)
    return drawing


def _xy(line: Data) -> tuple[list[float], list[float]]:
    return line["fpr"], line["tpr"]


def _band(found: Axes, steps: list[int], band: list[list[float]], name: str, colour: str) -> None:
    low, middle, high = band
    found.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    found.plot(steps, middle, color=colour, label=name, marker="o" if len(steps) == 1 else None)
    found.xaxis.set_major_locator(MaxNLocator(integer=True))
    found.set_xlim(steps[0] if len(steps) > 1 else steps[0] - 1, steps[-1] if len(steps) > 1 else steps[0] + 1)


def _bounds(line: object, bound: float) -> None:
    """The belief that was not to be exceeded, in D and in D'."""
    if bound >= 1:
        return
    for place, name in ((bound, f"bound {percent_at_most(bound)}, for D and D'"), (1 - bound, None)):
        line(place, color=INK, linestyle="--", linewidth=1.2, label=name)  # type: ignore[operator]


def _percent_axis(found: Axes, which: str) -> None:
    ticks = np.linspace(0, 1, 5)
    names = [f"{100 * tick:.0f} %" for tick in ticks]
    if which == "x":
        found.set_xlim(0, 1)
        found.set_xticks(ticks, names)
    else:
        found.set_ylim(0, 1)
        found.set_yticks(ticks, names)


def _thinning_note(course: CourseResult) -> str:
    shown, every = len(course.steps), course.steps_in_all
    return f" {shown} of {every:,} steps are drawn." if shown < every else ""


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
