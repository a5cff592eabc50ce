"""Moments E_Q[e^{sL}] along a vertical line, as sums over a few nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log
from typing import NamedTuple

import numpy as np

from deniable.loss.arrays import Complexes, Floats, Numbers

__all__ = [
    "DIRECT",
    "Nodes",
    "Rule",
    "UnresolvedError",
    "log1p",
    "log_mixture",
    "log_moments",
    "tilted_moments",
]


class Nodes(NamedTuple):
    """Losses and the logarithms of their weights."""

    losses: Numbers
    log_weights: Numbers
    missing: float | None = 0.0
    """What the weights' sum lacks to 1; None where it is nowhere near 1."""


DIRECT = 64  # up to so many points on a line every exponential is computed by itself
_NEGLIGIBLE = 44.0  # e^-44 = 8e-20 of the largest term: below double precision even after summing
_BULK = 30.0  # moments up to about e^30 are summed as a difference from 1
_SUNK = 10.0  # moments below about e^-10 are not
_FINEST = 2**14
_VANISHED = 2.0**-52  # a moment that has cancelled to nothing
_CLOSE = 1e-12  # relative distance to a rule of half as many nodes; the rule's own error is smaller still
_BLOCK = 2**20  # exponentials computed at a time


class UnresolvedError(ArithmeticError):
    """A moment or a line that is not worth its cost."""


def log_mixture(rate: float, exponent: Numbers) -> Numbers:
    """ln(1 - rate + rate e^exponent), accurate where it is small and where the exponent is large."""
    big = exponent.real > 30
    if not big.any():
        return log1p(rate * expm1(exponent))
    held = np.where(big, exponent, 0.0)
    large = held + np.log(rate + (1 - rate) * np.exp(-held))
    return np.where(big, large, log1p(rate * expm1(np.where(big, 0.0, exponent))))


def log1p(x: Numbers) -> Numbers:
    """log(1 + x); NumPy's own loses the real part's digits where a complex x is small."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    squared = 2 * x.real + x.real**2 + x.imag**2  # |1 + x|^2 - 1
    return 0.5 * np.log1p(np.maximum(squared, _VANISHED - 1)) + 1j * np.arctan2(x.imag, 1 + x.real)


def expm1(x: Numbers) -> Numbers:
    """e^x - 1; NumPy's own takes twice as long where x is complex."""
    if not np.iscomplexobj(x):
        return np.expm1(x)
    growth, half = np.expm1(x.real), np.sin(x.imag / 2)
    turned = 2 * half * half  # 1 - cos
    return np.asarray(growth * (1 - turned) - turned + 1j * ((1 + growth) * np.sin(x.imag)))


def _log(x: Complexes) -> Complexes:
    return np.asarray(np.log(np.where(x == 0, _VANISHED, x)))


def log_moments(nodes: Nodes, s: Complexes) -> Complexes:
    """log sum_i e^{log_weights_i + s losses_i} for points s on one vertical line.

    Where the moment is near 1 it is summed as 1 + E[e^{sL} - 1] - missing, so that its millionth power stays accurate.
    """
    losses, log_weights, missing = nodes
    c = float(s[0].real)
    peaks = log_weights + c * losses
    top = float(peaks.real.max())
    if s.size > DIRECT and _evenly_spaced(s):
        return np.asarray(top + _log(_even_sums(losses, np.exp(peaks - top), s)))
    if s.size > DIRECT:
        return np.asarray(top + _log(_panel_sums(losses, np.exp(peaks - top), s.imag)))
    if missing is not None and _near_one(missing, top):
        return np.asarray(log1p(_gain(losses, log_weights, s[:, None]).sum(1) - missing))
    return np.asarray(top + _log(np.exp(1j * np.outer(s.imag, losses)) @ np.exp(peaks - top)))


def _panel_sums(losses: Numbers, weights: Numbers, omega: Floats) -> Complexes:
    """sum_i weights_i e^{i omega_j losses_i} for rows of sixteen frequencies spread alike from their first.

    Rows of equal width share the exponentials of their offsets, so that each row costs one exponential a node.
    """
    rows = omega.reshape(-1, 16)
    starts, widths = rows[:, 0], rows[:, -1] - rows[:, 0]
    sums = np.empty(rows.shape, dtype=np.complex128)
    exponents = np.round(np.log2(widths) * 1e6)  # widths differ by factors of two, or not at all
    for exponent in np.unique(exponents):
        alike = np.nonzero(exponents == exponent)[0]
        offsets = np.exp(1j * np.outer(losses, rows[alike[0]] - starts[alike[0]]))
        for block in np.array_split(alike, 1 + alike.size * losses.size // _BLOCK):
            sums[block] = (np.exp(1j * np.outer(starts[block], losses)) * weights) @ offsets
    return sums.ravel()


def _evenly_spaced(s: Complexes) -> bool:
    """Whether s = c + i j spacing, j = 0, 1, ..."""
    return bool(s[0].imag == 0 and np.allclose(s.imag, np.arange(s.size) * s[1].imag, rtol=1e-14, atol=0))


def _gain(losses: Numbers, log_weights: Numbers, s: Numbers | float) -> Numbers:
    """weight * (e^{s loss} - 1), also where the exponential alone would overflow."""
    exponent = losses * s
    mild = exponent.real < 30
    if mild.all():
        return np.asarray(np.exp(log_weights) * expm1(exponent), dtype=exponent.dtype)
    gentle = np.exp(log_weights) * expm1(np.where(mild, exponent, 0.0))
    return np.asarray(np.where(mild, gentle, np.exp(np.where(mild, 0.0, log_weights + exponent))))


def _log_near_one(nodes: Nodes, c: float) -> float:
    """K at a real c where the moment is near 1."""
    return float(np.log1p(_gain(nodes.losses, nodes.log_weights, c).sum().real - (nodes.missing or 0.0)))


def _near_one(missing: float | None, top: float) -> bool:
    """Whether a moment with this largest term is best summed as a difference from 1."""
    return missing is not None and -_SUNK < top < _BULK


def tilted_moments(nodes: Nodes, c: float) -> tuple[float, float, float]:
    """K, K' and K'' at the real point c: log of the moment, mean and variance of the loss tilted by e^{cL}."""
    losses, log_weights, missing = nodes
    peaks = log_weights + c * losses
    top = float(peaks.real.max())
    far = top + float(np.log(np.exp(peaks - top).sum()).real)
    value = _log_near_one(nodes, c) if _near_one(missing, top) else far
    weights = np.exp(log_weights + c * losses - value)
    mean = weights @ losses
    return value, float(mean.real), float((weights @ (losses - mean) ** 2).real)


def _even_sums(losses: Numbers, weights: Numbers, s: Complexes) -> Complexes:
    """sum_i weights_i e^{i omega_j losses_i} for omega_j = j * spacing: two short tables and one matrix product."""
    spacing = float(s[1].imag - s[0].imag)
    width = int(np.ceil(np.sqrt(s.size)))
    fine = np.exp(1j * spacing * np.outer(losses, np.arange(width)))
    coarse = np.exp(1j * spacing * width * np.outer(np.arange(-(-s.size // width)), losses)) * weights
    return np.asarray((coarse @ fine).ravel()[: s.size])


def _peak(height: Numbers) -> float:
    """The logarithm of the largest term of a moment, which must not lie at the ends of the range."""
    peak = float(height.real.max())
    if not (isfinite(peak) and max(height[0].real, height[-1].real) <= peak - _NEGLIGIBLE + 2):
        raise UnresolvedError("the moment is infinite, or comes from the ends of the range")
    return peak


@dataclass
class Rule:
    """Nodes for the moments E[e^{sL(X)}], X having an analytic density on `reach`, `missing` of whose mass is missing.

    A trapezoidal rule, which converges exponentially here. Off the real axis of s the nodes are lifted by i * `lift`:
    the integral is the same, but there e^{i omega L} decays where L is steep instead of oscillating, so a few hundred
    nodes serve any frequency.
    """

    loss: Callable[[Numbers], Numbers]
    log_density: Callable[[Numbers], Numbers]
    reach: tuple[float, float]
    lift: float
    missing: float | None = 0.0
    axis: int = 2**9
    """Number of the fixed nodes on the real axis."""
    _latest: tuple[float, float, Nodes] | None = None

    def nodes(self, s: Complexes) -> Nodes:
        """For points on one vertical line; those found last serve the same line up to the same frequency."""
        c, fastest = float(s[0].real), float(s.imag.max())
        if self._latest is None or self._latest[0] != c or not 0 < fastest <= self._latest[1]:
            self._latest = c, fastest, self._settled(c, fastest)
        return self._latest[2]

    def tilted(self, c: float) -> tuple[float, float, float]:
        """K, K' and K'' at the real point c, by fixed nodes where every second one of them gives the same."""
        nodes = self._axis
        peaks = nodes.log_weights + c * nodes.losses
        top = _peak(peaks)
        terms = np.exp(peaks - top)
        total = float(terms.sum())
        if abs(2 * float(terms[::2].sum()) - total) > 1e-9 * total:
            return tilted_moments(self._settled(c, 0.0), c)
        value = _log_near_one(nodes, c) if _near_one(nodes.missing, top) else top + log(total)
        mean = float(terms @ nodes.losses) / total
        return value, mean, float(terms @ (nodes.losses - mean) ** 2) / total

    @cached_property
    def _axis(self) -> Nodes:
        return self._between(*self.reach, self.axis, 0.0)

    def _between(self, low: float, high: float, count: int, lift: complex) -> Nodes:
        x = np.linspace(low, high, count + 1) + lift
        return Nodes(self.loss(x), self.log_density(x) + np.log((high - low) / count), self.missing)

    def _settled(self, c: float, fastest: float) -> Nodes:
        """The number of nodes is doubled until the moments at a few points of the line no longer move."""
        low, high, peak = self._range(c)
        probes = fastest * np.array([0.0, 0.01, 0.1, 0.5, 1.0]) if fastest else np.zeros(1)
        count, before = max(32, int(2.5 * (high - low))), np.full(probes.size, np.inf)
        while count <= _FINEST:
            nodes = self._between(low, high, count, 1j * self.lift if fastest else 0.0)
            terms = nodes.log_weights + c * nodes.losses - peak
            if not terms.real.max() < _BULK:
                raise UnresolvedError(f"the moment at {c:g} has a narrow peak")
            moments = np.exp(terms) @ np.exp(1j * np.outer(nodes.losses, probes))
            if np.abs(moments - before).max() <= _CLOSE * abs(moments[0]):
                return nodes
            count, before = 2 * count, moments
        raise UnresolvedError(f"more than {_FINEST} nodes needed at frequency {fastest:g}")

    def _range(self, c: float) -> tuple[float, float, float]:
        """Where the moment at c comes from, and the logarithm of its largest term."""
        x = np.linspace(*self.reach, self.axis + 1)
        log_density = self._axis.log_weights
        height = log_density + c * self._axis.losses
        peak = _peak(height)
        if _near_one(self.missing, peak):  # summed as a difference from 1, which needs all of Q as well
            height = np.maximum(height, log_density)
        kept = x[height.real >= height.real.max() - _NEGLIGIBLE]
        return float(kept[0]) - 0.5, float(kept[-1]) + 0.5, peak
