"""What each weaker analysis would demand for the same promise: the price, in noise, of not being exact."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from deniable.bounds import METHODS, InapplicableError, epsilon_to_belief, guarantee, loss_bound
from deniable.calibration import Belief, Target
from deniable.checks import probability
from deniable.mechanisms import Adjacency, Mechanism
from deniable.scores import privacy_loss

__all__ = ["METHODS", "InapplicableError", "calibrate_by"]

_PRECISION = 1e-6
_LEAST, _MOST = 1e-3, 1e9


def calibrate_by(
    name: str,
    mechanism_of: Callable[[float], Mechanism],
    target: Target,
    delta: float,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
) -> float:
    """The least noise with which analysis `name` (one of `METHODS`) proves the promise.

    The analysis turns the release into a bare guarantee at `delta`, and the guarantee is scored like any release. For
    a belief that would not do (ERRATA 4): there the analysis must bound the tail of the loss itself. The result keeps
    the promise and is at most 1e-6 of itself too large. Raises `InapplicableError` where the analysis has no form for
    the mechanism, or no noise up to 1e9 will do.
    """
    probability("delta", delta, open_ends=True)
    kind = Adjacency(adjacency)

    def keeps(noise: float) -> bool:
        return _score(name, mechanism_of(noise), target, delta, kind) <= target.bound

    if not keeps(_MOST):
        raise InapplicableError(f"{name}: no noise up to {_MOST:g} keeps this promise at delta {delta:g}")
    return _least(lambda noise: _holds(keeps, noise))


def _score(name: str, mechanism: Mechanism, target: Target, delta: float, adjacency: Adjacency) -> float:
    if isinstance(target, Belief):
        return epsilon_to_belief(loss_bound(name, mechanism, target.failure, adjacency), target.prior)
    return target.score(privacy_loss(guarantee(name, mechanism, delta, adjacency), adjacency))


def _holds(keeps: Callable[[float], bool], noise: float) -> bool:
    """An analysis that applies for large noise may have nothing to say for less: then the promise is not proved."""
    try:
        return keeps(noise)
    except InapplicableError:
        return False


def _least(keeps: Callable[[float], bool]) -> float:
    """The smallest noise that keeps the promise; bisection, since a score may jump (to 0, to infinity)."""
    safe = 1.0
    while not keeps(safe):
        safe *= 4
    unsafe = safe / 4
    while keeps(unsafe):
        safe, unsafe = unsafe, unsafe / 4
        if safe < _LEAST:
            return safe
    while safe > unsafe * (1 + _PRECISION):
        middle = sqrt(safe * unsafe)
        safe, unsafe = (middle, unsafe) if keeps(middle) else (safe, middle)
    return safe
