"""How far the residuals lie along vectors that are known before the noise is drawn, and whether clipped shares explain
them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from deniable.examination.diagnostics.p_values import normal
from deniable.examination.recorded.checks.outcomes import ROUNDING
from deniable.examination.recorded.gradients.record_shares import SHARES, RecordShares
from deniable.examination.recorded.run_record import ExaminedStep, RunRecord, noise_of_step, noise_variance

Array = NDArray[np.float64]


def explained_share(gram: Array) -> float:
    values, vectors = np.linalg.eigh(gram[1:, 1:])
    kept = values > 1e-9 * values.max(initial=0.0)
    along = vectors[:, kept].T @ gram[0, 1:] / np.sqrt(values[kept])
    return float(along @ along)


def along_known(steps: tuple[ExaminedStep, ...], grams: list[Array]) -> Iterator[Array]:
    """p-values along the clean sum and along the rest of what is cut, of each step and of all together."""
    rows, degrees = [], np.array([noise_of_step(step)[1] for step in steps])
    for step, gram in zip(steps, grams, strict=True):
        noise, clean = noise_variance(step) ** 0.5, max(gram[1, 1], 1e-30) ** 0.5
        along = gram[0, 1] / clean
        cut = max(gram[2, 2] - gram[1, 2] ** 2 / clean**2, 0.0)  # perpendicular to the clean sum
        over = (gram[0, 2] - along * gram[1, 2] / clean) / cut**0.5 if cut > 1e-9 * clean**2 else np.nan
        rows.append((along / noise, over / noise))
    t_values = np.array(rows).T  # the variance is measured: Student's, on as many degrees as the noise has left
    yield 2 * stdtr(degrees, -np.abs(t_values))
    spread = degrees / np.maximum(degrees - 2, 1)
    yield normal(np.nansum(t_values, axis=1) / np.sqrt(np.maximum(1, (~np.isnan(t_values) * spread).sum(1))))


def together(steps: tuple[ExaminedStep, ...], grams: list[Array]) -> float:
    """p-value of the residual's length along all known vectors, beside that across them."""
    inside, outside, degrees, others = 0.0, 0.0, 0.0, 0.0
    for step, gram in zip(steps, grams, strict=True):
        squares, numbers = noise_of_step(step)
        inside, outside = inside + (gram[0, 0] - squares) / step.clip**2, outside + squares / step.clip**2
        degrees, others = degrees + sum(step.sizes) - numbers, others + numbers
    return float(fdtrc(degrees, others, inside / max(1.0, degrees) / max(outside / others, 1e-300))) if degrees else 1.0


def is_rounding(grams: list[Array]) -> bool:
    """Whether what is left along clean sum and cut is rounding."""
    known = [g[:3, :3] for g in grams]
    left = sum(g[0, 1] for g in known) / max(sum(g[1, 1] for g in known), 1e-30)
    cut = sum(g[0, 2] for g in known) / max(sum(g[2, 2] for g in known), 1e-30)
    most = sum(explained_share(g) for g in grams) / max(sum(g[1, 1] for g in grams), 1e-30)
    return bool(abs(left) < ROUNDING and abs(cut) < ROUNDING and most < ROUNDING**2)


_LEFT = 0.1
"""Of what is not noise, the records' gradients may leave this share unexplained."""
_MORE_NOISE = 1.05
"""Noise above so many times the claimed one hides larger shares, which are then as safe."""


@dataclass(frozen=True)
class LargestShare:
    """Guarantee: if no record's share is above the clipping norm, p_value <= x has probability <= x."""

    steps: tuple[tuple[RecordShares, float], ...]
    """With the claimed standard deviation of their noise."""

    @classmethod
    def of(cls, record: RunRecord, sigmas: NDArray[np.float64]) -> LargestShare:
        """Of a run with this claimed noise in its examined steps."""
        both = zip(record.steps, sigmas, strict=True)
        return cls(tuple((step.shares, float(sigma)) for step, sigma in both if step.shares is not None and sigma > 0))

    @property
    def p_value(self) -> float:
        """That no share is above the first of `SHARES`, or the noise allows more."""
        return self._p_value(0) if self._are_all() else 1.0

    def at_least(self, level: float) -> float:
        """The largest of `SHARES` that some record's share exceeds."""
        return max(share for at, share in enumerate(SHARES) if not at or self._p_value(at) < level)

    def _sums(self) -> tuple[float, float, float, float]:
        """In claimed variances: inside and its dimension, outside and its dimension."""
        rows = [(s.inside / v**2, s.fitted, s.outside / v**2, s.numbers) for s, v in self.steps]
        inside, fitted, outside, numbers = np.sum(rows, axis=0) if rows else np.zeros(4)
        return float(inside), float(fitted), float(outside), float(numbers)

    def _p_value(self, at: int) -> float:
        _, fitted, outside, numbers = self._sums()
        beyond = sum(s.beyond[at] / v**2 for s, v in self.steps)
        return float(fdtrc(fitted, numbers, beyond / fitted / max(outside / numbers, 1e-12))) if fitted else 1.0

    def _are_all(self) -> bool:
        """Whether what is not the claimed noise lies within the records' gradients, so that their shares make it."""
        inside, fitted, outside, numbers = self._sums()
        left = outside - numbers
        within = left <= _LEFT * (inside - fitted) + 3 * (2 * numbers) ** 0.5
        return bool(numbers) and within and outside <= _MORE_NOISE**2 * numbers
