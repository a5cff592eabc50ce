"""Random questions about a release, and what is wrong with their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, isnan, log, log1p, nextafter
from random import Random

import deniable as dn
from hunt.composed import Bracket
from hunt.sandwich import Sandwich
from hunt.trees import logarithmic
from hunt.truth import Truth as Exact

__all__ = ["Question", "random_question"]

Truth = Exact | Sandwich

_RELATIVE = 1e-12  # differences of this size are round-off, no finds
_NOTHING = 1e-260  # so are these: the least rates there are, times any number of steps


@dataclass(frozen=True)
class Question:
    """A method of the privacy loss (or `pair.`...) and its numbers."""

    name: str
    values: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.values))})"

    def ask(self, loss: dn.PrivacyLoss) -> float:
        place: object = loss
        *rooms, last = self.name.split(".")
        for room in rooms:
            place = place.reverse() if room == "reverse()" else getattr(place, room)  # type: ignore[attr-defined]
        return getattr(place, last)(*self.values)  # type: ignore[no-any-return]

    def judge(self, truth: Truth, value: float, error: float) -> str | None:
        """What the answer should have been, where it cannot be right."""
        if isnan(value) or isnan(error) or error < 0:
            return "a number, and an error >= 0"
        return _JUDGES[self.name](truth, self.values, value, error)


def random_question(draw: Random, truth: Truth) -> Question:
    """Mostly where the answer is neither 0 nor 1."""
    name = draw.choice(list(_JUDGES))
    values: dict[str, tuple[float, ...]] = {
        "advantage": (),
        "epsilon": (_small(draw),),
        "accuracy": (_share(draw),),
        "tpr": (_small(draw),),
        "ppv": (_small(draw), _share(draw)),
        "belief": (_small(draw), _share(draw)),
        "quantile": (draw.choice([_share(draw), 1 - _small(draw)]),),
    }
    return Question(name, values[name] if name in values else (_loss(draw, truth),))


def _small(draw: Random) -> float:
    choices = [1e-5, 0.01, logarithmic(draw, 1e-12, 0.5), logarithmic(draw, 1e-300, 1.0), draw.random(), 0.0, 1.0]
    return draw.choices(choices, [4, 3, 4, 1, 4, 0.3, 0.3])[0]


def _share(draw: Random) -> float:
    choices = [0.5, draw.random(), logarithmic(draw, 1e-9, 1), 1 - logarithmic(draw, 1e-9, 1), 0.0, 1.0]
    return draw.choices(choices, [5, 5, 2, 2, 0.2, 0.2])[0]


def _loss(draw: Random, truth: Truth) -> float:
    """Near the loss's own range, or of any size."""
    if draw.random() < 0.15:
        return draw.choice([-1, 1]) * logarithmic(draw, 1e-12, 1e5)
    if not truth.steps or truth.releases[0].escape == 1:
        return draw.uniform(-1, 1)
    _, mean, variance = truth.releases[draw.randrange(2)].cumulant(0.0)
    value = mean + draw.gauss(0.0, 2.5) * variance**0.5
    return float(f"{value:.3g}") if draw.random() < 0.5 else value


# --- judges: each returns what the answer should have been, or None ---

Judge = Callable[[Truth, tuple[float, ...], float, float], str | None]


def _outside(bracket: Bracket, value: float, error: float) -> str | None:
    """A value on the unsafe side, or with an error that does not cover the truth."""
    if value < bracket.low * (1 - _RELATIVE) - _NOTHING:
        return f"at least {bracket.low!r} ({bracket.by})"
    if value - error > bracket.high * (1 + _RELATIVE) + _NOTHING:
        return f"at most {bracket.high!r} is covered by value - error = {value - error!r} ({bracket.by})"
    return None


def _delta(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    return _outside(truth.delta(values[0]), value, error)


def _advantage(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    return _outside(truth.delta(0.0), value, error)


def _accuracy(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    (prior,) = values
    if prior in (0.0, 1.0):
        return None if value == 1 else "1"
    found = truth.delta(log1p(-prior) - log(prior))
    return _outside(Bracket(1 - prior + prior * found.low, 1 - prior + prior * found.high, found.by), value, error)


def _exceedance(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    return _outside(truth.exceedance(values[0]), value, error)


def _pair(method: str, backward: bool) -> Judge:
    def judge(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
        return _outside(getattr(truth, method)(values[0], backward), value, error)

    return judge


def _crossing(found: Callable[[float], Bracket], level: float, value: float, error: float) -> str | None:
    """`value` is to be the least t with found(t) <= level; `found` falls."""
    if value < inf:
        right = found(max(value, -1e18) + _RELATIVE * min(abs(value), 1e18) + 1e-300)
        if right.low > level * (1 + 1e-9) + 1e-300:
            return f"more: {right.low!r} > {level!r} there ({right.by})"
    if value == -inf:
        return None
    least = value - error if value < inf else 1e300
    left = found(least - _RELATIVE * abs(least) - 1e-300) if least < 1e300 else found(1e18)
    if left.high < level * (1 - 1e-9):
        return f"less: at value - error = {least!r} only {left.high!r} < {level!r} ({left.by})"
    return None


def _epsilon(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    (delta,) = values
    if value < 0:
        return "at least 0"
    if value == 0:
        found = truth.delta(0.0)
        return f"above 0: advantage is {found.low!r}" if found.low > delta * (1 + 1e-9) + 1e-300 else None
    if delta == 0:
        return _largest(truth, value, error)
    if value - error <= 0:
        return _safe(truth.delta, delta, value)
    return _crossing(truth.delta, delta, value, error)


def _safe(found: Callable[[float], Bracket], level: float, value: float) -> str | None:
    right = found(value * (1 + _RELATIVE) + 1e-300)
    return f"more: {right.low!r} > {level!r} there ({right.by})" if right.low > level * (1 + 1e-9) + 1e-300 else None


def _largest(truth: Truth, value: float, error: float) -> str | None:
    found = truth.largest
    if value < found.low * (1 - _RELATIVE):
        return f"the largest loss, at least {found.low!r}"
    if value - error > found.high * (1 + 1e-9) and value < inf:
        return f"the largest loss, at most {found.high!r}"
    return None


def _quantile(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    failure = 1 - values[0]
    if failure == 0:
        return _largest(truth, value, error)
    return _crossing(truth.exceedance, failure, value, error)


def _belief(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    failure, prior = values
    if prior in (0.0, 1.0):
        return None if value == prior else repr(prior)
    if not 0 <= value <= 1 or failure == 0:
        return None if 0 <= value <= 1 else "a probability"
    start = log(prior) - log1p(-prior)
    above = min(1.0, nextafter(value, 2.0) * (1 + 1e-14))
    if above < 1:
        right = truth.exceedance(_logit(above) - start)
        if right.low > failure * (1 + 1e-9) + 1e-300:
            return f"more: exceeded with probability {right.low!r} ({right.by})"
    below = (value - error) * (1 - 1e-14)
    if below > 0:
        left = truth.exceedance(_logit(min(below, nextafter(1.0, 0.0))) - start)
        if left.high < failure * (1 - 1e-9):
            return (
                f"less: value - error = {value - error!r} is exceeded with probability {left.high!r} only ({left.by})"
            )
    return None


def _logit(p: float) -> float:
    return log(p) - log1p(-p)


def tpr_bracket(truth: Truth, fpr: float) -> Bracket:
    """Attacks below, weak duality above."""
    low, high, by = fpr, 1.0, "guessing"
    for backward in (False, True)[: 1 + truth.lopsided]:
        threshold, attack = _best_attack(truth, fpr, backward)
        if attack.low > low:
            low, by = attack.low, attack.by
        for k in {threshold, 0.0}:
            if k + log(fpr) < 1:
                high = min(high, truth.delta(k).high + exp(k) * fpr if k > -inf else 1.0)
    return Bracket(low, min(1.0, high), by)


def _best_attack(truth: Truth, fpr: float, backward: bool) -> tuple[float, Bracket]:
    """Accuse where L > t: the threshold, and the true positive rate between two neighbouring thresholds."""
    if not truth.steps:
        return 0.0, Bracket(fpr, fpr, "guessing")
    null_law = truth.nulls[backward]
    if not null_law.finite:
        return -inf, Bracket(1.0, 1.0, "all is told")
    if null_law.cumulant(0.0)[0] <= log(fpr):
        return -inf, Bracket(1.0 - 1e-12 if truth.releases[not backward].escape < 1 else 0.0, 1.0, "accuse everybody")
    found, step = null_law.about(fpr)
    high = low = found
    for _ in range(6):
        if truth.null_tail(high, backward).high <= fpr:
            break
        high, step = high + step, 2 * step
    low = high - 2 * step
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (low, middle) if truth.null_tail(middle, backward).high <= fpr else (middle, high)
    null, null_more = truth.null_tail(high, backward).high, truth.null_tail(low, backward).high
    rate, rate_more = truth.tail(high, backward).low, truth.tail(low, backward).low
    if null > fpr:
        return high, Bracket(0.0, 1.0, "nothing")
    share = (fpr - null) / (null_more - null) if null_more > null else 0.0
    return high, Bracket(rate + max(0.0, min(share, 1.0)) * max(rate_more - rate, 0.0), 1.0, "threshold attack")


def _tpr(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    (fpr,) = values
    if fpr == 1:
        return None if value == 1 else "1"
    if fpr == 0:
        escape = max(release.escape for release in truth.releases) if truth.steps else 0.0
        if isinstance(truth, Sandwich):
            return _outside(Bracket(escape * (1 - 1e-9), 1.0, "escape"), value, error)
        return _outside(Bracket(escape * (1 - 1e-9), escape * (1 + 1e-9), "escape"), value, error)
    return _outside(tpr_bracket(truth, fpr), value, error)


def _ppv(truth: Truth, values: tuple[float, ...], value: float, error: float) -> str | None:
    fpr, prior = values
    if not 0 <= value <= 1:
        return "a probability"
    if fpr in (0.0, 1.0) or prior in (0.0, 1.0):
        return None
    found = tpr_bracket(truth, fpr)
    ends = [prior * rate / (prior * rate + (1 - prior) * fpr) for rate in (found.low, found.high)]
    return _outside(Bracket(ends[0], ends[1], found.by), value, error)


_JUDGES: dict[str, Judge] = {
    "delta": _delta,
    "epsilon": _epsilon,
    "advantage": _advantage,
    "accuracy": _accuracy,
    "tpr": _tpr,
    "ppv": _ppv,
    "belief": _belief,
    "exceedance": _exceedance,
    "quantile": _quantile,
    "pair.tail": _pair("tail", False),
    "pair.null_tail": _pair("null_tail", False),
    "pair.hockey_stick": _pair("stick", False),
    "pair.reverse().tail": _pair("tail", True),
    "pair.reverse().null_tail": _pair("null_tail", True),
    "pair.reverse().hockey_stick": _pair("stick", True),
}
