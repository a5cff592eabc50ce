"""A composition taken apart by its largest jump, so that each part has a saddle where its own losses are.

With M_j the steps' law damped to jumps below some size y_j (analytic_noise.py), y_1 < y_2 < ..., a composition of n
steps is

    M^n = M_1^n + (M_2^n - M_1^n) + (M_3^n - M_2^n) + ...

and every difference is the positive measure of the runs whose largest jump lies between two sizes (Lemma J1). A
question about a small probability is answered by the band that can cause it; its relative accuracy is not lost to the
bulk, where nearly all the mass lies, nor to larger jumps, which e^{cL} would magnify.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import exp, isfinite

import numpy as np

from deniable.loss.arrays import EPS, Complexes, Floats, log1p
from deniable.loss.compose.cumulants import Composition
from deniable.loss.moments.nodes import seen_from
from deniable.loss.pairs.step import Moments, Step

_FIRST = exp(-6.0)  # expected number of jumps above the first size in many steps, where all of them make a bulk
_FEW = 1000  # steps, of which each single one may matter: there the first size is exceeded a few times
_FALL = exp(-12.0)  # by which the expected number falls from one size to the next
_APART = 4.0  # by which one size exceeds the one before, at least
_WIDEST = 32.0  # and at most
_LARGE = 30.0  # from jumps of this size on, the loss grows no faster than the noise
_LEAST = 1e-12  # jumps below this size are of no account
_RAREST = 1e-200
_BULK = 0.005  # about the mass that must be left below the first size


def bands(composition: Composition) -> Sequence[Composition]:
    """The composition's parts, from the one without jumps upwards; empty where jumps do not stand apart."""
    decays = _decays(composition)
    if not decays:
        return []
    edges = [*decays, 0.0]
    return [_Damped(_damp_steps(composition, edges[0]))] + [
        _Band(_damp_steps(composition, above), below) for below, above in pairwise(edges)
    ]


def _damp_steps(composition: Composition, decay: float) -> list[tuple[Step, int]]:
    return [(step.damp(decay), count) for step, count in composition.parts]


def _decays(composition: Composition) -> list[float]:
    """One over the sizes of jumps that part the bands, from the smallest size upwards."""
    few = composition.steps < _FEW
    size = max(_size(composition, min(4.0, 0.95 * composition.steps) if few else _FIRST), _LEAST)
    decays: list[float] = []
    while size < _LARGE and (expected := _expect_jumps(composition, size)) > _RAREST:
        if decays or exp(-expected) > _BULK:
            decays.append(1 / size)
        following = _APART * size
        while following < _WIDEST * size and _expect_jumps(composition, following) > _FALL * expected:
            following *= 2
        size = following
    return decays


def _size(composition: Composition, expected: float) -> float:
    """The jump that is exceeded `expected` times in all steps of the most jumpy part."""
    return max(step.jump_size(min(expected / count, 0.99)) for step, count in composition.parts)


def _expect_jumps(composition: Composition, size: float) -> float:
    """About how many jumps exceed this size."""
    return sum(count * step.jump_probability(size) for step, count in composition.parts)


@dataclass(frozen=True)
class _Damped(Composition):
    """A composition without large jumps: some mass is missing."""

    def mass(self, pole: float) -> float:
        return exp(min(self.saddle(pole).value, 0.0))

    @cached_property
    def mass_noise(self) -> float:
        """A moment's own round-off enters the mass as often as there are steps (Lemma C7)."""
        known = [saddle for saddle in self.saddles([0.0, 1.0]) if isfinite(saddle.value) and isfinite(saddle.slope)]
        return max([4 * EPS * self.steps, *(float(self.roundoff(saddle)) for saddle in known)])

    def log_height(self, c: float, omega: Floats) -> Floats:
        """Validated, not proved: a proved bound would cost several times as many points here (Lemma C4)."""
        return self.seen_height(c, omega)


@dataclass(frozen=True)
class _Band(_Damped):
    """What the parts have in excess of the same parts damped by `decay`, in composition."""

    decay: float

    @cached_property
    def _apart(self) -> list[tuple[Step, Moments | None, int]]:
        """Every part without its jumps, the jumps, and how often it runs."""
        return [(step.damp(self.decay), step.jumps(self.decay), count) for step, count in self.parts]

    @cached_property
    def _rough_and_smooth(self) -> tuple[_Band, _Band]:
        return replace(self, parts=self.rough_parts), replace(self, parts=self.smooth_parts)

    def seen_height(self, c: float, omega: Floats) -> Floats:
        return seen_from(self._height_beside_atoms if self.rough_parts else self.cumulant, c, omega)

    def _height_beside_atoms(self, s: Complexes) -> Floats:
        """ln of a bound on |e^K| where the moments of some steps come back: jumps of those, or of others (Lemma J3)."""
        rough, smooth = self._rough_and_smooth
        damped, with_jumps = rough.values_on_axis(float(s[0].real))
        below, growth = smooth.cumulant_and_growth(s)
        return np.asarray(np.logaddexp(with_jumps + (below + growth).real, damped + (below + _log_expm1(growth)).real))

    def values_on_axis(self, c: float) -> tuple[float, float]:
        """K without the jumps, and of the band itself, at a real c."""
        if c not in self._on_axis:
            below, growth = self._moments_apart(np.array([c]))
            self._on_axis[c] = float(below[0, 0]), float(below[0, 0]) + _log_of_expm1(growth[0])[0]
        return self._on_axis[c]

    @cached_property
    def _on_axis(self) -> dict[float, tuple[float, float]]:
        return {}

    def cumulant(self, s: Complexes) -> Complexes:
        below, growth = self.cumulant_and_growth(s)
        return below + _log_expm1(growth)

    def cumulant_and_growth(self, s: Complexes) -> tuple[Complexes, Complexes]:
        """K without the jumps, and what they add to it."""
        below = np.zeros(s.shape, dtype=np.complex128)
        growth = np.zeros(s.shape, dtype=np.complex128)
        for step, jumps, count in self._apart:
            found = step.cumulant(s)
            below += count * found
            if jumps is not None:
                growth += count * _log_one_plus_exp(jumps.cumulant(s) - found)
        return below, growth

    def tilted_moments(self, c: Floats) -> Floats:
        """log(e^{D} - 1) on top of K below, D = sum of log(1 + jumps / below), and the chain rule."""
        total, growth = self._moments_apart(c)
        d, slope, bend = growth
        with np.errstate(divide="ignore"):
            share = np.where(d > 0, -1 / np.expm1(-d), 0.0)  # derivative of log(e^d - 1); 0 where there are no jumps
        total += [_log_of_expm1(d), share * slope, share * bend - (share * share - share) * slope**2]
        return total

    def _moments_apart(self, c: Floats) -> tuple[Floats, Floats]:
        """K without the jumps and what they add to it, each with two derivatives (rows)."""
        below, growth = np.zeros((3, c.size)), np.zeros((3, c.size))
        for step, jumps, count in self._apart:
            found = step.tilted_moments(c)
            below += count * found
            if jumps is not None:
                growth += count * _log_sum_growth(found, jumps.tilted_moments(c))
        return below, growth


def _log_of_expm1(d: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # nothing at all is minus infinity
        return np.asarray(np.where(d > 1, d + np.log1p(-np.exp(-d)), np.log(np.expm1(np.minimum(d, 1.0)))))


def _log_sum_growth(base: Floats, added: Floats) -> Floats:
    """log(1 + e^{added - base}) and its first two derivatives."""
    distance, apart, excess = added - base
    value = np.logaddexp(0.0, distance)
    share = np.exp(distance - value)
    return np.array([value, share * apart, share * excess + share * (1 - share) * apart**2])


def _log_one_plus_exp(x: Complexes) -> Complexes:
    big = x.real > 40
    return np.asarray(np.where(big, x, log1p(np.exp(np.where(big, 0.0, x)))))


def _log_expm1(x: Complexes) -> Complexes:
    big = x.real > 30
    with np.errstate(divide="ignore"):  # nothing at all is minus infinity
        return np.asarray(np.where(big, x, np.log(np.expm1(np.where(big, 1.0, x)))))
