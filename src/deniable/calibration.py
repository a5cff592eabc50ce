"""Promise -> noise (or steps, or rate), always on the safe side.

`calibrate` finds the least noise, the most steps or the largest rate that keeps what was promised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from math import exp, inf, log

from deniable.checks import MOST_STEPS, family_of_releases, one_of
from deniable.effort import QUESTION, is_spent, limit_effort, share_of
from deniable.mechanisms import Adjacency, Mechanism, TotalVariation
from deniable.promises import Noise, Promise, check_promise
from deniable.scores import PrivacyLoss, privacy_loss
from deniable.search import falls_to
from deniable.upper import Upper

__all__ = ["MOST_NOISE", "Calibration", "calibrate", "first_safe"]


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found: a `value` that keeps the promise `target`, the `mechanism` with it, and its `loss`, which
    answers every other score.

    Examples:
        >>> import deniable as dn
        >>> found = dn.calibrate(dn.Gaussian, dn.Advantage(0.1))
        >>> round(found.value, 3), round(found.achieved, 4), round(found.loss.epsilon(1e-5), 3)
        (3.979, 0.1, 0.932)
    """

    value: float
    mechanism: Mechanism
    target: Promise
    loss: PrivacyLoss
    _find_error: Callable[[], float] = field(repr=False, compare=False)

    @cached_property
    def error(self) -> float:
        """How much more than necessary `value` may be: the promise may still hold this much closer to the edge.

        Found when it is asked for, from a point at which the promise is surely broken.
        """
        with limit_effort(_EFFORT):
            return self._find_error()

    @property
    def achieved(self) -> float:
        """The promised score of the calibrated release, at most `target.bound`, as the risk has shown."""
        score = self.target.score(self.loss)
        if isinstance(score, Upper):
            return Upper.between(score.least, min(score, self.target.bound))
        return min(score, self.target.bound)

    @property
    def method(self) -> str:
        """How the loss is computed."""
        return self.loss.method


def calibrate(
    mechanism_of: Callable[[float], Mechanism],
    target: Promise,
    adjacency: Adjacency | str | None = None,
    over: str = "noise",
) -> Calibration:
    """The least noise (`over="noise"`), most steps (`"steps"`) or largest rate (`"rate"`) that keeps the promise.

    Args:
        mechanism_of: Turns that one number into a mechanism, for example
            ``lambda noise: Gaussian(noise).subsampled(0.01).composed(1000)``.
        target: The promise, such as `Belief(0.75, delta=1e-5)`.
        adjacency: What neighbours are; to be named where batches are sampled.
        over: What is sought: noise, steps or rate.

    Returns:
        The value, which keeps the promise including all numerical error (less noise by more than its `error` would
        break it), with the mechanism and its privacy loss.

    Examples:
        >>> import deniable as dn
        >>> def train(noise):
        ...     return dn.Gaussian(noise).subsampled(0.01).composed(1000)
        >>> round(dn.calibrate(train, dn.Belief(0.75, delta=1e-5), "add-remove").value, 4)
        1.4966
    """
    searches = {"noise": _least_noise, "steps": _most_steps, "rate": _largest_rate}
    one_of("over", over, tuple(searches))
    family_of_releases("mechanism_of", mechanism_of)
    check_promise(target)
    hints: dict[float, float] = {}
    kept = lru_cache(_KEPT)(lambda value: _HintedLoss(privacy_loss(mechanism_of(value), adjacency).pair, hints))
    risk = _Risk(target, kept)
    with limit_effort(_EFFORT):
        value, find_error = (target.bound, lambda: 0.0) if isinstance(target, Noise) else searches[over](risk)
    return Calibration(value, mechanism_of(value), target, PrivacyLoss(risk.loss(value).pair), find_error)


@dataclass(frozen=True)
class _Risk:
    """What must not exceed the target's level, by the value that is sought."""

    target: Promise
    loss: Callable[[float], _HintedLoss]

    @property
    def level(self) -> float:
        return self.target.level

    def __call__(self, value: float) -> float:
        with share_of(_SHARE):
            return self.target.risk(self.loss(value))

    def of_variation(self, value: float) -> float:
        """An upper bound from the steps' total variations alone, which rare sampling keeps small without any noise."""
        most = self.loss(value).pair.most_variation
        return self.target.risk(privacy_loss(TotalVariation(most)))

    def breaks(self, value: float) -> bool:
        """Whether the promise is surely broken, however the numerical errors fell."""
        with share_of(_SHARE):
            return self.target.least_risk(self.loss(value)) > self.target.level

    def looked_at(self, value: float) -> float:
        """Less than half as dear: one direction only, and a bound where that is far below the level."""
        target = self.target
        with share_of(_SHARE):
            return target.risk(_quick_loss(self.loss(value), _FAR_BELOW * target.level, target.backwards))

    def guess(self, value: float) -> float:
        """A guess, much cheaper still; inf where there is none to be had."""
        rough = rough_loss(self.loss(value))
        return inf if rough is None else self.target.risk(rough)


@dataclass
class _HintedLoss(PrivacyLoss):
    """A loss whose thresholds are first looked for where a similar release had them."""

    hints: dict[float, float]

    @property
    def _hints(self) -> dict[float, float]:
        return self.hints


@dataclass
class _QuickLoss(_HintedLoss):
    """A loss to look around with: one direction only, and nothing exact about what is negligible."""

    negligible: float
    _both_ways = False

    @property
    def _negligible(self) -> float:
        return self.negligible


def _quick_loss(loss: _HintedLoss, negligible: float, back: bool) -> PrivacyLoss:
    return _QuickLoss(loss.pair.reverse(), {}, negligible) if back else _QuickLoss(loss.pair, loss.hints, negligible)


def rough_loss(loss: PrivacyLoss) -> PrivacyLoss | None:
    """About the same loss in one direction, much quicker; None where there is no such thing."""
    from deniable.loss import rough_pair  # noqa: PLC0415 (half of the time of `import deniable`)

    rough = rough_pair(loss.pair)
    return None if rough is None else _QuickLoss(rough, {}, 0.0)


_KEPT = 4  # losses of the values looked at last; a grid may hold 60 MB
_EFFORT = QUESTION  # exponentials for one calibration
_SHARE = QUESTION // 3  # and for one look
_PRECISION = 5e-10
_CLOSE = 1e-10  # of logarithms: a risk about so close to its level is taken for the level
_SLACKS = 3 * _PRECISION, 1e-6, 1e-3, 0.03, 0.3, 0.7
_LEAST, MOST_NOISE = 1e-3, 1e9
_LEAST_RATE = 1e-15
_FAR_BELOW = 1e-3
_FIRST_STEP, _LONGEST_STEP = 0.25, 0.5  # of logarithms, where nothing tells how far to go, and at most
_SLIGHT = 1e-3


@dataclass(frozen=True)
class _Axis:
    """What is sought as a function of x, along which the risk falls."""

    value: Callable[[float], float]
    within: tuple[float, float]
    first: float
    """Where to begin where nothing else is known."""

    def along(self, risk: Callable[[float], float]) -> Callable[[float], float]:
        """The risk as a function of x, asked once for each value: many x may stand for the same number of steps."""
        at = cache(risk)
        return lambda x: at(self.value(x))


_NOISE = _Axis(exp, (log(_LEAST), log(MOST_NOISE)), 0.0)
_RATE = _Axis(lambda x: exp(-x), (0.0, -log(_LEAST_RATE)), log(4))
_STEPS = _Axis(lambda x: max(1, round(exp(-x))), (-log(MOST_STEPS), 0.0), -log(1000))
_Found = tuple[float, Callable[[], float]]


def _least_noise(risk: _Risk) -> _Found:
    if risk.of_variation(_LEAST) <= risk.level:
        return _LEAST, lambda: _LEAST
    x = _safe_side(risk, _NOISE)
    if x == inf:
        raise ValueError(f"no noise up to {MOST_NOISE:g} keeps the promise {risk.target}")
    noise = exp(max(x, _NOISE.within[0]))
    if noise <= 2 * _LEAST:
        return noise, lambda: noise
    return noise, lambda: noise * _slack(lambda share: risk.breaks(noise * (1 - share)))


def _largest_rate(risk: _Risk) -> _Found:
    x = _safe_side(risk, _RATE)
    if x == inf:
        raise ValueError(f"no sampling rate keeps the promise {risk.target}: add noise or take fewer steps")
    rate = exp(-max(x, 0.0))
    if rate == 1:
        return 1.0, lambda: 0.0
    return rate, lambda: _rate_too_small(risk, rate)


def _rate_too_small(risk: _Risk, rate: float) -> float:
    """By how much the rate may be too small; where no larger one surely breaks the promise, nothing is known beyond."""
    share = _slack(lambda share: risk.breaks(min(1.0, rate * (1 + share))))
    return rate * share if share < 1 else 1 - rate


def _most_steps(risk: _Risk) -> _Found:
    if risk(1) > risk.level:
        raise ValueError(f"even a single step breaks the promise {risk.target}: add noise or lower the rate")
    x = _near(risk, _STEPS)[0]
    safe, unsafe = _whole_bracket(risk, _STEPS.value(min(max(x, _STEPS.within[0]), 0.0)))
    while unsafe - safe > _whole_width(safe):
        middle = (safe + unsafe) // 2
        safe, unsafe = (middle, unsafe) if risk(middle) <= risk.level else (safe, middle)
    return safe, lambda: _steps_too_few(risk, safe)


def _whole_bracket(risk: _Risk, near: float) -> tuple[int, int]:
    """Steps that keep the promise and more that do not, one apart if `near` is where the risk crosses its level."""
    safe, unsafe = 1, int(MOST_STEPS) + 1
    count = max(int(near), safe + 1)
    away = _whole_width(count)
    while safe < count < unsafe:
        if risk(count) <= risk.level:
            safe, count = count, count + away
        else:
            unsafe, count = count, count - away
        away *= 2
    return safe, unsafe


def _whole_width(steps: int) -> int:
    """How near the most steps are to be found: to one, or once the effort is spent, to a thousandth."""
    return max(1, steps // 1000) if is_spent() else 1


def _steps_too_few(risk: _Risk, safe: int) -> float:
    """By how much the steps may be too few, if the numerical errors all fell on one side."""
    if safe >= MOST_STEPS:  # nobody knows how many more would do
        return float(safe)
    broken = safe + 1
    while broken <= MOST_STEPS and not risk.breaks(broken):
        broken += max(1, broken // 8)
    return float(min(broken, MOST_STEPS + 1) - 1 - safe)


def _slack(breaks: Callable[[float], bool]) -> float:
    """The least share, of a few, by which the value may be moved so that the promise is surely broken; 1 if none."""
    return next((share for share in _SLACKS if breaks(share)), 1.0)


def _safe_side(risk: _Risk, axis: _Axis) -> float:
    """The least x, within a share `_PRECISION`, at which the promise is kept in both directions; +-inf outside.

    The margin covers rounding, also that of scores which the risk stands for.
    """
    x, slope = _near(risk, axis)
    if x == inf:
        return x
    x = max(x, axis.within[0])
    x = x + _PRECISION if x > axis.within[0] else x
    both = axis.along(risk)
    if both(x) <= risk.level:
        return x
    step = min(max(_distance(both(x), risk.level, slope), 2 * _PRECISION), _FIRST_STEP)
    return falls_to(both, risk.level, (x, step), within=axis.within, precision=_PRECISION, unit=1.0) + _PRECISION


def _near(risk: _Risk, axis: _Axis) -> tuple[float, float]:
    """x at which the risk in one direction, nearly always the worse one, is nearly the level; and about its slope."""
    looked_at = axis.along(risk.looked_at)
    guess, slope = _guess(risk, axis)
    step = min(max(_distance(looked_at(guess), risk.level, slope), _PRECISION), _LONGEST_STEP)
    close = min(max(0.5 * _PRECISION * abs(slope), _CLOSE), 10 * _CLOSE)
    x = falls_to(looked_at, risk.level, (guess, step), within=axis.within, precision=_PRECISION, unit=1.0, close=close)
    return x, slope


def _distance(risk: float, level: float, slope: float) -> float:
    """How far to go along x to cross the level, and a little more."""
    return _FIRST_STEP if risk <= 0 or slope == 0 else 1.2 * abs(log(risk / level) / slope)


def _guess(risk: _Risk, axis: _Axis) -> tuple[float, float]:
    """Where to look first, and the slope of the risk's logarithm there (0 where nothing is known)."""
    guessed = axis.along(risk.guess)
    if guessed(axis.first) == inf:
        return axis.first, 0.0
    x = falls_to(guessed, risk.level, (axis.first, _FIRST_STEP), within=axis.within, close=_SLIGHT)
    if abs(x) == inf or not 0 < guessed(x) < inf or not 0 < guessed(x + _SLIGHT) < inf:
        return axis.first, 0.0
    return x, log(guessed(x + _SLIGHT) / guessed(x)) / _SLIGHT


def first_safe(risk: Callable[[float], float], level: float, start: tuple[float, float], precision: float) -> float:
    """The least noise, within a share `precision`, at which a risk that falls with it is at most `level`.

    Searched from `start` (a logarithm, and a step); at least 1e-3, and inf where `MOST_NOISE` is not enough.
    """
    found = falls_to(lambda x: risk(exp(x)), level, start, within=_NOISE.within, precision=precision, unit=1.0)
    return exp(max(found, _NOISE.within[0]))
