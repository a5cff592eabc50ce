"""Elementary functions that keep the digits of complex numbers near 0 or 1."""

from __future__ import annotations

import numpy as np

from deniable.loss.arrays import Floats, Numbers

_VANISHED = 2.0**-52  # a moment that has cancelled to nothing
_OFTEN = 0.9  # rates below leave so much of 1 that its digits suffice


def log_mixture(rate: float | Floats, exponent: Numbers) -> Numbers:
    """ln(1 - rate + rate e^exponent), accurate where it is small and where the exponent is large of either sign."""
    big = exponent.real > 30 - np.log(rate)
    if not big.any():
        return _log_mild_mixture(rate, exponent)
    held = np.where(big, exponent, 0.0)
    large = held + np.log(rate + (1 - rate) * np.exp(-held))
    return np.where(big, large, _log_mild_mixture(rate, np.where(big, 0.0, exponent)))


def _log_mild_mixture(rate: float | Floats, exponent: Numbers) -> Numbers:
    """The same where no exponent is large: as a difference from 1, unless little of 1 is left."""
    near = log1p(rate * expm1(exponent))
    if np.max(rate) <= _OFTEN:
        return near
    sunk = (exponent.real < -1) & (np.asarray(rate) > _OFTEN)
    return np.where(sunk, np.log(1 - rate + rate * np.exp(np.where(sunk, exponent, 0.0))), near)


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
