"""Elementary functions that keep the digits of complex numbers near 0 or 1."""

from __future__ import annotations

import numpy as np

from deniable.loss.arrays import Floats, Numbers

__all__ = ["expm1", "log1p", "log_mixture"]

_VANISHED = 2.0**-52  # a moment that has cancelled to nothing


def log_mixture(rate: float | Floats, exponent: Numbers) -> Numbers:
    """ln(1 - rate + rate e^exponent), accurate where it is small and where the exponent is large."""
    big = exponent.real > 30 - np.log(rate)
    if not big.any():
        return log1p(rate * expm1(exponent))
    held = np.where(big, exponent, 0.0)
    large = held + np.log(rate + (1 - rate) * np.exp(-held))
    return np.where(big, large, log1p(rate * expm1(np.where(big, 0.0, exponent))))


def log1p(x: Numbers) -> Numbers:
    """log(1 + x); NumPy's own loses the real part's digits where a complex x is small."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    squared = x.real * (2 + x.real) + x.imag**2  # |1 + x|^2 - 1
    found = np.empty_like(x)
    small = squared < -0.5  # there 1 + x itself has more digits
    found.real = 0.5 * np.log1p(np.where(small, 0.0, squared))
    if small.any():
        found.real[small] = np.log(np.maximum(np.hypot(1 + x.real[small], x.imag[small]), _VANISHED))
    found.imag = np.arctan2(x.imag, 1 + x.real)
    return found


def expm1(x: Numbers) -> Numbers:
    """e^x - 1; NumPy's own takes twice as long where x is complex."""
    if not np.iscomplexobj(x):
        return np.expm1(x)
    growth, half = np.expm1(x.real), np.tan(x.imag / 2)
    sine = 2 * half / (1 + half * half)
    turned = half * sine  # 1 - cos
    found = np.empty_like(x)
    found.real, found.imag = growth * (1 - turned) - turned, (1 + growth) * sine
    return found
