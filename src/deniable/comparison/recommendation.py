"""The comparison in words: which way of protecting loses less accuracy, and where the trade is favourable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.comparison.results import Shift

__all__ = ["Point", "Recommendation", "recommend"]

ALIKE = 0.01
"""A mean difference of accuracy below this is called none, and so is one below the spread."""
FAVOURABLE = 1.0


@dataclass(frozen=True)
class Point:
    """One level: `epsilon` is central DP's at its delta, or local DP's for each value."""

    name: str
    epsilon: float
    accuracy: float
    precision: float
    phi: float | None
    phi_error: float
    spread: float
    """Standard deviation of the accuracy over repeats."""


@dataclass(frozen=True)
class Recommendation:
    """`better` is "central", "local", "alike" or None where the two cannot be compared."""

    better: str | None
    difference: float | None
    """Mean accuracy of local minus central over the common average precisions."""
    common: tuple[float, float] | None
    favourable: dict[str, list[float]]
    """Epsilons at which phi is above 1 by more than its standard error, from large to small."""
    sentences: tuple[str, ...]


def recommend(
    original: Point, levels: dict[str, Sequence[Point]], chance: float, shift: Shift | None = None
) -> Recommendation:
    """`levels` by kind, each from little protection to much; `chance` is the precision that guessing stays below.

    Where the records alone explain half of what the attack achieves, nothing is recommended: the levels then differ in
    how well they show the shift, not in what they give away.
    """
    if original.precision <= chance:
        found = f"the attack on the original model guesses (average precision {original.precision:.2f})"
        said = f"There is nothing to protect: {found}."
        return Recommendation(None, None, None, {kind: [] for kind in levels}, (said,))
    warning = None if shift is None else shift.warning
    if shift is not None and warning and shift.precision.mean - 0.5 > (original.precision - 0.5) / 2:
        none = "No recommendation: compare on members and non-members of one population."
        return Recommendation(None, None, None, {kind: [] for kind in levels}, (warning, none))
    favourable = {kind: [point.epsilon for point in points if _good(point)] for kind, points in levels.items()}
    better, difference, common = _compared(original, levels)
    sentences = [warning] if warning else []
    sentences.append(_which(better, difference, common))
    for kind, points in levels.items():
        sentences.append(_where(kind, points))
        sentences.append(_cure(kind, points, chance))
    return Recommendation(better, difference, common, favourable, tuple(sentences))


def _compared(
    original: Point, levels: dict[str, Sequence[Point]]
) -> tuple[str | None, float | None, tuple[float, float] | None]:
    """Accuracy at the same average precision, interpolated between the levels (003 Figures 2-5 i)."""
    if any(not levels.get(kind) for kind in ("central", "local")):
        return None, None, None
    curves = [_curve([original, *levels[kind]]) for kind in ("central", "local")]
    low, high = max(curve[0][0] for curve in curves), min(curve[0][-1] for curve in curves)
    if high - low < ALIKE:
        return None, None, None
    grid = np.linspace(low, high, 101)
    central, local = (np.interp(grid, *curve) for curve in curves)
    difference = float(np.mean(local - central))
    points = [*levels["central"], *levels["local"]]
    noise = float(np.sqrt(np.mean([point.spread**2 for point in points])))
    alike = abs(difference) < max(ALIKE, noise)
    return ("alike" if alike else "local" if difference > 0 else "central"), difference, (float(low), float(high))


def _curve(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Accuracy as a function of precision: precisions ascending."""
    ordered = sorted(points, key=lambda point: point.precision)
    return [point.precision for point in ordered], [point.accuracy for point in ordered]


def _which(better: str | None, difference: float | None, common: tuple[float, float] | None) -> str:
    if better is None or difference is None or common is None:
        return "Local and central privacy cannot be compared here: no average precision is reached by both."
    span = f"at the same average precision ({common[0]:.2f} to {common[1]:.2f})"
    if better == "alike":
        return f"Local and central privacy cost about the same accuracy {span}."
    worse = "central" if better == "local" else "local"
    return (
        f"Choose {better} privacy: {span} it keeps on average {100 * abs(difference):.0f} percentage points more "
        f"accuracy than {worse} privacy."
    )


def _where(kind: str, points: Sequence[Point]) -> str:
    good = [_good(point) for point in points]
    if not any(good):
        return f"{_title(kind)}: no level clearly gains more privacy than it loses accuracy (phi above 1)."
    spans = _spans(good)
    told = " and ".join(_span(points, first, last) for first, last in spans)
    return f"{_title(kind)}: the trade is favourable (phi above 1) {told}."


def _good(point: Point) -> bool:
    """Phi is above 1 by more than its standard error."""
    return point.phi is not None and point.phi - point.phi_error > FAVOURABLE


def _spans(good: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    edges = np.flatnonzero(np.diff([False, *good, False]))
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def _span(points: Sequence[Point], first: int, last: int) -> str:
    high, low = points[first], points[last]
    if first == last:
        return f"at epsilon {high.epsilon:.3g}"
    return f"for epsilon from {low.epsilon:.3g} to {high.epsilon:.3g}"


def _cure(kind: str, points: Sequence[Point], chance: float) -> str:
    cured = next((point for point in points if point.precision <= chance), None)
    if cured is None:
        least = min(points, key=lambda point: point.precision)
        return (
            f"{_title(kind)}: no level brings the attack down to guessing; {least.name} comes closest "
            f"(average precision {least.precision:.2f}, accuracy {least.accuracy:.0%})."
        )
    level = cured.name if kind == "local" else f"{cured.name} (epsilon {cured.epsilon:.3g})"
    return (
        f"{_title(kind)}: {level} is the first to bring the attack down to guessing; accuracy is then "
        f"{cured.accuracy:.0%}."
    )


def _title(kind: str) -> str:
    return f"{kind.capitalize()} privacy"
