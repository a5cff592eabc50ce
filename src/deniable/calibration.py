"""Promise -> noise (or steps, or rate), always on the safe side.

`calibrate` finds the least noise, the most steps or the largest rate that keeps what was promised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, inf, log

from deniable.checks import MOST_STEPS, one_of
from deniable.loss.effort import QUESTION, limited, share_of
from deniable.loss.roots import crossing, falls_to
from deniable.loss.values import Upper
from deniable.mechanisms import Adjacency, Mechanism, TotalVariation
from deniable.promises import Noise, Promise
from deniable.scores import PrivacyLoss, privacy_loss

__all__ = ["MOST_NOISE", "Calibration", "calibrate", "first_safe"]


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found; `loss` answers every other score of the same release."""

    value: float
    mechanism: Mechanism
    target: Promise
    loss: PrivacyLoss
    error: float
    """How much more than necessary `value` may be: the promise may still hold this much closer to the edge."""

    @property
    def achieved(self) -> float:
        """The promised score of the calibrated release, at most `target.bound`, as the risk has shown."""
        score = self.target.score(self.loss)
        if isinstance(score, Upper):
            return Upper.between(score.least, min(score, self.target.bound))
        return min(score, self.target.bound)

    @property
    def method(self) -> str:
        return self.loss.method


def calibrate(
    mechanism_of: Callable[[float], Mechanism],
    target: Promise,
    adjacency: Adjacency | str | None = None,
    over: str = "noise",
) -> Calibration:
    """The least noise (`over="noise"`), most steps (`"steps"`) or largest rate (`"rate"`) that keeps the promise.

    `mechanism_of` turns that one number into a mechanism, for example
    ``lambda noise: Gaussian(noise).subsampled(0.01).composed(1000)``. The returned value keeps the promise including
    all numerical error; less noise by more than `error` would break it. Where batches are sampled, `adjacency` must be
    named.
    """
    searches = {"noise": _least_noise, "steps": _most_steps, "rate": _largest_rate}
    one_of("over", over, tuple(searches))
    hints: dict[float, float] = {}
    kept = lru_cache(_KEPT)(lambda value: replace(privacy_loss(mechanism_of(value), adjacency), hints=hints))
    risk = _Risk(target, kept)
    with limited(_EFFORT):
        value, error = (target.bound, 0.0) if isinstance(target, Noise) else searches[over](risk, target)
    return Calibration(value, mechanism_of(value), target, risk.loss(value), error)


@dataclass(frozen=True)
class _Risk:
    """What must not exceed the target's level, by the value that is sought."""

    target: Promise
    loss: Callable[[float], PrivacyLoss]

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
            return target.risk(self.loss(value).one_way(_FAR_BELOW * target.level, target.backwards))

    def guessed(self, value: float) -> float:
        """A guess, much cheaper still; inf where there is none to be had."""
        rough = self.loss(value).roughly()
        return inf if rough is None else self.target.risk(rough)


_KEPT = 4  # losses of the values looked at last; a grid may hold 60 MB
_EFFORT = 2 * QUESTION  # exponentials for one calibration
_SHARE = QUESTION // 5  # and for one look
_PRECISION = 5e-10
_SLACKS = 3 * _PRECISION, 1e-6, 1e-3, 0.03, 0.3, 0.7
_LEAST, MOST_NOISE = 1e-3, 1e9
_WITHIN = log(_LEAST), log(MOST_NOISE)
_FAR_BELOW = 1e-3


def _least_noise(risk: _Risk, target: Promise) -> tuple[float, float]:
    """By one direction of the pair, which nearly always is the worse one; by both where that does not keep the promise.

    The margin covers rounding, also that of scores which the risk stands for.
    """
    if risk.of_variation(_LEAST) <= target.level:
        return _LEAST, _LEAST
    noise = first_safe(risk.looked_at, target.level, _start(risk, target), _PRECISION) * (1 + _PRECISION)
    if noise < inf and risk(noise) > target.level:
        noise = first_safe(risk, target.level, (log(noise), 0.01), _PRECISION) * (1 + _PRECISION)
    if noise == inf:
        raise ValueError(f"no noise up to {MOST_NOISE:g} keeps the promise {target}")
    slack = _slack(lambda share: risk.breaks(noise * (1 - share)))
    return noise, slack * noise if noise > 2 * _LEAST else noise


def _slack(breaks: Callable[[float], bool]) -> float:
    """The least share, of a few, by which the value may be moved so that the promise is surely broken; 1 if none."""
    return next((share for share in _SLACKS if breaks(share)), 1.0)


def _start(risk: _Risk, target: Promise) -> tuple[float, float]:
    """Where to look for the least noise first (a logarithm), and how far the next look should be."""
    if risk.loss(1.0).roughly() is None:
        return 0.0, 0.25
    guess = falls_to(lambda x: risk.guessed(exp(x)), target.level, (0.0, 0.25), within=_WITHIN, close=0.02)
    return (guess, 0.05) if abs(guess) < inf else (0.0, 0.25)


def first_safe(risk: Callable[[float], float], level: float, start: tuple[float, float], precision: float) -> float:
    """The least noise, within a share `precision`, at which a risk that falls with it is at most `level`.

    Searched from `start` (a logarithm, and a step); at least 1e-3, and inf where `MOST_NOISE` is not enough.
    """
    found = falls_to(lambda x: risk(exp(x)), level, start, within=_WITHIN, precision=precision, unit=1.0)
    return exp(max(found, _WITHIN[0]))


def _most_steps(risk: _Risk, target: Promise) -> tuple[int, float]:
    if risk(1) > target.level:
        raise ValueError(f"even a single step breaks the promise {target}: add noise or lower the rate")
    safe, unsafe = 1, 2
    while risk(unsafe) <= target.level:
        safe, unsafe = unsafe, 2 * unsafe
        if unsafe > MOST_STEPS:
            return safe, float(safe)
    while unsafe - safe > 1:
        middle = (safe + unsafe) // 2
        safe, unsafe = (middle, unsafe) if risk(middle) <= target.level else (safe, middle)
    while not risk.breaks(unsafe) and unsafe < MOST_STEPS:
        unsafe += max(1, unsafe // 8)
    return safe, float(unsafe - 1 - safe)


def _largest_rate(risk: _Risk, target: Promise) -> tuple[float, float]:
    if risk(1.0) <= target.level:
        return 1.0, 0.0
    safe = 0.25
    while risk(safe) > target.level:
        safe /= 4
        if safe < 1e-15:
            raise ValueError(f"no sampling rate keeps the promise {target}: add noise or take fewer steps")
    # the search falls along 1 / rate
    start = -log(min(1.0, 4 * safe))
    inverse = crossing(lambda x: risk(exp(-x)), target.level, start, -log(safe), precision=_PRECISION, unit=1.0)
    rate = exp(-inverse) * (1 - _PRECISION)
    share = _slack(lambda share: risk.breaks(min(1.0, rate * (1 + share))))
    return rate, rate * share if share < 1 else 1 - rate  # nothing is known beyond
