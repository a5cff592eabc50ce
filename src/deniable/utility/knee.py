"""Where the frontier bends: sentences that are made of the figures and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deniable.formatting import as_given, percent_as_given
from deniable.promises import SCORES
from deniable.results.frontier_result import LOWER_IS_BETTER, FrontierLevel, Knee, Repeated
from deniable.results.shared import Ends

__all__ = [
    "KEPT_SHARE",
    "NO_SPREAD",
    "find_knee",
    "name_bound",
    "short_bound",
    "tell_measure",
    "tell_range",
    "tell_value",
]

KEPT_SHARE = 0.9
"""Of what the model without noise gains over the answer without a model: a promise is cheap where so much is kept."""
NO_SPREAD = "no spread seen"
"""In place of limits that are one number: trainings that came out alike do not tell how others would."""
_NAMES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "AUC"}


def find_knee(
    promise: str,
    metric: str,
    levels: Sequence[FrontierLevel],
    none: FrontierLevel,
    *,
    without_model: float,
    answer: str,
) -> Knee:
    """The weakest useless promise, the strictest cheap one, and both in words; `levels` from the strictest on.

    A promise is useless where the limits of its mean reach the answer without a model. It is cheap where it and every
    weaker one keep 90 % of the gain, by their means.
    """
    words = _Words(promise, metric, levels, none, without_model, answer)
    useless = max((place for place, level in enumerate(levels) if not words.beats(level)), default=None)
    cheap = words.first_cheap()
    return Knee(
        useless_up_to=None if useless is None else levels[useless].bound,
        cheap_from=None if cheap is None else levels[cheap].bound,
        sentences=tuple(words.sentences(useless, cheap)),
    )


@dataclass(frozen=True)
class _Words:
    _promise: str
    _metric: str
    _levels: Sequence[FrontierLevel]
    _none: FrontierLevel
    _base: float
    """The measure of the answer without a model."""
    _answer: str

    @property
    def _sign(self) -> int:
        return -1 if self._metric in LOWER_IS_BETTER else 1

    def _of(self, level: FrontierLevel) -> Repeated:
        found: Repeated = getattr(level.quality, self._metric)
        return found

    def beats(self, level: FrontierLevel) -> bool:
        """Whether the limits lie on the good side of the answer without a model."""
        found = self._of(level)
        return found.low > self._base if self._sign > 0 else found.high < self._base

    def _gain(self, level: FrontierLevel) -> float:
        return self._sign * (self._of(level).mean - self._base)

    def first_cheap(self) -> int | None:
        """The strictest promise from which on every one keeps most of the gain."""
        if not self.beats(self._none):
            return None
        wanted = KEPT_SHARE * self._gain(self._none)
        place = len(self._levels)
        while place and self._gain(self._levels[place - 1]) >= wanted and self.beats(self._levels[place - 1]):
            place -= 1
        return place if place < len(self._levels) else None

    def sentences(self, useless: int | None, cheap: int | None) -> Iterator[str]:
        """What a person should know."""
        if not self.beats(self._none):
            yield (
                f"Even without noise the model is not shown to be better than {self._guess()} "
                f"({self._told(self._none)} against {self._value(self._base)}): there is nothing to trade."
            )
            return
        yield self._tell_useless(useless)
        if useless != len(self._levels) - 1:
            yield self._tell_cheap(cheap)

    def _guess(self) -> str:
        return (
            f"always answering {self._answer!r}"
            if self._sign > 0 or self._metric == "explained"
            else (f"always answering the mean, {self._answer}")
        )

    def _tell_useless(self, useless: int | None) -> str:
        if useless is None:
            strictest = self._levels[0]
            return (
                f"Even at the strictest promise, {self._name(strictest)}, the model is better than {self._guess()}: "
                f"{self._told(strictest)} against {self._value(self._base)}."
            )
        if useless == len(self._levels) - 1:
            return (
                f"At no promise that was tried is the model shown to be better than {self._guess()} "
                f"({self._value(self._base)}); without noise it reaches {self._told(self._none)}."
            )
        return (
            f"At {self._name(self._levels[useless])} and stricter promises the model is not shown to be better than "
            f"{self._guess()} ({self._told(self._levels[useless])} against {self._value(self._base)})."
        )

    def _tell_cheap(self, cheap: int | None) -> str:
        if cheap is None:
            weakest = self._levels[-1]
            shown = "shown to be cheap" if self._may_be_cheap(weakest) else "cheap"
            return f"No promise that was tried is {shown}: even at {self._name(weakest)} it {self._loses(weakest)}."
        costliest = min(self._levels[cheap:], key=self._gain)
        bound = "or less" if self._lost(costliest) >= 0 else "or more"
        said = f"From {self._name(self._levels[cheap])} on it {self._loses(costliest)} {bound}"
        if cheap:
            before = self._levels[cheap - 1]
            said += f"; at {self._name(before)} it {self._loses(before)}"
        return f"{said}. Without noise it reaches {self._told(self._none)}."

    def _name(self, level: FrontierLevel) -> str:
        return name_bound(self._promise, level.bound)

    def _told(self, level: FrontierLevel) -> str:
        return tell_measure(self._metric, self._of(level))

    def _value(self, value: float) -> str:
        return tell_value(self._metric, value)

    def _may_be_cheap(self, level: FrontierLevel) -> bool:
        """Whether the limits of its loss leave that open."""
        return level.lost is not None and level.lost.low <= (1 - KEPT_SHARE) * self._gain(self._none)

    def _lost(self, level: FrontierLevel) -> float:
        return self._sign * (self._of(self._none).mean - self._of(level).mean)

    def _loses(self, level: FrontierLevel) -> str:
        """The loss against no promise, or the gain, with its limits, and whether it may be none."""
        mean, ends = self._lost(level), level.lost
        if mean < 0 and ends is not None:
            ends = Ends(low=-ends.high, high=-ends.low)
        open_end = ", perhaps nothing," if mean and ends is not None and ends.low <= 0 else ""
        return f"{'loses' if mean >= 0 else 'gains'}{open_end} {self._points(abs(mean), ends)}"

    def _points(self, mean: float, ends: Ends | None) -> str:
        if self._metric in _NAMES:
            scale, unit = (100, " points") if self._metric != "auc" else (1, " of the AUC")
            digits = 1 if self._metric != "auc" else 3
        else:
            scale, unit, digits = 1, " (in the label's unit)" if self._sign < 0 else " of the explained share", 3
        text = f"{scale * mean:.{digits}f}{unit}"
        return text if ends is None else f"{text} ({scale * ends.low:.{digits}f} to {scale * ends.high:.{digits}f})"


def name_bound(promise: str, bound: float | None) -> str:
    """A promise's bound as people read it: 70 % certainty, an advantage of 10 %, epsilon 1."""
    share = short_bound(promise, bound)
    if bound is None:
        return "no promise"
    named = {"belief": f"{share} certainty", "epsilon": f"epsilon {share}"}
    return named.get(promise, f"{_KINDS.get(promise, promise)} {share}")


def short_bound(promise: str, bound: float | None) -> str:
    """The bound alone: 70 %, or 1 of an epsilon."""
    if bound is None:
        return "no promise"
    return percent_as_given(bound) if SCORES[promise].field.kind == "share" else as_given(bound)


_KINDS = {"advantage": "advantage", "accuracy": "right guesses", "tpr": "TPR", "ppv": "PPV", "success": "success"}


def tell_value(metric: str, value: float) -> str:
    """One figure: shares in per cent, areas and errors as numbers."""
    return f"{100 * value:.1f} %" if metric in ("accuracy", "balanced_accuracy", "explained") else f"{value:.3g}"


def tell_range(metric: str, low: float, high: float) -> str:
    """Two ends in one unit."""
    if metric in ("accuracy", "balanced_accuracy", "explained"):
        return f"{100 * low:.1f} to {100 * high:.1f} %"
    return f"{low:.3g} to {high:.3g}"


def tell_measure(metric: str, found: Repeated) -> str:
    """The mean with its limits; without any, where trainings came out alike and show no spread."""
    limits = tell_range(metric, found.low, found.high) if found.low < found.high else NO_SPREAD
    return f"{tell_value(metric, found.mean)} ({limits})"
