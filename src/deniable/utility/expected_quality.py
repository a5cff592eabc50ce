"""What a frontier says of a promise that `choose` was asked for: a row for its answer.

Frontiers of two real data sets, measured once with `deniable frontier`, are kept as its documents.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path

from deniable.mechanisms import Adjacency, Training
from deniable.promises import Promise
from deniable.results.explain_result import ExpectedPiece, ExpectedQuality
from deniable.results.frontier_result import FrontierLevel, FrontierResult
from deniable.results.reading import read_result
from deniable.scores import privacy_loss
from deniable.store import read_document
from deniable.utility.knee import name_bound, tell_range

BUILT_IN = {
    "adult": "Adult: is a person's income above 50,000 dollars a year? 30,162 people of the US census of 1994 (UCI "
    "Machine Learning Repository; Becker 1996)",
    "mnist": "MNIST: which digit is on a picture? 60,000 handwritten digits (LeCun 1998)",
}
"""What was measured, on whose data. Each document holds the command that made it."""
_PLACE = Path(__file__).parent / "measured"


@cache
def read_built_in(name: str) -> FrontierResult:
    """The frontier of this name, one of `BUILT_IN`."""
    return read_frontier(_PLACE / f"{name}.json")


def read_frontier(path: Path | str) -> FrontierResult:
    """The frontier in a file, or in the folder that `deniable frontier --out` wrote."""
    place = Path(path) / "frontier.json" if Path(path).is_dir() else Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no frontier {place}: name what `deniable frontier` wrote")
    found = read_result(read_document(place))
    if not isinstance(found, FrontierResult):
        raise ValueError(f"{place} is a result of {found.kind}, not of frontier")
    return found


def expect_quality(
    frontier: FrontierResult, promise: Promise, adjacency: Adjacency | str = Adjacency.ADD_REMOVE, person: int = 1
) -> ExpectedQuality:
    """Where one more training lies that keeps the promise, by the two measured levels around it.

    The stricter one keeps the promise, so that a training is at least as good as it; the weaker one, or no promise, is
    at least as good as any that keeps it. Both hold for the frontier's settings, as far as more privacy never helps;
    where trainings scatter so much that it seems to help, the ends are those of both levels together.
    `person` is the number of records of one person that the promise is about, `adjacency` how neighbours differ.
    """
    bounds = level_bounds(frontier, type(promise), promise.parameters, adjacency, person)
    return _expect_at(frontier, bounds, promise.bound)


def expect_everywhere(frontier: FrontierResult, bounds: Sequence[float]) -> tuple[ExpectedPiece, ...]:
    """The same for every bound of a promise, whose levels have these `bounds`: it changes at them alone."""
    ends = [0.0, *sorted({bound for bound in bounds if isfinite(bound) and bound > 0}), inf]
    found = [_piece(frontier, bounds, 0.0, 0.0)]
    for low, high in pairwise(ends):
        found.append(_piece(frontier, bounds, low, high))
        if isfinite(high):
            found.append(_piece(frontier, bounds, high, high))
    return tuple(piece for piece in found if piece is not None)


def _piece(frontier: FrontierResult, bounds: Sequence[float], low: float, high: float) -> ExpectedPiece | None:
    middle = low + 1.0 if high == inf else (low + high) / 2
    if low < high and not low < middle < high:
        return None
    most = high if isfinite(high) else None
    return ExpectedPiece(above=low, up_to=most, expected=_expect_at(frontier, bounds, middle))


def _expect_at(frontier: FrontierResult, bounds: Sequence[float], bound: float) -> ExpectedQuality:
    inside = [place for place, own in enumerate(bounds) if own <= bound]
    outside = [place for place, own in enumerate(bounds) if own >= bound]
    stricter = max(inside, key=bounds.__getitem__, default=None)
    weaker = min(outside, key=bounds.__getitem__, default=None)
    upper = frontier.none if weaker is None else frontier.levels[weaker]
    low, high = _ends(frontier, stricter, upper)
    return ExpectedQuality(
        metric=frontier.metric,
        low=low,
        high=high,
        data=frontier.input.data,
        text=_text(frontier, (low, high), stricter, upper),
    )


def level_bounds(
    frontier: FrontierResult,
    score: type[Promise],
    parameters: Mapping[str, float],
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    person: int = 1,
) -> tuple[float, ...]:
    """What every level promises in this score at these parameters; infinite where that is not known."""
    given = frontier.input
    same = score.field.name == given.promise and all(getattr(given, name) == at for name, at in parameters.items())
    if same and adjacency == given.adjacency and person == 1:
        return given.bounds
    return tuple(_bound(level, score, parameters, Adjacency(adjacency), person) for level in frontier.levels)


def _bound(
    level: FrontierLevel, score: type[Promise], parameters: Mapping[str, float], adjacency: Adjacency, person: int
) -> float:
    if level.setting is None or level.noise is None:
        return inf
    noise = level.noise / adjacency.sensitivity(1.0)  # the same standard deviation, over what neighbours change
    release = Training(noise, level.setting.rate, level.setting.steps, adjacency).mechanism
    return float(score.ask(privacy_loss(release.group(person), adjacency), parameters))


def _ends(frontier: FrontierResult, stricter: int | None, upper: FrontierLevel) -> tuple[float, float]:
    """Between which both levels' next trainings lie; where no stricter one was measured, from no model at all on."""
    levels = [upper] if stricter is None else [frontier.levels[stricter], upper]
    measured = [frontier.tuned_measure(level.quality) for level in levels]
    ends = [end for found in measured for end in (found.next_low, found.next_high)]
    if stricter is None:
        ends.append(frontier.tuned_measure(frontier.without_model).mean)
    return min(ends), max(ends)


def _text(frontier: FrontierResult, ends: tuple[float, float], stricter: int | None, upper: FrontierLevel) -> str:
    given = frontier.input
    named = [] if stricter is None else [name_bound(given.promise, frontier.levels[stricter].bound)]
    named += [name for name in [name_bound(given.promise, upper.bound)] if name not in named]
    least = "" if stricter is not None else " No promise as strict as this was measured; one end is that of no model."
    measure = frontier.metric.replace("_", " ")
    return (
        f"At this promise expect {tell_range(frontier.metric, *ends)} {measure} on {given.data}: measured at "
        f"{' and '.join(named)}, with the settings that the frontier chose, which may not be yours.{least}"
    )
