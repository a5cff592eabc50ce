"""Compositions of laws: rigorous brackets of P(L > t) and of the hockey-stick divergence H(k), for any composition.

Routes, all from the steps' panels (hunt.laws) under P alone, so that H(k) = E_P[(1 - e^{k-L})+] has no cap:

- *transform*: every panel's mean is moved to one of its two neighbours on a grid, at random, keeping its mean; the
  steps are tilted by e^{cL} and convolved by FFT. All moves together have mean 0, a known variance, and a bounded size:
  Bernstein's inequality says how far the sum may have gone.
- *moments*: Chernoff's upper bounds, Cantelli's inequality and the theorem of Berry and Esseen (constant .56,
  Shevtsova 2010), for any number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, expm1, inf, log, log1p, log2, sqrt

import numpy as np
from scipy.special import log_ndtr, ndtr

from hunt.laws import Floats, Law

__all__ = ["Bracket", "Release"]

_EPS = 2.3e-16
_TINY = 1e-290
_ROUNDED = 1e-10  # a law whose masses miss 1 by more leaves something out on purpose
_MOST_POINTS = 2**20
_EXTREMES = np.errstate(divide="ignore", over="ignore", invalid="ignore")
"""For bounds at several tilts, of which the least is taken: one that overflows, or is no number, never is."""


@dataclass(frozen=True)
class Bracket:
    """The truth lies in [low, high]; `by` names the routes."""

    low: float
    high: float
    by: str

    def meet(self, other: Bracket) -> Bracket:
        """Both are right."""
        low = max((self.low, self.by), (other.low, other.by))
        high = min((self.high, self.by), (other.high, other.by))
        return Bracket(low[0], high[0], low[1] if low[1] == high[1] else f"{low[1]} below, {high[1]} above")

    def worse(self, other: Bracket) -> Bracket:
        """The larger of two unknown numbers."""
        return Bracket(max(self.low, other.low), max(self.high, other.high), self.by)


def _gain(gap: Floats) -> Floats:
    """(1 - e^-gap)+"""
    return -np.expm1(-np.maximum(gap, 0.0))


@dataclass
class _Tilted:
    """The sum of all steps on a grid, tilted by e^{cL}: P-mass at losses[i] is pmf[i] e^{height - c losses[i]}."""

    c: float
    height: float
    losses: Floats
    pmf: Floats
    spacing: float
    moves: list[tuple[int, Floats, Floats, Floats]]  # runs; of each panel the P-mass, the move's variance and its most
    wrapped: float
    shifts: dict[float, float] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return sum(runs for runs, *_ in self.moves)

    def shift(self, eta: float) -> float:
        """How far the moves may have gone together, except with probability eta (Bennett's inequality)."""
        heat = max(1.0, ceil(-8 * log(max(eta, 1e-305))) / 8)  # nats, so rounded that few are computed
        if heat not in self.shifts:
            self.shifts[heat] = self._shift(heat)
        return self.shifts[heat]

    @_EXTREMES
    def _shift(self, heat: float) -> float:
        farthest = sum(runs * float(most.max()) for runs, _, _, most in self.moves)
        if farthest == 0:
            return 0.0
        deviation = sqrt(sum(runs * float(p @ v) for runs, p, v, _ in self.moves))
        shifts = [farthest]
        for s in np.geomspace(1e-3, 10, 15) * sqrt(heat) / max(deviation, 1e-300):
            reach = [np.minimum(s * most, 700.0) for *_, most in self.moves]
            if max(float((s * most).max()) for *_, most in self.moves) < 600:
                growth = [
                    float((p * v * s**2 * _bennett(x)).sum()) for (_, p, v, _), x in zip(self.moves, reach, strict=True)
                ]
                rise = sum(runs * log1p(more) for (runs, *_), more in zip(self.moves, growth, strict=True))
                shifts.append((rise + heat) / s)
        return min(shifts)

    def tail(self, t: float, gain: bool) -> tuple[float, float]:
        """E_P of 1 (or of 1 - e^{t-L}) over losses above t, and how far round-off may have moved it."""
        first = int(np.searchsorted(self.losses, t, side="right"))
        losses, pmf = self.losses[first:], self.pmf[first:]
        scale = np.exp(np.clip(self.height - self.c * losses, -745.0, 705.0))
        if gain:
            scale = scale * _gain(losses - t)
        noise = _EPS * (32 + 4 * self.steps) * float(self.pmf.max())
        rest = self.wrapped * exp(min(max(self.height - (self.c * t if self.c else 0.0), -745.0), 700.0))
        with np.errstate(over="ignore"):
            return float((scale * pmf).sum()), noise * float(scale.sum()) + rest


def _bennett(x: Floats) -> Floats:
    """(e^x - 1 - x) / x^2"""
    return np.where(x > 1e-3, (np.expm1(x) - x) / np.maximum(x, 1e-3) ** 2, 0.5 + x / 6 + x * x / 24)


@dataclass(frozen=True)
class _OnGrid:
    """A law whose panels went to their cells' ends, and then was tilted: logarithms of the weights at either end."""

    cell: Floats
    share: Floats  # of the P-mass, to the upper end
    lower: Floats
    upper: Floats


def _moved(law: Law, c: float, spacing: float) -> _OnGrid:
    cell = np.floor(law.loss / spacing + 1e-11)
    share = np.maximum(law.loss / spacing - cell, 0.0)
    share = np.where(share < 1e-11, 0.0, share)  # on the grid, but for round-off
    start = law.log_mass + c * cell * spacing
    with np.errstate(divide="ignore"):
        return _OnGrid(cell, share, start + np.log1p(-share), start + c * spacing + np.log(share))


def _log_sum(step: _OnGrid, heat: float, spacing: float) -> float:
    """ln of the sum of all weights times e^{heat loss}."""
    lower, upper = step.lower + heat * step.cell * spacing, step.upper + heat * (step.cell + 1) * spacing
    top = max(float(lower.max()), float(upper.max()))
    return top + log(float(np.exp(lower - top).sum() + np.exp(upper - top).sum()))


class Release:
    """The sum L of independent losses, each law run so many times, all under P."""

    def __init__(self, parts: Sequence[tuple[Law, int]], points: int = 2**15) -> None:
        self.parts = list(parts)
        self.points = points
        self._tilted: dict[float, _Tilted] = {}
        self._cumulants: dict[tuple[float, bool], tuple[float, float, float]] = {}

    @cached_property
    def escape(self) -> float:
        """P(L = inf)."""
        if any(law.escape >= 1 for law, _ in self.parts):
            return 1.0
        return -expm1(sum(runs * log1p(-law.escape) for law, runs in self.parts))

    @cached_property
    def least(self) -> float:
        return sum(runs * float((law.loss - law.width).min()) for law, runs in self.parts) if self.finite else 0.0

    @cached_property
    def largest(self) -> float:
        """Of finite losses."""
        return sum(runs * float((law.loss + law.width).max()) for law, runs in self.parts) if self.finite else 0.0

    @cached_property
    def roundoff(self) -> float:
        """How far the sum of all losses may be off because each is a double."""
        sizes = (runs * float((np.exp(law.log_mass) * np.abs(law.loss)).sum()) for law, runs in self.parts)
        return 1e-15 * sum(sizes)

    @property
    def finite(self) -> bool:
        """Whether any finite loss is possible."""
        return all(law.loss.size for law, _ in self.parts)

    # --- moments ---

    def cumulant(self, c: float, widened: bool = False) -> tuple[float, float, float]:
        """ln E[e^{cL}; L finite], and the tilted mean and variance; `widened`: an upper bound of the first."""
        if (c, widened) not in self._cumulants:
            self._cumulants[c, widened] = self._cumulant(c, widened)
        return self._cumulants[c, widened]

    @_EXTREMES
    def _cumulant(self, c: float, widened: bool) -> tuple[float, float, float]:
        value = mean = variance = 0.0
        for law, runs in self.parts:
            logs = law.log_mass + c * law.loss + (abs(c) * law.width if widened else 0.0)
            top = float(logs.max())
            weights = np.exp(logs - top)
            total = float(weights.sum())
            centre = float((weights * law.loss).sum()) / total
            value += runs * (top + log(total))
            mean += runs * centre
            variance += runs * float((weights * (law.loss - centre) ** 2).sum()) / total
        return value, mean, variance

    def saddle(self, t: float) -> float:
        """The tilt c >= 0 whose mean is t (0 where the mean is above t already)."""
        if self.cumulant(0.0)[1] >= t:
            return 0.0
        low, high = 0.0, 1.0
        while self.cumulant(high)[1] < t and high < 1e12:
            low, high = high, 4 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cumulant(middle)[1] < t else (low, middle)
            if high - low < 0.02 * high:
                break
        return low

    def _moments(self, t: float, gain: bool) -> Bracket:
        """Chernoff above, Cantelli and Berry-Esseen on both sides; over finite losses."""
        mass = exp(self.cumulant(0.0)[0])
        if mass <= 0:
            return Bracket(0.0, 0.0, "moments")
        c = self.saddle(t)
        factor = exp(c * log(c / (1 + c)) - log1p(c)) if gain and c > 0 else 1.0
        high = min(mass, factor * exp(min(0.0, self.cumulant(c, widened=True)[0] - c * t))) if c > 0 else mass
        low = 0.0
        _, mean, variance = self.cumulant(0.0)
        spread = variance + self.within
        if t < mean:
            gap = (mean - t) / 2 if gain else mean - t
            low = (1 - spread / (spread + gap**2) if spread + gap**2 > 1e-300 else 0.0) * (
                -expm1(-gap) if gain else 1.0
            )
        else:
            high = min(high, mass * spread / (spread + (t - mean) ** 2)) if spread > 1e-300 else high
        chernoff = Bracket(mass * max(low, 0.0), high * (1 + 1e-9), "moments")
        return chernoff.meet(self._berry_esseen(t, gain, mean, variance))

    @cached_property
    def within(self) -> float:
        """At most this much variance is hidden inside the panels."""
        return sum(runs * float((np.exp(law.log_mass) * law.width**2).sum()) for law, runs in self.parts) / 4

    def _berry_esseen(self, t: float, gain: bool, mean: float, variance: float) -> Bracket:
        third, mass = 0.0, exp(self.cumulant(0.0)[0])
        for law, runs in self.parts:
            p = np.exp(law.log_mass)
            p = p / p.sum()
            centre = float((p * law.loss).sum())
            third += runs * float((p * (np.abs(law.loss - centre) + law.width) ** 3).sum())
        if variance < 1e-200 or variance < 1e3 * self.within or not third < inf:
            return Bracket(0.0, 1.0, "Berry-Esseen")
        # the variance lies in [variance, variance + within]: both Gaussians differ by less than within / variance
        error = 0.56 * third / variance**1.5 + self.within / variance + 1e-12
        sd = sqrt(variance)
        z = (mean - t) / sd
        value = float(ndtr(z))
        if gain:  # E (1 - e^{t-L})+ of a Gaussian: Phi(z) - e^{t - mean + variance / 2} Phi(z - sd)
            value -= exp(float(log_ndtr(z - sd)) + t - mean + variance / 2)
        return Bracket(mass * (value - error), mass * (value + error) if error < 1 else mass, "Berry-Esseen")

    # --- transform ---

    @_EXTREMES
    def _compose(self, c: float) -> _Tilted:
        value, mean, variance = self.cumulant(c)
        low, high = self._window(c, value, mean, variance)
        for _ in range(12):
            spacing = max(self._spacing(high - low, self.points), 1e-15 * max(abs(low), abs(high)))
            wrapped = self._wrapped(c, spacing, low, high)
            if wrapped < 1e-16:
                break
            low, high = mean - 1.4 * (mean - low), mean + 1.4 * (high - mean)
        size = max(self.points, 2 ** ceil(log2(max((high - low) / spacing, 1.0) + 5)))
        transform: np.ndarray = np.zeros(size // 2 + 1, dtype=np.complex128)
        moves, first = [], round(low / spacing)
        height = 0.0
        for law, runs in self.parts:
            step = _moved(law, c, spacing)
            top = max(float(step.lower.max()), float(step.upper.max()))
            index = (step.cell % size).astype(np.int64)
            circle = np.bincount(index, np.exp(step.lower - top), size).astype(np.float64)
            circle += np.bincount((index + 1) % size, np.exp(step.upper - top), size)
            total = float(circle.sum())
            circle /= total
            height += runs * (top + log(total))
            circle[0] -= 1.0  # log1p of what is left: exact for steps that hardly move
            with np.errstate(divide="ignore", invalid="ignore"):
                transform += runs * np.log1p(np.fft.rfft(circle))
            within = step.share * (1 - step.share) * spacing**2 + law.width**2 / 4
            moves.append((runs, np.exp(law.log_mass), within, law.width + np.where(step.share > 0, spacing, 0.0)))
        pmf = np.roll(np.fft.irfft(np.exp(transform), size), -(first % size))
        losses = (float(first) + np.arange(size)) * spacing
        return _Tilted(c, height, losses, pmf, spacing, moves, wrapped)

    def _wrapped(self, c: float, spacing: float, low: float, high: float) -> float:
        """How much of the tilted law, moves included, may lie outside the window (Chernoff)."""
        steps = [(_moved(law, c, spacing), runs) for law, runs in self.parts]
        chances, before = 0.0, sum(runs * _log_sum(step, 0.0, spacing) for step, runs in steps)
        for sign, end in ((1, high), (-1, -low)):
            ends = [(step.cell + (step.share > 0) if sign > 0 else -step.cell).max() * runs for step, runs in steps]
            if float(sum(ends)) * spacing <= end:
                continue
            rises = [
                sum(runs * _log_sum(step, sign * heat, spacing) for step, runs in steps) - before - heat * end
                for heat in np.geomspace(0.1, 60, 7) * 42 / (high - low)
            ]
            chances += exp(min(0.0, *rises))
        return chances

    def _spacing(self, width: float, size: int) -> float:
        """So that the window fits; where all losses are multiples of one number, so that none has to move."""
        spacing = max(width / (size - 4), 1e-300)
        if any(law.width.any() for law, _ in self.parts):
            return spacing
        losses = np.concatenate([np.abs(law.loss) for law, _ in self.parts])
        unit = float(losses[losses > 0].min(initial=inf))
        off = np.abs(losses / unit - np.round(losses / unit)) if unit < inf else losses
        return unit if unit < inf and off.max() < 1e-12 and width / unit < _MOST_POINTS else spacing

    def _window(self, c: float, height: float, mean: float, variance: float) -> tuple[float, float]:
        """Losses that the tilted law hardly leaves (Chernoff)."""
        ends, sd = [], sqrt(variance) + 1e-300
        for sign, farthest in ((1, self.largest - mean), (-1, mean - self.least)):
            best = farthest
            for heat in np.geomspace(1e-3, 60, 14) / sd:
                rise = self.cumulant(c + sign * heat)[0] - height - sign * heat * mean
                best = min(best, (rise + 40) / heat)
            ends.append(mean + sign * best * 1.01)
        pad = 1e-3 * (ends[0] - ends[1]) + 1e-290
        return ends[1] - pad, ends[0] + pad

    def _law_for(self, t: float) -> _Tilted:
        """Tilted towards t; near-by t share one."""
        tilt = self.saddle(t)
        tilt = 2.0 ** (round(2 * log2(tilt)) / 2) if tilt > 0 else 0.0
        if tilt not in self._tilted:
            self._tilted[tilt] = self._compose(tilt)
        return self._tilted[tilt]

    def about(self, level: float) -> tuple[float, float]:
        """About where P(L > t), of finite losses, falls to `level`, and how far the grid may be wrong about t."""
        t = self.cumulant(0.0)[1]
        for _ in range(4):
            law = self._law_for(t)
            mass = law.pmf.clip(min=0.0) * np.exp(np.clip(law.height - law.c * law.losses, -745.0, 705.0))
            tails = np.cumsum(mass[::-1])[::-1]
            found = float(law.losses[min(int(np.searchsorted(-tails, -level)), tails.size - 1)])
            if abs(found - t) <= 0.1 * law.shift(1e-9):
                break
            t = found
        return found, law.shift(1e-9 * max(level, 1e-280)) + law.spacing

    def _transformed(self, t: float, gain: bool) -> Bracket:
        law = self._law_for(t)
        middle, _ = law.tail(t, gain)
        eta = max(1e-9 * middle, _TINY)
        shift = law.shift(eta)
        above, up = law.tail(t - shift, gain)
        below, down = law.tail(t + shift, gain)
        mass = 1 - self.escape
        return Bracket(
            max(0.0, (below - down) * (1 - 1e-9) - eta), min(mass, (above + up) * (1 + 1e-9) + eta), "transform"
        )

    # --- answers ---

    @cached_property
    def _drift(self) -> float:
        """Relative: each step's masses sum to 1 but for round-off, which all its runs have."""
        missed = [(abs(float(np.exp(law.log_mass).sum()) + law.escape - 1), runs) for law, runs in self.parts]
        return 1e-12 + sum(runs * (1e-15 + (miss if miss < _ROUNDED else 0.0)) for miss, runs in missed)

    def stick(self, k: float) -> Bracket:
        """E[(1 - e^{k-L})+] = H(k)."""
        return self._answer(k, gain=True)

    def tail(self, t: float) -> Bracket:
        """P(L > t)."""
        return self._answer(t, gain=False)

    def _answer(self, t: float, gain: bool) -> Bracket:
        escape = self.escape
        if not self.finite or not self.parts or t > self.largest * (1 + 1e-12) + 1e-300:
            return Bracket(escape * (1 - 1e-12), min(1.0, escape * (1 + 1e-12)), "support")
        found = self._moments(t, gain).meet(self._transformed(t, gain))
        if not gain and t < self.least:
            found = found.meet(Bracket(exp(self.cumulant(0.0)[0]) * (1 - 1e-12), 1.0, "support"))
        drift = self._drift
        low = min(max(0.0, found.low), 1.0) * (1 - drift) + escape * (1 - 1e-12)
        return Bracket(max(0.0, low), min(1.0, found.high * (1 + drift) + escape * (1 + 1e-12)), found.by)
