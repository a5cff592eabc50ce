"""Moments E_Q[e^{sL}] along a vertical line, as sums over a few nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIRECT", "gaussian_nodes", "log_moments", "tilted_moments"]

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_NEGLIGIBLE = 44.0  # e^-44 = 8e-20 of the largest term: below double precision even after summing
_BULK = 30.0  # moments up to about e^30 are summed as a difference from 1
DIRECT = 64  # up to so many points on a line every exponential is computed by itself
_FINEST = 2**17


def log_moments(losses: Floats, log_weights: Floats, s: Complexes) -> Complexes:
    """log sum_i e^{log_weights_i + s losses_i} for points s = c + i j spacing, j = 0, 1, ... on one line.

    Where the moment is near 1 it is summed as 1 + E[e^{sL} - 1], so that its millionth power stays accurate.
    """
    c = float(s[0].real)
    peaks = log_weights + c * losses
    top = float(peaks.max())
    if s.size > DIRECT:
        return np.asarray(top + np.log(_uniform_sums(losses, np.exp(peaks - top), s)))
    if top < _BULK:
        return np.asarray(np.log1p(np.exp(log_weights) @ np.expm1(np.outer(losses, s))))
    return np.asarray(top + np.log(np.exp(peaks - top) @ np.exp(1j * np.outer(losses, s.imag))))


def tilted_moments(losses: Floats, log_weights: Floats, c: float) -> tuple[float, float, float]:
    """K, K' and K'' at the real point c: log of the moment, mean and variance of the loss tilted by e^{cL}."""
    value = float(log_moments(losses, log_weights, np.array([complex(c)]))[0].real)
    weights = np.exp(log_weights + c * losses - value)
    mean = float(weights @ losses)
    return value, mean, float(weights @ (losses - mean) ** 2)


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
    coarse = np.linspace(low, high, int(2 * (high - low)) + 2)
    height = c * loss(coarse) + log_density(coarse)
    if height.max() < _BULK:  # the moment is then summed as a difference from 1, which needs all of Q as well
        height = np.maximum(height, log_density(coarse))
    kept = coarse[height > height.max() - _NEGLIGIBLE]
    low, high = kept[0] - 0.5, kept[-1] + 0.5
    probes = s[[0, s.size // 2, -1]]
    count = max(32, int(2 * (high - low)))
    peak, before = float(height.max()), np.full(probes.size, np.inf)
    while True:
        x = np.linspace(low, high, count + 1)
        losses, log_weights = loss(x), log_density(x) + np.log((high - low) / count)
        moments = np.exp(log_weights + c * losses - peak) @ np.exp(1j * np.outer(losses, probes.imag))
        if np.abs(moments - before).max() <= 1e-9 * abs(moments[0]) or count >= _FINEST:
            return losses, log_weights
        count, before = 2 * count, moments
