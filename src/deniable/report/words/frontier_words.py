"""What a frontier says, in words and rows; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt

from deniable.formatting import at_most, short
from deniable.results.frontier_result import LOWER_IS_BETTER, FrontierLevel, FrontierResult
from deniable.utility.knee import (
    KEPT_SHARE,
    NO_SPREAD,
    SHARES,
    WEAK,
    beats,
    name_bound,
    short_bound,
    tell_measure,
    tell_plain_range,
    tell_range,
    tell_value,
)

MEASURES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "error": "Error (RMSE)",
    "absolute_error": "Absolute error",
    "explained": "Explained (R squared)",
}
"""The measures of a classification, then of a regression, as people read them."""


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
    useful = any(_beats(document, level) for level in document.levels)
    if not _beats(document, document.none):
        if useful:
            return "no model without noise to compare with"
        return "nothing to trade" if _gain(document) <= 0 else "nothing is shown to be there to trade"
    if knee.cheap_from is not None:
        shown = "cheap" if _is_shown_cheap(document) else "perhaps cheap"
        weak = _weakness_of_cheap(document)
        return f"{shown} from {name_bound(promise, knee.cheap_from)} on" + (f": {weak} protection" if weak else "")
    return "no promise is shown to be cheap" if useful else "no promise is shown to leave a useful model"


def tone(document: FrontierResult) -> str:
    """How the outcome is coloured: what protects, and is shown to be cheap, is good; what is nowhere useful is bad."""
    useful = any(_beats(document, level) for level in document.levels)
    if not _beats(document, document.none):
        return "odd" if useful else "open"
    if document.knee.cheap_from is not None:
        return "good" if _is_shown_cheap(document) and not _weakness_of_cheap(document) else "odd"
    return "odd" if useful else "bad"


def _is_shown_cheap(document: FrontierResult) -> bool:
    """Whether the limits, and not only the means, of what is lost keep most of the gain, wherever it is called cheap.

    Limits without width show nothing: so few trainings came out alike.
    """
    most = (1 - KEPT_SHARE) * abs(_gain(document))
    lost = [level.lost for level in document.levels[_cheap_place(document) :]]
    return all(ends is not None and ends.low < ends.high <= most for ends in lost)


def _cheap_place(document: FrontierResult) -> int:
    return [level.bound for level in document.levels].index(document.knee.cheap_from)


def _weakness_of_cheap(document: FrontierResult) -> str | None:
    """How little the strictest cheap promise protects; None where it is not weak."""
    strength = document.levels[_cheap_place(document)].strength
    return strength if strength in WEAK else None


def _beats(document: FrontierResult, level: FrontierLevel) -> bool:
    """Whether it is shown to be better than the answer without a model."""
    base = document.tuned_measure(document.without_model).mean
    return beats(document.metric, document.tuned_measure(level.quality), base)


def _gain(document: FrontierResult) -> float:
    """Of the model without noise over the answer without a model, by their means; positive is better."""
    free, base = (document.tuned_measure(one).mean for one in (document.none.quality, document.without_model))
    return base - free if document.metric in LOWER_IS_BETTER else free - base


def meaning(document: FrontierResult) -> str:
    """The knee, in its own sentences."""
    return " ".join(document.knee.sentences)


def headings(document: FrontierResult) -> tuple[str, ...]:
    """Of `rows`."""
    names = [MEASURES[name] for name in _measures(document)]
    told = _PROMISES[document.input.promise]
    protection = f"epsilon at {short(document.input.delta)}", "protection"
    lost = "lost, in points" if document.metric in SHARES else "lost"
    return (told, "noise", *protection, *names, "one more training", lost)


def _measures(document: FrontierResult) -> list[str]:
    quality = document.none.quality
    found = [name for name in MEASURES if getattr(quality, name) is not None]
    return sorted(found, key=lambda name: name != document.input.metric)


def rows(document: FrontierResult) -> Iterator[tuple[str, ...]]:
    """Strictest first, then local noise, none, and the answer without a model."""
    for level in (*document.levels, *document.local, document.none):
        yield _row(document, level)
    values = (tell_value(name, getattr(document.without_model, name).mean) for name in _measures(document))
    yield f"no model: {document.usual_answer[:20]}", "-", "-", "-", *values, "-", "-"


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
        level.strength or ("none" if level.kind == "none" else "-"),
        first,
        *others,
        _told_apart(tell_range, document, measured[0].next_low, measured[0].next_high),
        "-" if level.lost is None else _told_apart(tell_plain_range, document, level.lost.low, level.lost.high),
    )


def _told_apart(tell: Callable[[str, float, float], str], document: FrontierResult, low: float, high: float) -> str:
    return tell(document.metric, low, high) if low < high else NO_SPREAD


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
    points = at_most(100 * _sample_spread(accuracy.mean, count), 2)
    return (
        f"Limits are over {document.input.repeats} trainings on the same {count:,} test records; another sample of as "
        f"many would move an accuracy like that without noise by up to {points} points (19 times in 20)."
    )


def _sample_spread(accuracy: float, count: int) -> float:
    """By how much two samples of `count` records differ, 19 times in 20; two more of each kind: none is not never."""
    share = (accuracy * count + 2) / (count + 4)
    return 1.96 * sqrt(2 * share * (1 - share) / count)
