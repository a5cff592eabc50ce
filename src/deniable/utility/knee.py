"""Where the frontier bends: sentences that are made of the figures and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deniable.formatting import as_given, percent_as_given
from deniable.promises import SCORES
from deniable.results.frontier_result import LOWER_IS_BETTER, FrontierLevel, Knee, Repeated
from deniable.results.shared import Ends

KEPT_SHARE = 0.9
"""Of what the model without noise gains over the answer without a model: a promise is cheap where so much is kept."""
NO_SPREAD = "no spread seen"
"""In place of limits that are one number: trainings that came out alike do not tell how others would."""
SHARES = ("accuracy", "balanced_accuracy", "explained")
"""The measures that are told in per cent."""
WEAK = ("weak", "hardly any")
"""Strengths of protection that must be named beside a promise that is called cheap."""
_LARGE = 1e9


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
        """Whether it is shown to be better than the answer without a model."""
        return beats(self._metric, self._of(level), self._base)

    def _gain(self, level: FrontierLevel) -> float:
        return self._sign * (self._of(level).mean - self._base)

    def first_cheap(self) -> int | None:
        """The strictest promise from which on every one keeps most of the gain."""
        if not self.beats(self._none):
            return None
        place = len(self._levels)
        while place and self._keeps(self._levels[place - 1]):
            place -= 1
        return place if place < len(self._levels) else None

    def _keeps(self, level: FrontierLevel) -> bool:
        """Whether it keeps most of the gain, by its mean, and is useful."""
        return self._gain(level) >= KEPT_SHARE * self._gain(self._none) and self.beats(level)

    def sentences(self, useless: int | None, cheap: int | None) -> Iterator[str]:
        """What a person should know."""
        if not self.beats(self._none):
            yield self._tell_no_gain()
            return
        yield self._tell_useless(useless)
        if any(map(self.beats, self._levels)):
            yield self._tell_cheap(cheap)
        if cheap is not None and self._levels[cheap].strength in WEAK:
            yield self._tell_weak(self._levels[cheap])

    def _tell_weak(self, cheap: FrontierLevel) -> str:
        """A promise that costs little and protects little, beside the weakest one that protects more."""
        said = f"But {self._name(cheap)} gives {cheap.strength} protection"
        more = next((level for level in reversed(self._levels) if level.strength not in WEAK), None)
        if more is None:
            return f"{said}, and no promise that was tried gives more."
        return f"{said}; the weakest promise that gives more, {self._name(more)}, {self._loses(more)}."

    def _tell_no_gain(self) -> str:
        """Without noise the model is not shown to gain; a promise may be all the same, where trainings scatter."""
        against = f"{self._guess()} ({self._told(self._none)} against {self._value(self._base)})"
        useful = next(filter(self.beats, self._levels), None)
        if useful is not None:
            return (
                f"Without noise the model is not shown to be better than {against}, though at {self._name(useful)} it "
                f"is ({self._told(useful)}): what a promise costs is not known. Try other settings, or more repeats."
            )
        said = f"Even without noise the model is not shown to be better than {against}: "
        if self._gain(self._none) > 0:
            return f"{said}whether there is anything to trade is open. More repeats, or more records, may tell."
        return f"{said}there is nothing to trade."

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
        stricter = next(filter(self.beats, self._levels[:useless]), None)
        if stricter is not None:
            return (
                f"At {self._name(self._levels[useless])} the model is not shown to be better than {self._guess()} "
                f"({self._told(self._levels[useless])} against {self._value(self._base)}), though at the stricter "
                f"{self._name(stricter)} it is ({self._told(stricter)}): trainings scatter."
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
        reached = f"Without noise it reaches {self._told(self._none)}."
        if cheap is None:
            return f"{self._tell_not_cheap()} {reached}"
        costliest = min(self._levels[cheap:], key=self._gain)
        bound = " or less" if self._lost(costliest) >= 0 else " or more"
        said = f"From {self._name(self._levels[cheap])} on it {self._loses(costliest, bound)}"
        if cheap:
            before = self._levels[cheap - 1]
            said += f"; at {self._name(before)} it {self._loses(before)}"
        return f"{said}. {reached}"

    def _tell_not_cheap(self) -> str:
        best, kept = max(self._levels, key=self._gain), next(filter(self._keeps, self._levels), None)
        if kept is not None:
            return (
                f"No promise is cheap together with all weaker ones: at {self._name(kept)} it {self._loses(kept)}, but "
                f"{self._tell_costly(self._levels.index(kept))}."
            )
        shown = "shown to be cheap" if any(map(self._may_be_cheap, self._levels)) else "cheap"
        return f"No promise that was tried is {shown}: even at {self._name(best)} it {self._loses(best)}."

    def _tell_costly(self, place: int) -> str:
        """The costliest of the promises that are weaker than the one at this place."""
        costly = min(self._levels[place + 1 :], key=self._gain)
        return f"at the weaker {self._name(costly)} it {self._loses(costly)}"

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

    def _loses(self, level: FrontierLevel, bound: str = "") -> str:
        """The loss against no promise, or the gain, with its limits, and whether it may be none."""
        mean, ends = self._lost(level), level.lost
        if mean < 0 and ends is not None:
            ends = Ends(low=-ends.high, high=-ends.low)
        said = f"{'loses' if mean >= 0 else 'gains'} {tell_difference(self._metric, abs(mean))}{bound}"
        if ends is None:
            return said
        open_end = ", perhaps nothing" if mean and ends.low <= 0 else ""
        return f"{said} ({tell_plain_range(self._metric, ends.low, ends.high)}{open_end})"


def beats(metric: str, found: Repeated, base: float) -> bool:
    """Whether the limits lie on the good side of `base`, the answer without a model."""
    return found.high < base if metric in LOWER_IS_BETTER else found.low > base


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
    return f"{_number(metric, value)} %" if metric in SHARES else _number(metric, value)


def tell_range(metric: str, low: float, high: float) -> str:
    """Two ends in one unit."""
    return tell_plain_range(metric, low, high) + (" %" if metric in SHARES else "")


def tell_plain_range(metric: str, low: float, high: float) -> str:
    """Two ends without their unit: of shares in points."""
    return f"{_number(metric, low)} to {_number(metric, high)}"


def tell_difference(metric: str, value: float) -> str:
    """What is lost or gained: shares in points, areas and errors as numbers."""
    unit = " points" if metric in SHARES else (" of the AUC" if metric == "auc" else " (in the label's unit)")
    return f"{_number(metric, value)}{unit}"


def _number(metric: str, value: float) -> str:
    """A tenth of a per cent, or three digits; whole numbers are whole, and nothing is never negative."""
    if metric in SHARES:
        text = f"{100 * value:.1f}"
    elif 100 <= abs(value) < _LARGE:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def tell_measure(metric: str, found: Repeated) -> str:
    """The mean with its limits; without any, where trainings came out alike and show no spread."""
    limits = tell_range(metric, found.low, found.high) if found.low < found.high else NO_SPREAD
    return f"{tell_value(metric, found.mean)} ({limits})"
