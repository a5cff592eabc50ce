"""Moments E_Q[e^{sL}] along a vertical line, as sums over a few nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.loss.arrays import Complexes, Floats, Numbers

__all__ = ["DIRECT", "Nodes", "UnresolvedError", "gaussian_nodes", "log_mixture", "log_moments", "tilted_moments"]

Nodes = tuple[Numbers, Numbers]

DIRECT = 64  # up to so many points on a line every exponential is computed by itself
_NEGLIGIBLE = 44.0  # e^-44 = 8e-20 of the largest term: below double precision even after summing
_BULK = 30.0  # moments up to about e^30 are summed as a difference from 1
_FINEST = 2**14
_VANISHED = 2.0**-52  # a moment that has cancelled to nothing
_BLOCK = 2**20  # exponentials computed at a time


class UnresolvedError(ArithmeticError):
    """A moment or a line that is not worth its cost."""


def log_mixture(rate: float, exponent: Numbers) -> Numbers:
    """ln(1 - rate + rate e^exponent), accurate where it is small and where the exponent is large."""
    big = exponent.real > 30
    held = np.where(big, exponent, 0.0)
    large = held + np.log(rate + (1 - rate) * np.exp(-held))
    return np.where(big, large, _log1p(rate * np.expm1(np.where(big, 0.0, exponent))))


def _log1p(x: Numbers) -> Numbers:
    """NumPy's own loses the real part's digits where a complex x is small."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    squared = 2 * x.real + x.real**2 + x.imag**2  # |1 + x|^2 - 1
    return 0.5 * np.log1p(np.maximum(squared, _VANISHED - 1)) + 1j * np.arctan2(x.imag, 1 + x.real)


def _log(x: Complexes) -> Complexes:
    return np.asarray(np.log(np.where(x == 0, _VANISHED, x)))


def log_moments(losses: Numbers, log_weights: Numbers, s: Complexes) -> Complexes:
    """log sum_i e^{log_weights_i + s losses_i} for points s on one vertical line.

    Where the moment is near 1 it is summed as 1 + E[e^{sL} - 1], so that its millionth power stays accurate.
    """
    c = float(s[0].real)
    peaks = log_weights + c * losses
    top = float(peaks.real.max())
    if s.size > DIRECT and _evenly_spaced(s):
        return np.asarray(top + _log(_even_sums(losses, np.exp(peaks - top), s)))
    if s.size > DIRECT:
        return np.asarray(top + _log(_panel_sums(losses, np.exp(peaks - top), s.imag)))
    if top < _BULK:
        return np.asarray(_log1p(_gain(losses, log_weights, s[:, None]).sum(1)))
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
    gentle = np.exp(log_weights) * np.expm1(np.where(mild, exponent, 0.0))
    return np.where(mild, gentle, np.exp(np.where(mild, 0.0, log_weights + exponent)))


def tilted_moments(losses: Numbers, log_weights: Numbers, c: float) -> tuple[float, float, float]:
    """K, K' and K'' at the real point c: log of the moment, mean and variance of the loss tilted by e^{cL}."""
    peaks = log_weights + c * losses
    top = float(peaks.real.max())
    if top < _BULK:
        value = float(np.log1p(_gain(losses, log_weights, c).sum().real))
    else:
        value = top + float(np.log(np.exp(peaks - top).sum()).real)
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


def gaussian_nodes(
    loss: Callable[[Numbers], Numbers],
    log_density: Callable[[Numbers], Numbers],
    reach: tuple[float, float],
    lift: float,
    s: Complexes,
) -> Nodes:
    """Nodes (losses, log weights) for E_Q[e^{sL(X)}; X within reach], X having the given analytic density.

    A trapezoidal rule: it converges exponentially here, so it is halved until the moments at a few points of the
    line no longer move. Off the real axis of s the nodes are lifted by i * `lift`: the integral is the same, but there
    e^{i omega L} decays where L is steep instead of oscillating, so a few hundred nodes serve any frequency.
    """
    c = float(s[0].real)
    coarse = np.linspace(*reach, int(2 * (reach[1] - reach[0])) + 2)
    height = c * loss(coarse) + log_density(coarse)
    peak = float(height.max())
    if max(height[0], height[-1]) > peak - _NEGLIGIBLE + 2:
        raise UnresolvedError(f"the moment at {c:g} comes from the ends of {reach}")
    if peak < _BULK:  # the moment is then summed as a difference from 1, which needs all of Q as well
        height = np.maximum(height, log_density(coarse))
    kept = coarse[height > height.max() - _NEGLIGIBLE]
    low, high = kept[0] - 0.5, kept[-1] + 0.5
    fastest = float(s.imag.max())
    probes = fastest * np.array([0.0, 0.01, 0.1, 0.5, 1.0]) if fastest else np.zeros(1)
    raised = 1j * lift if fastest else 0.0
    count, before = max(32, int(2.5 * (high - low))), np.full(probes.size, np.inf)
    while count <= _FINEST:
        x = np.linspace(low, high, count + 1) + raised
        losses, log_weights = loss(x), log_density(x) + np.log((high - low) / count)
        moments = np.exp(log_weights + c * losses - peak) @ np.exp(1j * np.outer(losses, probes))
        if np.abs(moments - before).max() <= 1e-9 * abs(moments[0]):
            return losses, log_weights
        count, before = 2 * count, moments
    raise UnresolvedError(f"more than {_FINEST} nodes needed at frequency {fastest:g}")
