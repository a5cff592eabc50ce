"""What a frontier says, in words and rows; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from deniable.formatting import at_most, short
from deniable.results.frontier_result import FrontierLevel, FrontierResult
from deniable.utility.knee import KEPT_SHARE, NO_SPREAD, name_bound, short_bound, tell_measure, tell_range, tell_value

__all__ = ["MEASURES", "headings", "meaning", "outcome", "part_rows", "rows", "sampling_note", "tone"]

MEASURES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "error": "Error (RMSE)",
    "absolute_error": "Absolute error",
    "explained": "Explained (R squared)",
}
"""The measures of a classification, then of a regression, as people read them."""


_LESS_IS_BETTER = ("error", "absolute_error")
_PROMISES = {
    "belief": "Nobody surer than",
    "advantage": "Advantage at most",
    "accuracy": "Right guesses at most",
    "tpr": "TPR at most",
    "ppv": "PPV at most",
    "success": "Success at most",
    "epsilon": "Epsilon at most",
}


def outcome(document: FrontierResult) -> str:
    """The knee in a few words."""
    knee, promise = document.knee, document.input.promise
    if _has_nothing_to_trade(document):
        return "nothing to trade"
    if knee.cheap_from is not None:
        shown = "cheap" if _is_shown_cheap(document) else "perhaps cheap"
        return f"{shown} from {name_bound(promise, knee.cheap_from)} on"
    if knee.useless_up_to == document.levels[-1].bound:
        return "no promise is shown to leave a useful model"
    return "no promise is shown to be cheap"


def tone(document: FrontierResult) -> str:
    """How the outcome is coloured: what is shown to be cheap somewhere is good, what is nowhere useful is bad."""
    if _has_nothing_to_trade(document):
        return "open"
    if document.knee.cheap_from is not None:
        return "good" if _is_shown_cheap(document) else "odd"
    return "bad" if document.knee.useless_up_to == document.levels[-1].bound else "odd"


def _is_shown_cheap(document: FrontierResult) -> bool:
    """Whether the limits, and not only the means, of what is lost keep most of the gain, wherever it is called cheap.

    Limits without width show nothing: so few trainings came out alike.
    """
    free = document.tuned_measure(document.none.quality).mean
    most = (1 - KEPT_SHARE) * abs(free - document.tuned_measure(document.without_model).mean)
    bounds = [level.bound for level in document.levels]
    lost = [level.lost for level in document.levels[bounds.index(document.knee.cheap_from) :]]
    return all(ends is not None and ends.low < ends.high <= most for ends in lost)


def _has_nothing_to_trade(document: FrontierResult) -> bool:
    """Whether even without noise the model is not shown to be better than the answer without a model."""
    metric = document.input.metric
    found, base = getattr(document.none.quality, metric), getattr(document.without_model, metric).mean
    return bool(found.high >= base if metric in _LESS_IS_BETTER else found.low <= base)


def meaning(document: FrontierResult) -> str:
    """The knee, in its own sentences."""
    return " ".join(document.knee.sentences)


def headings(document: FrontierResult) -> tuple[str, ...]:
    """Of `rows`."""
    names = [MEASURES[name] for name in _measures(document)]
    told = _PROMISES[document.input.promise]
    return (told, "noise", f"epsilon at {short(document.input.delta)}", *names, "one more training", _lost(document))


def _lost(document: FrontierResult) -> str:
    """Of two shares the difference is told in points."""
    metric = document.input.metric
    return "lost, in points" if tell_value(metric, 0.5).endswith("%") else "lost"


def _measures(document: FrontierResult) -> list[str]:
    quality = document.none.quality
    found = [name for name in MEASURES if getattr(quality, name) is not None]
    return sorted(found, key=lambda name: name != document.input.metric)


def rows(document: FrontierResult) -> Iterator[tuple[str, ...]]:
    """Strictest first, then local noise, none, and the answer without a model."""
    for level in (*document.levels, *document.local, document.none):
        yield _row(document, level)
    values = (tell_value(name, getattr(document.without_model, name).mean) for name in _measures(document))
    yield f"no model: {document.usual_answer[:20]}", "-", "-", *values, "-", "-"


def _row(document: FrontierResult, level: FrontierLevel) -> tuple[str, ...]:
    name = short_bound(document.input.promise, level.bound)
    measured = [getattr(level.quality, one) for one in _measures(document)]
    first, *others = (
        (tell_measure if place == 0 else lambda metric, found: tell_value(metric, found.mean))(one, found)
        for place, (one, found) in enumerate(zip(_measures(document), measured, strict=True))
    )
    return (
        f"{name}, local" if level.kind == "local" else name,
        "-" if level.noise is None else at_most(level.noise, 4),
        _epsilon(level),
        first,
        *others,
        _range(document, measured[0].next_low, measured[0].next_high),
        "-" if level.lost is None else _range(document, level.lost.low, level.lost.high).removesuffix(" %"),
    )


def _range(document: FrontierResult, low: float, high: float) -> str:
    return tell_range(document.input.metric, low, high) if low < high else NO_SPREAD


def _epsilon(level: FrontierLevel) -> str:
    if level.kind == "local":
        return f"{at_most(level.value_epsilon or 0.0)} a value"
    if level.kind == "none":
        return "none"
    return "infinite" if level.epsilon is None else at_most(level.epsilon)


def part_rows(document: FrontierResult, field: str) -> Iterator[tuple[str, ...]]:
    """A row a class (`classes`) or group (`groups`), a column a promise."""
    levels = (*document.levels, document.none)
    metric = "accuracy" if document.input.task == "classification" else "error"
    for place, part in enumerate(getattr(document.none.quality, field)):
        found = (getattr(level.quality, field)[place].measure.mean for level in levels)
        yield part.name[:40], f"{part.records:,}", *(tell_value(metric, value) for value in found)


def sampling_note(document: FrontierResult) -> str:
    """What another sample of test records would change, which the limits over trainings do not cover."""
    count, accuracy = document.input.test_records, document.none.quality.accuracy
    if accuracy is None:
        return f"Measured on {count:,} test records; others would give somewhat other errors."
    off = 1.96 * sqrt(max(0.0, accuracy.mean * (1 - accuracy.mean)) / count)
    return (
        f"Limits are over {document.input.repeats} trainings on the same {count:,} test records; another sample of as "
        f"many would move an accuracy like that without noise by up to {100 * off:.1f} points (19 times in 20)."
    )
