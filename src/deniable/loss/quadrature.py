"""Moments E_Q[e^{sL}] along a vertical line, as sums over a few nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["gaussian_nodes", "log_moments"]

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_NEGLIGIBLE = 44.0  # e^-44 = 8e-20 of the largest term: below double precision even after summing
_DIRECT = 1024  # up to so many points on the line every exponential is computed by itself
_FINEST = 2**17


def log_moments(losses: Floats, log_weights: Floats, s: Complexes) -> Complexes:
    """log sum_i e^{log_weights_i + s losses_i} for points s = c + i j spacing, j = 0, 1, ... on one line.

    Where the moment is near 1 it is summed as 1 + E[e^{sL} - 1], so that its millionth power stays accurate.
    """
    c = float(s[0].real)
    peaks = log_weights + c * losses
    top = float(peaks.max())
    if s.size > _DIRECT:
        return np.asarray(top + np.log(_uniform_sums(losses, np.exp(peaks - top), s)))
    if c * losses.max() < 30 and c * losses.min() < 30:
        weights = np.exp(log_weights)
        drift = np.exp(log_weights).sum() - 1  # the nodes' own error; an exact rule would give 0
        return np.asarray(np.log1p(weights @ np.expm1(np.outer(losses, s)) + drift))
    return np.asarray(top + np.log(np.exp(peaks - top) @ np.exp(1j * np.outer(losses, s.imag))))


def _uniform_sums(losses: Floats, weights: Floats, s: Complexes) -> Complexes:
    """sum_i weights_i e^{i omega_j losses_i} for omega_j = j * spacing: two short tables and one matrix product."""
    spacing = float(s[1].imag - s[0].imag)
    width = int(np.ceil(np.sqrt(s.size)))
    fine = np.exp(1j * spacing * np.outer(losses, np.arange(width)))
    coarse = np.exp(1j * spacing * width * np.outer(np.arange(-(-s.size // width)), losses)) * weights
    return np.asarray((coarse @ fine).ravel()[: s.size])


def gaussian_nodes(
    loss: Callable[[Floats], Floats], log_density: Callable[[Floats], Floats], low: float, high: float, s: Complexes
) -> tuple[Floats, Floats]:
    """Nodes (losses, log weights) for E_Q[e^{sL(X)}] with X of the given density, as a trapezoidal rule.

    The rule converges exponentially for the analytic integrands here, so it is halved until the moment at the
    line's ends and middle no longer moves.
    """
    c = float(s[0].real)
    coarse = np.linspace(low, high, int(4 * (high - low)) + 2)
    height = c * loss(coarse) + log_density(coarse)
    kept = coarse[height > height.max() - _NEGLIGIBLE]
    low, high = kept[0] - 0.25, kept[-1] + 0.25
    probes = np.array([s[0], s[s.size // 2], s[-1]])
    count, before = 32, None
    while True:
        x = np.linspace(low, high, count + 1)
        losses, weights = loss(x), log_density(x) + np.log((high - low) / count)
        peaks = weights + c * losses
        top = peaks.max()
        moments = np.exp(peaks - top) @ np.exp(1j * np.outer(losses, probes.imag))
        if (
            before is not None
            and np.abs(moments * np.exp(top - before[1]) - before[0]).max() <= 1e-9 * before[0][0].real
        ):
            return losses, weights
        if count >= _FINEST:
            return losses, weights
        count, before = 2 * count, (moments, top)
