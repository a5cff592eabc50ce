"""The law of a loss that is an analytic function of Gaussian noise, and its rare large losses apart from the rest.

Nodes for its moments come from a trapezoidal rule above the real axis.

A record that is sampled with a small rate moves the release by a tiny loss nearly always and by a large one, a *jump*,
hardly ever. Moments E[e^{cL}] magnify the jumps and hide everything else, so compositions are taken apart by their
largest jump (Lemma J1): e^{-(decay * jump)^8} takes jumps above 1/decay out of a law and leaves the small
ones; being analytic, it leaves the moments of both parts as easy to have as those of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, log, pi

import numpy as np

from deniable.effort import UnresolvedError, spend
from deniable.loss.arrays import Complexes, Floats, Numbers
from deniable.loss.moments.nodes import (
    BULK_NATS,
    NEGLIGIBLE_NATS,
    SUNK_NATS,
    Nodes,
    is_coarse,
    is_inside,
    log_fall,
    log_moments,
    log_sums,
    tilted_moments,
    tilted_sums,
)

_MOST_FIXED = 2**13
_FINEST = 2**14
_CLOSE = 1e-12  # relative distance to a rule of half as many nodes; the rule's own error is smaller still
_STRIP_NATS = 37.0  # the trapezoidal rule errs by at most e^-37 = 8.5e-17 of a moment (Lemma C5)
_LOWER_LIFTS = np.array([1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])  # of lines above the axis, as low as ...
_STRIP_LIFTS = np.array([1 / 4, 1 / 2, 1.0, 3 / 2, 7 / 4])  # ... sums of moduli are exact to about 1e-13; of edges
_STRIPS = ((0.75, 0, 4), (0.5, 1, 3))  # half-width in lifts around the line at one lift, places of both edges
_MODULI_SLACK = 1e-12  # nats granted to them (Lemma C4)


Function = Callable[[Numbers], Numbers]


@dataclass
class NodeRule:
    """Nodes for the moments E[e^{sL(X)}], X having an analytic density on `reach`, `missing` of whose mass is missing.

    A trapezoidal rule, which converges exponentially here: its spacing follows from the integrand's size on both edges
    of a strip (Lemma C5), not from trials. Off the real axis of s the nodes are lifted by i * `lift`: the integral is
    the same, but there e^{i omega L} decays where L is steep instead of oscillating, so a few hundred nodes serve every
    frequency.
    """

    loss: Function
    log_density: Function
    reach: tuple[float, float]
    lift: float
    missing: float | None = 0.0
    _latest: tuple[float, float, Nodes] | None = None

    def nodes(self, s: Complexes) -> Nodes:
        """For points on one vertical line; those found last serve the same line up to the same frequency."""
        c, fastest = float(s[0].real), float(s.imag.max())
        if self._latest is None or self._latest[0] != c or not 0 < fastest <= self._latest[1]:
            self._latest = c, *self._nodes_at(c, fastest)
        return self._latest[2]

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        """ln of a bound on (|Im s| / omega)^share |E[e^{sL}]| for Re s = c and all |Im s| >= omega (Lemma C4)."""
        real, imag, logs = self._lower_lines
        spend(omega.size * logs.size // 2)  # real ones
        falls = log_fall(np.multiply.outer(omega, imag), share)
        return np.asarray(log_sums(logs + c * real + falls).min(axis=-1) + _MODULI_SLACK)

    def tilted_moments(self, c: Floats) -> Floats:
        """K, K' and K'' at every real c, by fixed nodes (Lemma C5) where every second one of them gives the same."""
        nodes = self._axis
        spend(c.size * nodes.losses.size)
        peaks = nodes.log_weights + np.multiply.outer(c, nodes.losses)
        tops = peaks.max(axis=1)
        terms = np.exp(peaks - tops[:, None])
        found = tilted_sums(nodes, c, tops, terms)
        inside = is_inside(peaks, tops)
        for place in np.flatnonzero(inside & (is_coarse(terms) | self._coarse_mass)):
            found[:, place] = self._moments_at(c[place])
        return np.where(inside, found, np.inf)

    def _moments_at(self, c: float) -> Floats:
        """The same at one c by nodes of its own; inf where there are none."""
        try:
            return tilted_moments(self._settle_nodes(c, 0.0), np.array([c]))[:, 0]
        except UnresolvedError:
            return np.full(3, np.inf)

    @cached_property
    def _axis(self) -> Nodes:
        return self._between(*self.reach, self._axis_count, 0.0)

    @cached_property
    def _coarse_mass(self) -> bool:
        """Whether the fixed nodes do not resolve the density itself, on which differences from 1 rely."""
        return self.missing is not None and bool(is_coarse(np.exp(self._axis.log_weights)))

    @property
    def _axis_count(self) -> int:
        """Intervals between fixed nodes on the real axis: five a lift."""
        low, high = self.reach
        return min(2 * ceil((high - low) / (0.4 * self.lift)), _MOST_FIXED)

    @property
    def _axis_spacing(self) -> float:
        return (self.reach[1] - self.reach[0]) / self._axis_count

    @cached_property
    def _lower_lines(self) -> tuple[Floats, Floats, Floats]:
        return self._lines_above(_LOWER_LIFTS)

    @cached_property
    def _strip_lines(self) -> tuple[Floats, Floats, Floats]:
        return self._lines_above(_STRIP_LIFTS)

    def _lines_above(self, lifts: Floats) -> tuple[Floats, Floats, Floats]:
        """Losses (real and imaginary parts) and logarithms of |weights| on lines above the axis, one row a line."""
        spend(8 * lifts.size * self._axis_count)
        x = np.linspace(*self.reach, 1 + self._axis_count) + 1j * self.lift * lifts[:, None]
        losses = self.loss(x)
        return losses.real, losses.imag, self.log_density(x).real + log(self._axis_spacing)

    def _between(self, low: float, high: float, count: int, lift: complex) -> Nodes:
        spend(8 * count)
        x = low + (high - low) / count * np.arange(count + 1) + lift
        return Nodes(self.loss(x), self.log_density(x) + np.log((high - low) / count), self.missing)

    def _nodes_at(self, c: float, fastest: float) -> tuple[float, Nodes]:
        """Up to which frequency, and lifted nodes for Re s = c: any (Lemma C5) unless that takes too many."""
        low, high, peak = self._range(c)
        spacing = self._spacing(c, peak)
        if self._near_one(peak):  # then the mass itself is summed, too
            spacing = min(spacing, self._spacing(0.0, float(self._axis.log_weights.max())))
        count = max(32, ceil((high - low) / spacing))
        if count > _FINEST:
            return fastest, self._settle_nodes(c, fastest)
        return inf, self._between(low, high, count, 1j * self.lift)

    def _spacing(self, c: float, peak: float) -> float:
        """The widest at which the rule errs by at most e^-37 of a moment that is at least e^peak (Lemma C5)."""
        real, _, logs = self._strip_lines
        sizes = log_sums(logs + c * real)
        if sizes[_STRIP_LIFTS.size // 2] > peak + BULK_NATS:
            raise UnresolvedError(f"the moment at {c:g} has a narrow peak")
        nats = [_STRIP_NATS + max(float(np.logaddexp(sizes[low], sizes[high])) - peak, 0.0) for _, low, high in _STRIPS]
        return max(2 * pi * self.lift * width / needed for (width, _, _), needed in zip(_STRIPS, nats, strict=True))

    def _settle_nodes(self, c: float, fastest: float) -> Nodes:
        """Nodes doubled in number until the moments at a few points of the line stand still: validated, not proved."""
        low, high, peak = self._range(c)
        probes = c + 1j * fastest * np.array([0.0, 0.01, 0.1, 0.5, 1.0]) if fastest else np.array([c])
        if self._near_one(peak):
            probes = np.append(probes, 0.0)
        # a single moment is cheap, and hardly ever settled with fewer
        count, lift = max(32 if fastest else 128, int(2.5 * (high - low))), 1j * self.lift if fastest else 0.0
        nodes = self._between(low, high, count, lift)
        sums = _probe_moments(nodes, probes, peak)
        while 2 * count <= _FINEST:
            half = (high - low) / (2 * count)
            between = self._between(low + half, high - half, count - 1, lift)
            more = _probe_moments(between, probes, peak)
            nodes, count = _interleave_nodes(nodes, between), 2 * count
            if np.abs(more - sums).max() <= 2 * _CLOSE * abs(more[0]):
                return nodes
            sums = (sums + more) / 2
        raise UnresolvedError(f"more than {_FINEST} nodes needed at frequency {fastest:g}")

    def _near_one(self, peak: float) -> bool:
        """Whether the moment will be summed as a difference from 1, which needs all of Q as well."""
        return self.missing is not None and -2 * SUNK_NATS < peak < 2 * BULK_NATS  # for whatever nodes it will be

    def _range(self, c: float) -> tuple[float, float, float]:
        """Where the moment at c comes from, and the logarithm of its largest term."""
        log_density = self._axis.log_weights
        height = log_density + c * self._axis.losses
        peak = float(height.max())
        if not is_inside(height, height.max()):
            raise UnresolvedError("the moment is infinite, or comes from the ends of the range")
        if self._near_one(peak):
            height = np.maximum(height, log_density)
        kept = np.flatnonzero(height >= height.max() - NEGLIGIBLE_NATS)
        low = self.reach[0]
        return low + self._axis_spacing * float(kept[0]) - 0.5, low + self._axis_spacing * float(kept[-1]) + 0.5, peak


def _probe_moments(nodes: Nodes, s: Numbers, peak: float) -> Numbers:
    """e^{-peak} times the moments at every s."""
    spend(s.size * nodes.losses.size)
    exponents = nodes.log_weights - peak + np.multiply.outer(s, nodes.losses)
    if not exponents.real.max() < BULK_NATS:
        raise UnresolvedError(f"the moment at {s[0].real:g} has a narrow peak")
    return np.asarray(np.exp(exponents).sum(axis=1))


def _interleave_nodes(nodes: Nodes, between: Nodes) -> Nodes:
    """Both together, each node half as heavy."""
    losses, log_weights = (_merge_moments(a, b) for a, b in zip(nodes[:2], between[:2], strict=True))
    return Nodes(losses, log_weights - log(2), nodes.missing)


def _merge_moments(even: Numbers, odd: Numbers) -> Numbers:
    both = np.empty_like(even, shape=even.size + odd.size)
    both[::2], both[1::2] = even, odd
    return both


_LARGEST = 690.0  # exponents beyond overflow
_POWER = 8  # of the jump in the damping
_NOTHING = 1000.0  # nats
_LOWER = 16.0  # by which damped laws' nodes stay nearer to the axis: half-way to where the power turns negative


@dataclass(frozen=True)
class NoiseLaw:
    """The loss L(x), the logarithms of Q's density at x and of the jump at x, all analytic around the real axis."""

    loss: Function
    log_density: Function
    log_jump: Function
    reach: tuple[float, float]
    """Where moments may have their mass: noise beyond is left out."""
    lift: float
    """How far the nodes may leave the real axis."""
    decay: float = 0.0

    def damping(self, decay: float, x: Numbers) -> Numbers:
        """(decay * jump)^8."""
        exponent = _POWER * (self.log_jump(x) + np.log(decay))
        return np.asarray(np.exp(exponent - np.maximum(exponent.real - _LARGEST, 0.0)))

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._rule.nodes(s), s)

    def tilted_moments(self, c: Floats) -> Floats:
        return self._rule.tilted_moments(c)

    def envelope(self, c: float, omega: Floats, share: float) -> Floats:
        return self._rule.envelope(c, omega, share)

    @cached_property
    def _rule(self) -> NodeRule:
        if not self.decay:
            return NodeRule(self.loss, self.log_density, self.reach, self.lift)
        return NodeRule(self.loss, self.log_damped_density, self.kept, self.lift / _LOWER, self._missing)

    @cached_property
    def kept(self) -> tuple[float, float]:
        """The part of `reach` where damping leaves anything."""
        if not self.decay:
            return self.reach
        x = np.linspace(*self.reach, 257)
        alive = np.flatnonzero(self.damping(self.decay, x).real < _NOTHING)
        return float(x[max(alive[0] - 1, 0)]), float(x[min(alive[-1] + 1, 256)])

    def log_damped_density(self, x: Numbers) -> Numbers:
        """Logarithm of the damped density."""
        return self.log_density(x) - self.damping(self.decay, x) if self.decay else self.log_density(x)

    @cached_property
    def _missing(self) -> float:
        """Mass that damping takes away."""
        whole = NoiseLaw(self.loss, self.log_density, self.log_jump, self.reach, self.lift)
        log_mass = float(Jumps(whole, self.decay).tilted_moments(np.zeros(1))[0, 0])
        if log_mass == np.inf:
            raise UnresolvedError("the mass of the jumps cannot be had")
        return float(np.exp(log_mass))


@dataclass(frozen=True)
class Jumps:
    """What damping by `decay` takes away from a law that is damped less, or not at all."""

    law: NoiseLaw
    decay: float

    def cumulant(self, s: Complexes) -> Complexes:
        return log_moments(self._rule.nodes(s), s)

    def tilted_moments(self, c: Floats) -> Floats:
        return self._rule.tilted_moments(c)

    @cached_property
    def _rule(self) -> NodeRule:
        return NodeRule(self.law.loss, self.log_density, self.law.kept, self.law.lift / _LOWER, None)

    def log_density(self, x: Numbers) -> Numbers:
        law = self.law
        step = self.decay * (1 - (law.decay / self.decay) ** _POWER) ** (1 / _POWER)
        taken = law.damping(step, x)
        small = taken.real < 1e-9
        share = np.log(-np.expm1(-np.where(small, 1.0, taken)))
        share = np.where(small, _POWER * (law.log_jump(x) + np.log(step)), share)
        return law.log_damped_density(x) + share
