"""Convolution on a circle of losses, by FFT, and its tilted law: divergence and tails from both sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, inf, log, log1p, sqrt

import numpy as np
from numpy.fft import irfft, rfft

from deniable.loss.arrays import EPS, Complexes, Floats
from deniable.loss.compose.cells import Cells
from deniable.loss.compose.cumulants import TINY, Composition


@dataclass(frozen=True)
class GridComposition:
    """Steps on one grid, tilted by e^{cL} and convolved on a circle of `size` points from `first` on."""

    composition: Composition
    cells: list[Cells]
    c: float
    spacing: float
    size: int
    first: int

    def law(self) -> GridLaw:
        counts = [count for _, count in self.composition.parts]
        pmf, height = self._convolve_law([cells.log_masses for cells in self.cells])
        steps = self.composition.steps
        moves = any(cells.moved > 0 for cells in self.cells)
        true, true_height = self._convolve_law([cells.log_true for cells in self.cells]) if moves else (pmf, height)
        lost = sum(n * log1p(-min(cells.lost, 1 - EPS)) for cells, n in zip(self.cells, counts, strict=True))
        moved, drift = (
            sum(n * getattr(cells, name) for cells, n in zip(self.cells, counts, strict=True))
            for name in ("moved", "drift")
        )
        roundoff = EPS * (16 + 4 * steps) * float(pmf.max())
        wrapped = self._folded_mass([cells.log_masses for cells in self.cells], height) + 4 * steps * EPS
        losses = (self.first + np.arange(self.size)) * self.spacing
        same = true_height - height
        true_wrapped = self._folded_mass([cells.log_true for cells in self.cells], true_height) if moves else 0.0
        return GridLaw(
            self.c,
            height,
            losses,
            pmf,
            true * exp(min(same, 0.0)),
            self.spacing,
            -float(np.expm1(lost)),
            self.composition.escape,
            moved,
            drift,
            roundoff,
            wrapped,
            wrapped + true_wrapped,
            self._ends[0] < self.first,
        )

    def _convolve_law(self, logs: list[Floats]) -> tuple[Floats, float]:
        """The normalised tilted law on the window, and the logarithm of what it was divided by."""
        transform, height = np.ones(self.size // 2 + 1, dtype=np.complex128), 0.0
        for cells, log_masses, (_, count) in zip(self.cells, logs, self.composition.parts, strict=True):
            tilted = cells.tilt_masses(log_masses, self.spacing, self.c)
            top = float(tilted.max())
            weights = np.exp(tilted - top)
            total = float(weights.sum())
            place = (cells.first + np.arange(weights.size)) % self.size
            transform *= _power(rfft(np.bincount(place, weights / total, self.size)), count)
            height += count * (top + log(total))
        return np.roll(irfft(transform, self.size), -(self.first % self.size)).clip(min=0.0), height

    @property
    def _ends(self) -> tuple[int, int]:
        """The least and the largest loss of all steps together, in cells."""
        ends = [(cells.first, cells.first + cells.log_masses.size - 1) for cells in self.cells]
        counts = [count for _, count in self.composition.parts]
        low, high = (sum(n * end[side] for n, end in zip(counts, ends, strict=True)) for side in (0, 1))
        return low, high

    def _folded_mass(self, logs: list[Floats], height: float) -> float:
        """Chernoff's bound on the share of the tilted mass outside of the window."""
        low, high = self._ends
        folded = 0.0
        if low < self.first:
            folded += self._beyond(logs, height, self.first * self.spacing)
        if high >= self.first + self.size:
            folded += self._beyond(logs, height, (self.first + self.size) * self.spacing)
        return folded

    def _beyond(self, logs: list[Floats], height: float, end: float) -> float:
        """The least e^{K(c') - K(c) - (c' - c) end} of a few c' on that side, on the scale of the window."""
        middle = (self.first + self.size / 2) * self.spacing
        bounds = []
        for share in (1.0, 1.5, 2.0, 3.0, 5.0):
            other = self.c + share * TINY / (end - middle)
            moment = sum(
                n * _log_sum(cells.tilt_masses(masses, self.spacing, other))
                for cells, masses, (_, n) in zip(self.cells, logs, self.composition.parts, strict=True)
            )
            bounds.append(moment - height - (other - self.c) * end)
        return exp(min(*bounds, 0.0))


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).sum()))


def _power(base: Complexes, exponent: int) -> Complexes:
    """By squaring: many times as fast as through logarithms."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result


_BLOCK = 512  # terms
_SUMMED = 2000 * EPS  # relative round-off of a sum over blocks
_MOST_EXPONENT = 650.0
_LEFT_OUT_NATS = 60.0  # e^-60 of a sum is left out, far below its round-off


class _Suffixes:
    """Sums of an array from any place to its end, block by block: little round-off, and no cost a question."""

    def __init__(self, array: Floats) -> None:
        blocks = -(-array.size // _BLOCK)
        self._padded = np.zeros((blocks, _BLOCK))
        self._padded.ravel()[: array.size] = array
        self._beyond = np.append(np.cumsum(self._padded.sum(1)[::-1])[::-1], 0.0)

    def total(self, first: int) -> float:
        block, place = divmod(first, _BLOCK)
        if block >= len(self._padded):
            return 0.0
        return float(self._padded[block, place:].sum() + self._beyond[block + 1])


@dataclass(frozen=True)
class GridLaw:
    """The composition on the grid, tilted by e^{cL}: Q-mass of loss_i is pmf_i e^{height - c loss_i}."""

    c: float
    height: float
    losses: Floats
    pmf: Floats
    true: Floats
    """What truly arrives under P, divided by e^loss, in the unit of `pmf`."""
    spacing: float
    lost: float
    """P-mass counted at infinity."""
    escape: float
    """P-mass that is truly there."""
    moved: float
    """Variance of all moves together."""
    drift: float
    """How far round-off may have put losses that count as lying on the grid, all steps together."""
    roundoff: float
    """Absolute, of each pmf entry."""
    wrapped: float
    """Tilted mass that may have been folded into the window, or lost in the steps' round-off."""
    true_wrapped: float
    """The same of what truly arrives: losses that moved down may have left the window below (Lemma G5)."""
    cut_below: bool
    """Whether there are losses below the window."""

    def _misses(self, k: float, shift: float) -> bool:
        """Whether some losses above k lie below the window: the tilt may hide any mass there (Lemma G5)."""
        return self.cut_below and self.c > shift and k < float(self.losses[0])

    @cached_property
    def _middle(self) -> float:
        return float(self.losses[self.losses.size // 2])

    @cached_property
    def _suffixes(self) -> dict[tuple[str, float], _Suffixes]:
        return {}

    def _array(self, name: str) -> Floats:
        return np.ones_like(self.pmf) if name == "ones" else np.asarray(getattr(self, name))

    def _weighted_sum(self, name: str, first: int, origin: float, shift: float) -> float:
        """Sum of an array times e^{-(c - shift)(loss - origin)} from `first` on; `origin` lies in the window."""
        rate = self.c - shift
        if rate * (self._middle - float(self.losses[0])) > _MOST_EXPONENT:  # weights fall fast: few of them matter
            part = slice(first, first + ceil(_LEFT_OUT_NATS / (rate * self.spacing)) + 1)
            return float((self._array(name)[part] * np.exp(-rate * np.maximum(self.losses[part] - origin, 0.0))).sum())
        if (name, shift) not in self._suffixes:
            weights = np.exp(-rate * (self.losses - self._middle))
            self._suffixes[name, shift] = _Suffixes(self._array(name) * weights)
        return self._suffixes[name, shift].total(first) * exp(rate * (origin - self._middle))

    def _above(self, k: float) -> tuple[int, float]:
        """The first point above k, and where in the window the weights are 1."""
        first = int(np.searchsorted(self.losses, k, side="right"))
        return first, min(max(k, float(self.losses[0])), float(self.losses[-1]))

    def _error(self, first: int, origin: float, shift: float, wrapped: float) -> float:
        """Of a sum of masses from `first` on."""
        return self.roundoff * self._weighted_sum("ones", first, origin, shift) + wrapped

    def stick(self, k: float) -> tuple[float, float]:
        """Lower and upper end of the divergence at k, of finite losses."""
        first, origin = self._above(k)
        growth = exp(min(k - origin, 0.0))
        p, true = (self._weighted_sum(name, first, origin, 1.0) for name in ("pmf", "true"))
        q = growth * self._weighted_sum("pmf", first, origin, 0.0)
        own, null = (self._error(first, origin, side, self.wrapped) for side in (1.0, 0.0))
        error = own + growth * null
        slip = (self.drift + _SUMMED + 4 * EPS * (abs(k) + self.spacing)) * p + error
        height = _bounded_exp(self.height - (self.c - 1) * origin)
        most = inf if self._misses(k, 1.0) else height * (max(p - q, 0.0) + slip)
        return max(height * (true - q - slip - self.true_wrapped), 0.0), most

    def tail(self, t: float, shift: float) -> tuple[float, float]:
        """Lower and upper end of P(L > t) (shift 1) or Q(L > t) (shift 0), of finite losses."""
        eta = 1e-9 * max(self._mass(t, shift, "pmf")[0], 1e-300)
        move = self._reach(eta) + 4 * EPS * abs(t)  # an atom that round-off cannot tell from t counts for the upper end
        low, high = self._mass(t + move, shift, "true" if shift else "pmf"), self._mass(t - move, shift, "pmf")
        eta = eta if self.moved > 0 else 0.0
        most = inf if self._misses(t - move, shift) else high[0] + high[1] + eta
        return max(low[0] - low[1] - eta, 0.0), most

    def _mass(self, t: float, shift: float, name: str) -> tuple[float, float]:
        """Mass above t under P or Q and its error; what truly arrives under P, or what dominates it."""
        first, origin = self._above(t)
        total, height = (
            self._weighted_sum(name, first, origin, shift),
            _bounded_exp(self.height - (self.c - shift) * origin),
        )
        drifted = expm1(min(self.drift, 1.0))  # a loss that was put on the grid changes one of both masses
        wrapped = self.wrapped if name == "pmf" else self.true_wrapped
        return height * total, height * (self._error(first, origin, shift, wrapped) + (_SUMMED + drifted) * total)

    def _reach(self, eta: float) -> float:
        """How far the moves may have carried the loss, except with probability eta (Bernstein)."""
        if self.moved == 0:
            return self.drift
        nats = log(1 / min(eta, 0.5))
        return self.drift + self.moved + sqrt(2 * self.moved * nats) + self.spacing * nats

    def slope(self, t: float) -> tuple[float, float]:
        """Lower and upper end of e^t Q(L > t) from those of the divergence around t, which is convex in e^t."""
        ends, move = [(0.0, inf)], sqrt(self.moved)
        here = float(self.stick(t)[0])
        for width in (2 * move, 6 * move, 20 * move) if move > 0 else ():
            before, after = (float(self.stick(at)[1]) for at in (t - width, t + width))  # plain numbers become inf
            ends.append(((here - after) / expm1(min(width, 700.0)), (before - here) / -expm1(-width)))
        return max(low for low, _ in ends), min(high for _, high in ends)


def _bounded_exp(x: float) -> float:
    """e^x; at most about 1e304, which no probability needs."""
    return exp(min(x, 700.0))
