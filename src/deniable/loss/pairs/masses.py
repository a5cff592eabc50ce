"""A loss with any number of values: noise on integers, a pair of probability mass functions, the dots of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from math import fsum, inf, isfinite, log, sqrt

import numpy as np

from deniable.checks import RefusedError
from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.moments.nodes import Nodes, log_moments, tilted_moments
from deniable.loss.pairs.pair import TAIL, Functional
from deniable.loss.pairs.step import Step
from deniable.upper import Upper

_DEEPEST_NATS = 745.0  # below e^-745 no number is told apart from 0
_MASS_ERROR = 1e-13  # relative, of masses that are exponentials of logarithms down to there
_REACH_SIGMAS = 38.7  # beyond lies less than 1e-300 of a Gaussian
_UNSEEN = 1e-300  # counted as told to the observer for what lies beyond
_BESIDE = 8 * EPS  # relative; farther than round-off moves a loss
_MOST_VALUES = 400_000
_BLOCK = 2**21  # terms of a sum at a time
_KEPT = 64


@dataclass(frozen=True)
class MassStep(Step):
    """Finite losses, ascending, with the logarithms of their Q-masses, and what is hidden at +-inf."""

    name: str
    """Tells it from others: equal names, equal masses."""
    losses: Floats = field(compare=False, repr=False)
    log_null_masses: Floats = field(compare=False, repr=False)
    hidden: float = 0.0
    """P(L = inf)."""
    null_hidden: float = 0.0
    """Q(L = -inf)."""
    lattice: float = 0.0
    """All losses are multiples of it; 0 where there is no such number."""
    symmetric: bool = False
    """Whether P and Q may be exchanged."""
    slip: float = 0.0
    """1 where what is hidden may be less, down to nothing."""
    has_joint_sticks = True

    @cached_property
    def _masses(self) -> Floats:
        return np.exp(self.log_null_masses + self.losses)

    def _sums(self, k: Floats, masses: Floats, fall: bool) -> Floats:
        """Of the masses above every k, each times 1 - e^{k - loss} where they `fall`."""
        found = np.empty(k.size)
        step = max(1, _BLOCK // self.losses.size)
        for start in range(0, k.size, step):
            apart = k.ravel()[start : start + step, None] - self.losses
            shares = -np.expm1(np.minimum(apart, 0.0)) if fall else apart < 0
            found[start : start + step] = shares @ masses
        return found.reshape(k.shape)

    def sticks(self, k: Floats) -> Floats:
        return np.asarray(np.clip(self._sums(k, self._masses, True) + self.hidden, 0.0, 1.0))

    def tails(self, t: Floats) -> Floats:
        return np.asarray(np.minimum(self._sums(t, self._masses, False) + self.hidden, 1.0))

    def null_tails(self, t: Floats) -> Floats:
        return np.asarray(np.minimum(self._sums(t, np.exp(self.log_null_masses), False), 1.0))

    def log_null_tails(self, t: Floats) -> Floats:
        """By sums from the end, relative to the largest term among them."""
        above = np.append(np.logaddexp.accumulate(self.log_null_masses[::-1])[::-1], -inf)
        return np.asarray(above[np.searchsorted(self.losses, t, side="right")])

    @cached_property
    def roundoff(self) -> float:
        """P's masses are exponentials of a loss and a logarithm, which may both be large."""
        seen = self._masses > 0
        deepest = float(np.abs(self.log_null_masses[seen]).max(initial=0.0))
        return _MASS_ERROR + 4 * EPS * max(deepest - _DEEPEST_NATS, 0.0)

    def blur(self, k: Floats) -> Floats:
        """Of divergences; losses stay on their side of k."""
        return np.asarray(np.minimum(4 * EPS * np.abs(k), distance_to(self.losses, k)))

    def _where(self, tail: Functional, failure: float, precision: float = 0.0, hint: float | None = None) -> Upper:
        """The first loss above which no more than `failure` is left, with both ends of the masses' round-off."""
        masses, hidden = (self._masses, self.hidden) if tail is TAIL else (np.exp(self.log_null_masses), 0.0)
        left = np.append(np.cumsum(masses[::-1])[::-1], 0.0) + hidden
        least, most = (self._first(left * (1 + sign * self.roundoff) <= failure) for sign in (-1, 1))
        if isfinite(least):  # so that the attack that accuses from there on is known, too
            least -= _BESIDE * (abs(least) + 1e-290)
        return Upper.between(least, most)

    def _first(self, enough: np.ndarray) -> float:
        """`enough` tells of each loss, and of none, whether what is left from it on suffices."""
        if not enough.any():
            return self.largest
        place = int(enough.argmax())
        return -inf if place == 0 else float(self.losses[place - 1])

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._nodes, s)

    def tilted_moments(self, c: Floats) -> Floats:
        rows = [tilted_moments(self._nodes, c[place : place + 1]) for place in range(c.size)]
        return np.concatenate(rows, axis=1) if rows else np.zeros((3, 0))

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes(self.losses, self.log_null_masses, self.null_hidden)

    @property
    def escape(self) -> float:
        return self.hidden

    @property
    def largest(self) -> float:
        return inf if self.hidden > 0 else self.largest_finite

    @property
    def largest_finite(self) -> float:
        return float(self.losses[-1])

    @cached_property
    def scale(self) -> float:
        return max(sqrt(float(self.tilted_moments(np.array([0.5]))[2, 0])), 1e-12)

    def reverse(self) -> Step:
        return self if self.symmetric else self._mirror

    @cached_property
    def _mirror(self) -> MassStep:
        name = self.name.removesuffix(", reversed") if self.name.endswith(", reversed") else f"{self.name}, reversed"
        masses = (self.log_null_masses + self.losses)[::-1]
        return MassStep(name, -self.losses[::-1], masses, self.null_hidden, self.hidden, self.lattice, slip=self.slip)


def distance_to(losses: Floats, k: Floats) -> Floats:
    """From every k to the nearest of ascending losses."""
    place = np.searchsorted(losses, k)
    return np.asarray(np.abs(losses[np.clip([place - 1, place], 0, losses.size - 1)] - k).min(axis=0))


def step_of_masses(own: Sequence[float], null: Sequence[float]) -> MassStep:
    """P and Q by their probabilities of the same outputs; what they lack to 1 is told to the observer."""
    p, q = np.asarray(own), np.asarray(null)
    name = f"masses {sha256(p.tobytes() + q.tobytes()).hexdigest()}"
    lacks = [1 - fsum(masses) for masses in (p, q)]
    slack = 8 * EPS * p.size
    (p, missing), (q, null_missing) = (
        (mass / (1 - lack), 0.0) if lack < slack else (mass, lack) for mass, lack in zip((p, q), lacks, strict=True)
    )
    both = (p > 0) & (q > 0)
    if not both.any():
        return MassStep(name, np.zeros(1), np.array([-1e300]), 1.0, 1.0)
    losses, places = np.unique(np.log(p[both]) - np.log(q[both]), return_inverse=True)
    log_null = np.log(np.bincount(places, q[both]))
    return MassStep(name, losses, log_null, missing + float(p[q == 0].sum()), null_missing + float(q[p == 0].sum()))


@lru_cache(maxsize=_KEPT)
def integer_gaussian(sigma: float, shift: int) -> MassStep:
    """Discrete Gaussian noise around `shift` against around 0: losses shift (2 x - shift) / (2 sigma^2), x whole.

    A smaller shift is never easier to see, the masses being log-concave.
    """
    reach = int(_REACH_SIGMAS * sigma) + 2
    _refuse_many(2 * reach + shift, "sigma", sigma)
    x = np.arange(-reach, shift + reach + 1, dtype=np.float64)
    logs = -0.5 * (x / sigma) ** 2
    unit = shift / (2 * sigma * sigma)
    total = log(fsum(np.exp(logs[x <= reach])))
    return MassStep(
        f"integer Gaussian {sigma!r}, {shift}", (2 * x - shift) * unit, logs - total, _UNSEEN, _UNSEEN, unit, True, 1.0
    )


@lru_cache(maxsize=_KEPT)
def integer_laplace(scale: float, shift: int) -> MassStep:
    """Geometric noise around `shift` against around 0: losses (2 x - shift) / scale for x from 0 to `shift`."""
    _refuse_many(shift, "sensitivity", shift)
    x = np.arange(shift + 1, dtype=np.float64)
    log_tail = -np.log1p(np.exp(-1 / scale))  # of all integers up to 0
    logs = log_tail - x / scale
    logs[1:-1] += np.log(-np.expm1(-1 / scale))
    return MassStep(
        f"integer Laplace {scale!r}, {shift}", (2 * x - shift) / scale, logs, lattice=1 / scale, symmetric=True
    )


def _refuse_many(values: int, field_name: str, value: float) -> None:
    if values > _MOST_VALUES:
        why = f"more than {_MOST_VALUES:,} integers matter, which no loss is made of here"
        raise RefusedError(f"{{{field_name}}} is too large, got {value!r}: {why}", field_name, value)
