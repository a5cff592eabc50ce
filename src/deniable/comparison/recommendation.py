"""The comparison in words: which way of protecting loses less accuracy, and where the trade is favourable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray

from deniable.comparison.repeat_measures import Shift
from deniable.formatting import at_most

ALIKE_ACCURACY = 0.02
"""Two curves are alike where their accuracies nowhere differ by more; a common range must be at least half as wide."""
FAVOURABLE_PHI = 1.0
_HARDLY_ANY_EPSILON = 3.0
"""From this epsilon on the guarantee alone allows an advantage of 0.9."""


@dataclass(frozen=True)
class Point:
    """One level: `epsilon` is central DP's at its delta, or local DP's for each value.

    `record_epsilon` is what it promises about a whole record, as tables tell it: of local noise the sum over the
    record's values. `least_epsilon` is the least that is proven of a record, at the comparison's delta.
    """

    name: str
    epsilon: float
    record_epsilon: float
    least_epsilon: float
    accuracy: float
    precision: float
    phi: float | None
    phi_error: float | None
    spread: float | None
    """Standard deviation of the accuracy over repeats; None, as is `phi_error`, where there is only one."""
    precision_error: float = 0.0
    """Standard error of the precision over repeats."""


@dataclass(frozen=True)
class Recommendation:
    """`better` is "central", "local", "alike", "depends" (the curves cross), or None where it cannot be told."""

    better: str | None
    difference: float | None
    """Mean accuracy of local minus central over the common average precisions."""
    common: tuple[float, float] | None
    favourable: dict[str, list[float]]
    """Epsilons at which precision falls, and phi is above 1, by more than a standard error; from large to small."""
    sentences: tuple[str, ...]


def recommend(
    original: Point,
    levels: dict[str, Sequence[Point]],
    chance: float,
    shift: Shift | None = None,
    majority: float | None = None,
) -> Recommendation:
    """`levels` by kind, each from little protection to much; `chance` is the precision that guessing stays below.

    `majority` is the accuracy of always answering the most common class.

    Where the records alone explain half of what the attack achieves, nothing is recommended: the levels then differ in
    how well they show the shift, not in what they give away.
    """
    if original.precision <= chance:
        said = (
            "No recommendation: this attack cannot be told from guessing even on the unprotected model (average "
            f"precision {original.precision:.2f}). A stronger one may do better: this does not show that nothing leaks."
        )
        return Recommendation(None, None, None, {kind: [] for kind in levels}, (said,))
    warning = None if shift is None else shift.warning
    if shift is not None and warning and shift.precision.mean - 0.5 > (original.precision - 0.5) / 2:
        none = "No recommendation: compare on members and non-members of one population."
        return Recommendation(None, None, None, {kind: [] for kind in levels}, (warning, none))
    favourable = {
        kind: [point.epsilon for point in points if _good(point, original)] for kind, points in levels.items()
    }
    both = _compare_at_equal_risk(original, levels)
    sentences = [warning] if warning else []
    sentences.append(
        "Local and central privacy cannot be compared here: no average precision is reached by both."
        if both is None
        else _which(both)
    )
    for kind, points in levels.items():
        sentences.append(_where(kind, points, original))
        sentences.append(_cure(kind, points, chance, majority))
    praised = [p for points in levels.values() for p in points if _good(p, original) or p.precision <= chance]
    sentences += _weak_guarantees([point for point in praised if point.least_epsilon >= _HARDLY_ANY_EPSILON])
    if both is None:
        return Recommendation(None, None, None, favourable, tuple(sentences))
    return Recommendation(both.better, both.difference, both.common, favourable, tuple(sentences))


@dataclass(frozen=True)
class _Compared:
    """Accuracy of local minus central over the average precisions that both reach."""

    better: str | None
    difference: float
    """The mean."""
    common: tuple[float, float]
    widest: tuple[float, float, float]
    """Where the two differ most: the average precision, and the accuracies of central and local there."""
    spread: float | None
    """Standard deviation of an accuracy over repeats, the root of the mean square over levels."""


def _compare_at_equal_risk(original: Point, levels: dict[str, Sequence[Point]]) -> _Compared | None:
    """Accuracy at the same average precision, interpolated between the levels (Bernau et al. 2021, Figures 2-5 i)."""
    if any(not levels.get(kind) for kind in ("central", "local")):
        return None
    curves = [_curve([original, *levels[kind]]) for kind in ("central", "local")]
    low, high = max(curve[0][0] for curve in curves), min(curve[0][-1] for curve in curves)
    if high - low < ALIKE_ACCURACY / 2:
        return None
    grid = np.linspace(low, high, 101)
    central, local = (np.interp(grid, *curve) for curve in curves)
    points = [*levels["central"], *levels["local"]]
    spreads = [point.spread for point in points if point.spread is not None]
    spread = float(np.sqrt(np.mean(np.square(spreads)))) if spreads else None
    most = int(np.argmax(np.abs(local - central)))
    widest = (float(grid[most]), float(central[most]), float(local[most]))
    better = _better(local - central, spread)
    return _Compared(better, float(np.mean(local - central)), (float(low), float(high)), widest, spread)


def _better(differences: NDArray[np.float64], spread: float | None) -> str | None:
    """ "alike" only where the curves nowhere differ; a winner only where it is never clearly worse."""
    if spread is None:
        return None
    mean, told = float(np.mean(differences)), max(ALIKE_ACCURACY, spread)
    if np.max(np.abs(differences)) <= ALIKE_ACCURACY:
        return "alike" if spread <= ALIKE_ACCURACY else None
    if abs(mean) > max(ALIKE_ACCURACY / 2, spread) and np.max(-np.sign(mean) * differences) <= told:
        return "local" if mean > 0 else "central"
    return "depends" if np.max(np.abs(differences)) > told else None


def _curve(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Accuracy as a function of precision: precisions ascending."""
    ordered = sorted(points, key=lambda point: point.precision)
    return [point.precision for point in ordered], [point.accuracy for point in ordered]


def _which(found: _Compared) -> str:
    span = (
        f"at the same average precision ({found.common[0]:.2f} to {found.common[1]:.2f}, between levels interpolated)"
    )
    place, central, local = found.widest
    if found.better == "alike":
        within = f"to within {100 * ALIKE_ACCURACY:.0f} percentage points"
        return f"Local and central privacy keep the same accuracy {span}, {within}."
    if found.better == "depends":
        return (
            f"Neither is better throughout {span}: at {place:.2f} central privacy keeps {100 * central:.1f} % accuracy "
            f"and local privacy {100 * local:.1f} %."
        )
    if found.spread is None:
        return (
            f"Which keeps more accuracy {span} cannot be told from one training of each level, which may differ by "
            "chance. Run more repeats."
        )
    if found.better is None:
        return (
            f"Which keeps more accuracy {span} cannot be told: one repeat differs from another by "
            f"{100 * found.spread:.0f} percentage points. Run more repeats."
        )
    worse = "central" if found.better == "local" else "local"
    return (
        f"Choose {found.better} privacy: {span} it keeps on average {100 * abs(found.difference):.0f} percentage "
        f"points more accuracy than {worse} privacy."
    )


def _where(kind: str, points: Sequence[Point], original: Point) -> str:
    good = [_good(point, original) for point in points]
    if not any(good):
        return f"{_title(kind)}: no level clearly gains more privacy than it loses accuracy (phi above 1)."
    spans = _spans(good)
    told = " and ".join(_span(points, first, last) for first, last in spans)
    told += " a value" if kind == "local" else ""
    return f"{_title(kind)}: the trade is favourable (phi above 1) {told}."


def _good(point: Point, original: Point) -> bool:
    """Phi is above 1, and precision below the unprotected one, by more than a standard error; one repeat tells none.

    Where nothing is lost, phi is 2 for any fall of precision, by chance or not.
    """
    if point.phi is None or point.phi_error is None:
        return False
    falls = original.precision - point.precision > hypot(original.precision_error, point.precision_error)
    return falls and point.phi - point.phi_error > FAVOURABLE_PHI


def _weak_guarantees(weak: Sequence[Point]) -> list[str]:
    """What must stand beside levels that this attack finds good and whose epsilon promises hardly anything."""
    if not weak:
        return []
    names, verb = ", ".join(_with_epsilon(point) for point in weak), "promises" if len(weak) == 1 else "promise"
    return [f"Only this attack was tried: by epsilon alone, {names} {verb} hardly any protection against others."]


def _spans(good: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    edges = np.flatnonzero(np.diff([False, *good, False]))
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def _span(points: Sequence[Point], first: int, last: int) -> str:
    high, low = points[first], points[last]
    if first == last:
        return f"at epsilon {at_most(high.epsilon)}"
    return f"for epsilon from {at_most(low.epsilon)} to {at_most(high.epsilon)}"


def _with_epsilon(point: Point) -> str:
    """A level with what it promises about a record, which neither its noise nor the epsilon of a value tells."""
    return f"{point.name} (epsilon {at_most(point.record_epsilon)} a record)"


def _accuracy(point: Point, majority: float | None) -> str:
    """In per cent; beside the accuracy of the most common class where it is no better."""
    told = f"{100 * point.accuracy:.3g} %"
    if majority is None or point.accuracy > majority:
        return told
    return f"{told}, no better than always answering the most common class ({100 * majority:.3g} %)"


def _cure(kind: str, points: Sequence[Point], chance: float, majority: float | None) -> str:
    cured = next((point for point in points if point.precision <= chance), None)
    if cured is None:
        least = min(points, key=lambda point: point.precision)
        return (
            f"{_title(kind)}: no level brings the attack down to guessing; {_with_epsilon(least)} comes closest "
            f"(average precision {least.precision:.2f}, accuracy {_accuracy(least, majority)})."
        )
    return (
        f"{_title(kind)}: {_with_epsilon(cured)} is the first to bring the attack down to guessing; accuracy is then "
        f"{_accuracy(cured, majority)}."
    )


def _title(kind: str) -> str:
    return f"{kind.capitalize()} privacy"
