"""What scores owe each other, whatever the truth is: a release that tells less never has a higher score."""

from __future__ import annotations

from math import exp, inf, isfinite
from random import Random

import deniable as dn
from deniable.loss.compose.contour import Contour
from deniable.loss.compose.grid import Grid
from hunt.find import Find
from hunt.questions import Question
from hunt.trees import text

__all__ = ["compare_releases", "compare_routes", "compare_scores", "less_telling"]

_GRID_POINTS = 2**18
_MONOTONE = ("delta", "epsilon", "advantage", "accuracy", "tpr", "ppv")  # the tails of a loss need not be


def less_telling(draw: Random, mechanism: dn.Mechanism) -> dn.Mechanism | None:  # noqa: PLR0911 (a table of kinds)
    """The same with fewer runs, a smaller rate, more noise, or its parts in another order."""
    match mechanism:
        case dn.Composed(parts):
            if len(parts) > 1 and draw.random() < 0.3:
                return dn.Composed(parts[::-1])
            i = draw.randrange(len(parts))
            part, runs = parts[i]
            if draw.random() < 0.5 and runs > 0:
                return dn.Composed((*parts[:i], (part, draw.choice([runs - 1, runs // 2])), *parts[i + 1 :]))
            less = less_telling(draw, part)
            return None if less is None else dn.Composed((*parts[:i], (less, runs), *parts[i + 1 :]))
        case dn.Sampled(inner, sampling):
            less = less_telling(draw, inner)
            return None if less is None else less.subsampled(sampling)
        case dn.Subsampled(inner, rate):
            return inner.subsampled(rate * draw.choice([0.5, 0.999, 1e-3]))
        case dn.Gaussian(noise):
            return dn.Gaussian(noise * draw.choice([1.001, 2.0]))
        case dn.Laplace(scale):
            return dn.Laplace(scale * draw.choice([1.001, 2.0]))
        case dn.GaussianDP(mu):
            return dn.GaussianDP(mu * draw.choice([0.999, 0.5]))
        case dn.ConcentratedDP(rho):
            return dn.ConcentratedDP(rho * draw.choice([0.999, 0.5]))
        case dn.RenyiDP(orders, epsilons):
            return dn.RenyiDP(orders, [epsilon * draw.choice([0.999, 0.5]) for epsilon in epsilons])
        case dn.RepeatAndSelect(inner, mean, shape):  # on samples it is composed as a pair
            return dn.RepeatAndSelect(inner, 1 + (mean - 1) * draw.choice([0.999, 0.5]), shape)
    return mechanism.subsampled(draw.choice([0.5, 0.99]))


def compare_releases(
    question: Question, less: dn.Mechanism, more: dn.Mechanism, adjacency: str, value: float
) -> Find | None:
    """`value` is the answer about `more`; a lower end above it for `less` is a find."""
    if question.name not in _MONOTONE:
        return None
    other = question.ask(dn.privacy_loss(less, adjacency))
    lower = other - getattr(other, "error", 0.0)
    if not lower > value * (1 + 1e-12) + 1e-300:
        return None
    call = f'PL({text(more)}, "{adjacency}").{question}'
    return Find(call, repr(float(value)), f"at least what a less telling release has: {text(less)} has {lower!r}")


def compare_scores(loss: dn.PrivacyLoss, release: str, draw: Random) -> Find | None:
    """Scores of one release against each other."""
    small = draw.choice([1e-5, 0.01, 0.3, float(10 ** -draw.uniform(0, 12))])
    epsilon, tpr, advantage = loss.epsilon(small), loss.tpr(small), loss.advantage()
    failure = max(small, 0.01)  # 1 - failure must still tell it
    belief, exceeded = loss.belief(failure), loss.quantile(1 - failure)
    checks = [
        (f"epsilon({small!r})", epsilon, "delta there is at most that", _kept(loss, epsilon, small)),
        (f"tpr({small!r})", tpr, "at least the false positive rate", tpr >= small),
        (f"tpr({small!r})", tpr, "at most advantage + fpr", tpr - tpr.error <= advantage + small * (1 + 1e-9)),
        ("advantage()", advantage, "equal to delta(0)", _overlap(advantage, loss.delta(0.0))),
        ("accuracy(0.5)", loss.accuracy(0.5), "(1 + advantage) / 2", _overlap(loss.accuracy(0.5), _half(advantage))),
        (f"belief({failure!r})", belief, "sigmoid of the quantile", _believed(belief, exceeded)),
        (f"ppv({small!r}, 0.5)", loss.ppv(small, 0.5), "tpr / (tpr + fpr)", _predicted(loss, tpr, small)),
    ]
    for call, value, should, holds in checks:
        if not holds:
            return Find(f"{release}.{call}", f"{float(value)!r} - {value.error!r}", should)
    return None


def compare_routes(loss: dn.PrivacyLoss, release: str, draw: Random) -> Find | None:
    """Line integrals against the grid, whose brackets are proved and use no moments; the same line asked twice."""
    pair = loss.pair
    if not isinstance(pair, Contour):
        return None
    grid = Grid(pair.composition, _GRID_POINTS)
    k = draw.choice([0.0, draw.gauss(0.0, 1.0) * pair.scale])
    for name in ("hockey_stick", "tail", "null_tail"):
        first = getattr(pair, name)(k)
        try:
            other = getattr(grid, name)(k)
        except (ArithmeticError, ValueError):  # losses beyond what a grid can hold
            return None
        for value in (first, getattr(pair, name)(k)):
            if not _overlap(value, other):
                says = f"{float(value)!r} - {value.error!r}"
                return Find(f"{release}.pair.{name}({k!r})", says, f"from {other - other.error!r} to {float(other)!r}")
    return None


def _half(advantage: float) -> tuple[float, float]:
    return (1 + advantage - advantage.error) / 2, (1 + advantage) / 2  # type: ignore[attr-defined]


def _kept(loss: dn.PrivacyLoss, epsilon: float, small: float) -> bool:
    if not isfinite(epsilon):
        return True
    delta = loss.delta(float(epsilon))
    return bool(delta - delta.error <= small * (1 + 1e-9))


def _overlap(value: float, other: object) -> bool:
    low, high = other if isinstance(other, tuple) else (other - other.error, other)  # type: ignore[attr-defined]
    slack = 1e-12 * max(abs(value), abs(high))
    return bool(value + slack >= low and value - value.error <= high + slack)  # type: ignore[attr-defined]


def _believed(belief: float, quantile: float) -> bool:
    """The belief at prior 1/2 that the quantile of the loss stands for."""
    error = quantile.error if isfinite(quantile) else 0.0  # type: ignore[attr-defined]
    low, high = _sigmoid(quantile - error), _sigmoid(quantile)
    return _overlap(belief, (low * (1 - 1e-9), high * (1 + 1e-9)))


def _sigmoid(x: float) -> float:
    if x == inf:
        return 1.0
    return 1 / (1 + exp(-x)) if x > -700 else exp(max(x, -745.0))


def _predicted(loss: dn.PrivacyLoss, tpr: float, small: float) -> bool:
    low = max(0.0, tpr - tpr.error)  # type: ignore[attr-defined]
    return _overlap(loss.ppv(small, 0.5), (low / (low + small) * (1 - 1e-9), tpr / (tpr + small) * (1 + 1e-9)))
