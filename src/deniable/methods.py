"""What each weaker analysis would demand for the same promise: the price, in noise, of not being exact."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import inf

from deniable.bounds import METHODS, InapplicableError, epsilon_to_belief, guarantee, loss_bound
from deniable.calibration import MOST_NOISE, Belief, Target, first_safe
from deniable.checks import probability
from deniable.mechanisms import Adjacency, Mechanism
from deniable.scores import privacy_loss

__all__ = ["METHODS", "InapplicableError", "calibrate_by"]

_PRECISION = 1e-6
_HUGE = 1e300


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

    @cache
    def score(noise: float) -> float:
        return _score(name, mechanism_of(noise), target, delta, kind)

    if not score(MOST_NOISE) <= target.bound:
        raise InapplicableError(f"{name}: no noise up to {MOST_NOISE:g} keeps this promise at delta {delta:g}")
    # a score may jump (to 0, to infinity), which the search bears
    return first_safe(lambda noise: min(_known(score, noise), _HUGE), target.bound, (0.0, 0.5), _PRECISION / 3)


def _score(name: str, mechanism: Mechanism, target: Target, delta: float, adjacency: Adjacency) -> float:
    if isinstance(target, Belief):
        return epsilon_to_belief(_loss_bound(name, mechanism, target.failure, adjacency), target.prior)
    return target.score(privacy_loss(_guarantee(name, mechanism, delta, adjacency), adjacency))


# What an analysis says of a release does not depend on the promise: the next promise meets the same releases again.
_loss_bound = lru_cache(maxsize=2**12)(loss_bound)
_guarantee = lru_cache(maxsize=2**12)(guarantee)


def _known(score: Callable[[float], float], noise: float) -> float:
    """An analysis that applies for large noise may have nothing to say for less: then the promise is not proved."""
    try:
        return score(noise)
    except InapplicableError:
        return inf
