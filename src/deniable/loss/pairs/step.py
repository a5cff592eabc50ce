"""One run of one mechanism: its dominating pair in closed form.

Every step knows, for whole arrays at once, the hockey-stick divergence, both tails of its loss, and its
cumulant function log E_Q[e^{sL}] for complex s, from which compositions are made (loss.compose).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, log, nan
from typing import Protocol

import numpy as np

from deniable.effort import spend
from deniable.loss.arrays import Complexes, Floats
from deniable.loss.pairs.pair import NULL_TAIL, STICK, TAIL, Functional, Pair
from deniable.upper import Upper

ROUNDOFF = 2e-15  # relative error granted to a sum of a few special-function values
_QUESTION_COST = 3_000  # exponentials that asking one tail is worth, by the calls it takes
_FADED_NATS = 100.0  # e^-100 = 4e-44: an atom that no answer has digits for
_TURNED = np.array([[1.0], [-1.0], [1.0]])  # what looking from the other side does to K, K' and K''


class Moments(Protocol):
    """A measure of losses, known by the logarithm of its moments."""

    def cumulant(self, s: Complexes) -> Complexes:
        """log of the integral of e^{sL} for complex s on one vertical line (equal real parts)."""

    def tilted_moments(self, c: Floats) -> Floats:
        """The same and its first two derivatives (rows) at every real c; inf where they cannot be had."""


@dataclass(frozen=True)
class Mirrored:
    """Moments with P and Q exchanged: E_P[e^{-sL}] = E_Q[e^{(1 - s) L}], conjugated so that lines again run upwards."""

    moments: Moments

    def cumulant(self, s: Complexes) -> Complexes:
        return np.asarray(self.moments.cumulant(1 - s.conj()).conj())

    def tilted_moments(self, c: Floats) -> Floats:
        return np.asarray(self.moments.tilted_moments(1 - c) * _TURNED)


class Step(Pair):
    """A pair whose functionals are elementary; `smooth` tells that its characteristic function dies out."""

    smooth: bool = False
    centres: tuple[float, float] = (nan, nan)
    """The loss around which the law is rough, on any scale, while elsewhere it is smooth on the scale of the distance:
    two guesses, for rare jumps and for many. NaN where there is no such single loss."""

    @abstractmethod
    def sticks(self, k: Floats) -> Floats:
        """Hockey-stick divergence at every k."""

    has_joint_sticks: bool = False
    """Whether every loss enters the divergence as one product, mass times 1 - e^{k - L}, not as two tails."""
    tail_cost: int = 1
    """Exponentials that one value of a tail is worth."""
    density_error: float = 0.0
    """Relative error of the density that moments are summed from, beside round-off."""

    @abstractmethod
    def tails(self, t: Floats) -> Floats:
        """P(L > t) at every t."""

    @abstractmethod
    def null_tails(self, t: Floats) -> Floats:
        """Q(L > t) at every t."""

    def log_null_tails(self, t: Floats) -> Floats:
        """ln Q(L > t) at every t, also where it underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.null_tails(t)))

    def blur(self, k: Floats) -> Floats:
        """How far round-off may have moved losses near every k: of the parameters, and on the way from k (Lemma S1)."""
        return np.zeros(k.shape)

    @abstractmethod
    def cumulant(self, s: Complexes) -> Complexes:
        """log E_Q[e^{sL}; L finite] for complex s on one vertical line (equal real parts)."""

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """ln of a bound on |E_Q[e^{sL}]| at Re s = c and all |Im s| >= omega, however often atoms make it come back.

        Of a smooth step on (|Im s| / omega)^share times that (Lemma C4).
        """
        return np.full(omega.shape, _log_moment(self, c))

    atom: float = 1.0
    """Q-mass of its only atom, at loss 0, where all else has a density; 1 where it is not so."""

    def fades(self, runs: int) -> bool:
        """Whether the law of so many runs has a density, but for an atom that is nothing (Lemma A9)."""
        return self.smooth or (self.atom < 1 and runs * log(max(self.atom, 1e-300)) < -_FADED_NATS)

    presence: float = 1.0
    """Probability that the person takes part."""

    alike: tuple[Step, int] | None = None
    """A step that is quicker to compose, and how many of them are about as telling: where searches begin."""

    def sampled_like(self, mu: float, presence: float) -> Step:
        """Gaussian noise on a sample of the same kind."""
        raise TypeError(f"{type(self).__name__} is not sampled")

    def damp(self, decay: float) -> Step:
        """The same step, each outcome's mass times e^{-(decay * jump)^8}: without rare large losses (Lemma J1)."""
        return self

    def jumps(self, decay: float) -> Moments | None:
        """What damping this step by `decay` takes away; None where it has no rare large losses."""
        return None

    def jump_size(self, probability: float) -> float:
        """About the jump that is exceeded with this probability (0: there are none)."""
        return 0.0

    def jump_probability(self, size: float) -> float:
        """About how probable a larger jump is."""
        return 0.0

    def tilted_moments(self, c: Floats) -> Floats:
        """The cumulant function and its first two derivatives (rows) at every real c, here by complex differences."""
        width = 0.02 / self.scale
        around = 1j * width * np.array([0.0, 1e-7, 1.0])
        at, close, near = np.array([self.cumulant(point + around) for point in c]).T
        return np.array([at.real, close.imag / (1e-7 * width), 2 * (at.real - near.real) / width**2])

    @property
    def roundoff(self) -> float:
        """Relative round-off of tails, beside that of k."""
        return ROUNDOFF

    @property
    def escape(self) -> float:
        return 0.0

    def reverse(self) -> Step:
        return self  # symmetric unless a subclass says otherwise

    @property
    def variation(self) -> float:
        """Total variation: the divergence at 0."""
        return float(self.hockey_stick(0.0))

    most_gain: float = 1.0
    """No divergence at k >= 0 is larger: the chance that the person takes part, where it is given."""

    def hockey_stick(self, k: float) -> Upper:
        found = self._round_outwards(STICK, k)
        return found if k < 0 else found.meet(Upper(self.most_gain, self.most_gain))

    def tail(self, t: float) -> Upper:
        return self._round_outwards(TAIL, t)

    def null_tail(self, t: float) -> Upper:
        return self._round_outwards(NULL_TAIL, t)

    def _round_outwards(self, functional: Functional, k: float) -> Upper:
        """The functional between the ends of k's blur; a divergence is a sum of terms as large as P's tail (Lemma S1).

        Where they are a difference of tails, these may be rounded apart: by no more than P's tail is.
        """
        spend(_QUESTION_COST * self.tail_cost)
        blur = float(self.blur(np.array([k]))[0]) if isfinite(k) else 0.0
        if k - blur >= self.largest_finite:
            size = functional.shift * self.escape
            return Upper.between(size * (1 - self.slip), min(1.0, size * (1 + self.slip)))
        ends = np.array([k + blur, k - blur])
        least, most = functional.on_step(self, ends).tolist()
        lower, higher = self.tails(ends).tolist() if functional is STICK else (most, most)
        error = self.roundoff * higher + (2 * blur * higher if self.has_joint_sticks else higher - lower)
        error += functional.shift * self.slip * self.escape
        return Upper.between(max(least - error, 0.0), min(most + error, 1.0))


@lru_cache(maxsize=32)
def _log_moment(step: Step, c: float) -> float:
    """ln of the moment at a real c; a line asks for it again and again."""
    return float(step.tilted_moments(np.array([c]))[0, 0])
