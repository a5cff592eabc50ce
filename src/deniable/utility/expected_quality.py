"""What a frontier says of a promise that `choose` was asked for: a row for its answer."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import cast

from deniable.mechanisms import Adjacency, Training
from deniable.promises import Promise
from deniable.results.explain_result import ExpectedQuality
from deniable.results.frontier_result import LOWER_IS_BETTER, FrontierLevel, FrontierResult
from deniable.results.reading import read_result
from deniable.scores import privacy_loss
from deniable.store import read_document
from deniable.utility.knee import name_bound, tell_range

__all__ = ["expect_quality", "read_frontier"]


def read_frontier(path: Path | str) -> FrontierResult:
    """The frontier in a file, or in the folder that `deniable frontier --out` wrote."""
    place = Path(path) / "frontier.json" if Path(path).is_dir() else Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no frontier {place}: name what `deniable frontier` wrote")
    found = read_result(read_document(place))
    if not isinstance(found, FrontierResult):
        raise ValueError(f"{place} is a result of {found.kind}, not of frontier")
    return found


def expect_quality(frontier: FrontierResult, promise: Promise) -> ExpectedQuality:
    """Where one more training lies that keeps the promise, by the two measured levels around it.

    The stricter one keeps the promise, so that a training is at least as good as it; the weaker one, or no promise, is
    at least as good as any that keeps it. Both hold for the frontier's settings, as far as more privacy never helps.
    """
    bounds = [_bound(frontier, level, promise) for level in frontier.levels]
    inside = [place for place, bound in enumerate(bounds) if bound <= promise.bound]
    outside = [place for place, bound in enumerate(bounds) if bound >= promise.bound]
    stricter = max(inside, key=bounds.__getitem__, default=None)
    weaker = min(outside, key=bounds.__getitem__, default=None)
    upper = frontier.none if weaker is None else frontier.levels[weaker]
    worst, best = _worst(frontier, stricter), _end(frontier, upper, good=True)
    low, high = (worst, best) if frontier.metric not in LOWER_IS_BETTER else (best, worst)
    return ExpectedQuality(
        metric=frontier.metric,
        low=low,
        high=high,
        data=frontier.input.data,
        text=_text(frontier, (low, high), stricter, upper),
    )


def _bound(frontier: FrontierResult, level: FrontierLevel, promise: Promise) -> float:
    """What a level promises in the asked promise's own unit; infinite where that is not known."""
    given = frontier.input
    same = promise.field.name == given.promise and all(
        getattr(given, name) == value for name, value in promise.parameters.items()
    )
    if same:
        return cast(float, level.bound)
    if level.setting is None or level.noise is None:
        return inf
    release = Training(level.noise, level.setting.rate, level.setting.steps, Adjacency.ADD_REMOVE).mechanism
    return float(promise.score(privacy_loss(release, Adjacency.ADD_REMOVE)))


def _end(frontier: FrontierResult, level: FrontierLevel, *, good: bool) -> float:
    found = frontier.tuned(level.quality)
    higher = good == (frontier.metric not in LOWER_IS_BETTER)
    return found.next_high if higher else found.next_low


def _worst(frontier: FrontierResult, stricter: int | None) -> float:
    """Of the stricter level; where none was measured, of no model at all."""
    if stricter is not None:
        return _end(frontier, frontier.levels[stricter], good=False)
    return frontier.tuned(frontier.without_model).mean


def _text(frontier: FrontierResult, ends: tuple[float, float], stricter: int | None, upper: FrontierLevel) -> str:
    given = frontier.input
    named = [] if stricter is None else [name_bound(given.promise, frontier.levels[stricter].bound)]
    named += [name for name in [name_bound(given.promise, upper.bound)] if name not in named]
    least = (
        "" if stricter is not None else " No promise as strict as this was measured; the lower end is that of no model."
    )
    measure = frontier.metric.replace("_", " ")
    return (
        f"At this promise expect {tell_range(frontier.metric, *ends)} {measure} on {given.data}: measured at "
        f"{' and '.join(named)}, with the settings that the frontier chose, which may not be yours.{least}"
    )
