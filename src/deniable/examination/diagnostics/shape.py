"""The shape of the noise: the normal law, its tails among it, in full precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from deniable.examination.diagnostics.noise_spread import MISSING, bare_share, noise_ratio, noise_scale
from deniable.examination.diagnostics.p_values import any_of, chi_square, normal
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence

UNIFORM_SIZE, LAPLACIAN_SIZE = 0.75**0.5, 0.5**0.5
"""Mean absolute numbers, in standard deviations."""
LEAST_EXPECTED = 20
"""Observations that a bin must expect for its chi-square to hold."""
_WAVE, _LEAST_FOR_WAVE = 1.5, 1000
"""Radians a standard deviation; and so many numbers are needed."""
APART = 1e-5
"""The gap between two numbers, in standard deviations, from which on they differ; float32 sums are more precise."""


def normality(evidence: Evidence) -> Diagnosis:
    """Counts in bins, the tails among them, against the normal law; and numbers that hardly ever come twice.

    Where the scale is wrong already, each layer of each step is first brought to its own scale, so that the shape
    alone is judged.
    """
    values, scaled = evidence.trials.sketch, noise_scale(evidence).p_value < evidence.level
    if scaled:
        values = np.concatenate([_own_scale(part) for part in evidence.layer_noise()], axis=2)
    numbers = values[np.isfinite(values)].astype(np.float64)
    if len(numbers) < 50 * LEAST_EXPECTED:
        return Diagnosis("normality", 1.0, f"{len(numbers)} numbers, too few", "normal", checked=False)
    kurtosis = float(np.mean(numbers**4) / np.mean(numbers**2) ** 2)
    few = _takes_few_values(evidence)
    known = evidence.trials.raw.ravel().astype(float)
    if evidence.gradient_fits and len(known) >= 50 * LEAST_EXPECTED and noise_ratio(evidence) > MISSING:
        numbers_as_drawn = known / np.sqrt(np.mean(np.square(known)))
        kurtosis = float(np.mean(numbers_as_drawn**4))
    else:
        numbers_as_drawn = numbers
    drawn_scale = noise_ratio(evidence)
    shape = "rounded, or drawn from a table" if few else _shape(numbers_as_drawn, kurtosis, drawn_scale)
    if not few and (bare := bare_share(evidence)) > 0.05:
        shape = f"left out on {100 * bare:.0f} % of the weights"
    as_they_are = bool(evidence.gradient_fits) and not scaled
    p_value = any_of(_p_value(numbers), *_p_values_as_drawn(known)) if as_they_are else _p_value(numbers)
    return Diagnosis(
        "normality",
        0.0 if few else p_value,
        f"kurtosis {kurtosis:.3f}, largest {np.abs(numbers).max():.2f} standard deviations",
        "kurtosis 3, normal tails",
        f"the noise is not Gaussian: it looks {shape}; draw it from a normal distribution"
        + (", in full precision" if few else ""),
    )


def _p_value(numbers: NDArray[np.float64]) -> float:
    edges = _edges(len(numbers))
    counts = np.histogram(numbers, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    expected = len(numbers) * np.diff(np.concatenate([[0.0], ndtr(edges), [1.0]]))
    return float(chi_square(float((np.square(counts - expected) / expected).sum()), len(counts) - 1))


def _p_values_as_drawn(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Of the noise as it was drawn, not of combinations of it, which are nearly normal whatever its shape."""
    return _p_of_largest(numbers), _p_of_wave(numbers)


def _p_of_wave(numbers: NDArray[np.float64]) -> float:
    """Two-sided, of the mean of cos(t x), x in standard deviations of the numbers themselves (Epps 1983).

    It is bounded, so its mean is nearly normal, with variance (1 + exp(-2 t^2)) / 2 - (1 + t^4 / 2) exp(-t^2) over
    their number, and it sees a sum of three uniform numbers as well as the fourth power does, which is not bounded.
    """
    if len(numbers) < _LEAST_FOR_WAVE:
        return float("nan")
    scaled = numbers / max(float(np.sqrt(np.mean(np.square(numbers)))), 1e-300)
    variance = (1 + np.exp(-2 * _WAVE**2)) / 2 - (1 + _WAVE**4 / 2) * np.exp(-(_WAVE**2))
    away = float(np.cos(_WAVE * scaled).mean() - np.exp(-(_WAVE**2) / 2))
    return float(normal(away * np.sqrt(len(numbers) / variance)))


def _p_of_largest(numbers: NDArray[np.float64]) -> float:
    """Two-sided, of the largest absolute number being as large as of standard normal ones."""
    inside = float(len(numbers) * np.log1p(-2 * ndtr(-np.abs(numbers).max(initial=0.0)))) if len(numbers) else -1.0
    return float(min(1.0, 2 * min(np.exp(inside), -np.expm1(inside))))


def _own_scale(part: NDArray[np.float32]) -> NDArray[np.float32]:
    spread = np.sqrt(np.mean(np.square(part), axis=(0, 2), keepdims=True))
    return np.where(spread > 0.05, part / np.maximum(spread, 1e-6), np.nan).astype(np.float32)


def _edges(number: int) -> NDArray[np.float64]:
    tails = np.arange(2.75, 6, 0.25)
    tails = tails[number * ndtr(-tails) >= LEAST_EXPECTED]
    return np.concatenate([-tails[::-1], ndtri(np.linspace(0.005, 0.995, 34)), tails])


def _takes_few_values(evidence: Evidence) -> bool:
    """Whether not half as many numbers lie apart from all others as of continuous noise.

    Only where the clean sum is not zero: elsewhere a noisy sum that is rounded after its noise, which is safe, looks as
    if the noise itself were rounded.
    Of n normal numbers n E[exp(-n phi(Z) gap)] lie farther than the gap below the next one; half as many, of
    thousands, are more than ten standard deviations fewer, so this gives no false alarm.
    """
    raw = evidence.trials.raw
    numbers = np.sort(raw[(np.abs(raw) > 0.05) & evidence.trials.raw_moved].astype(np.float64))
    if len(numbers) < 1000:
        return False
    quantiles = ndtri((np.arange(999) + 0.5) / 999)
    density = np.exp(-np.square(quantiles) / 2) / np.sqrt(2 * np.pi) / float(numbers.std())
    expected = len(numbers) * float(np.exp(-len(numbers) * density * APART).mean())
    return bool(np.sum(np.diff(numbers) > APART) < expected / 2)


def _shape(numbers: NDArray[np.float64], kurtosis: float, scale: float) -> str:
    """`numbers` are in their own standard deviation, which is `scale` x the claimed one."""
    largest = float(np.abs(numbers).max())
    size = float(np.abs(numbers).mean())  # varies far less than the kurtosis
    if abs(size - UNIFORM_SIZE) < 0.01 and kurtosis < 2.2:
        return "uniform"
    if abs(size - LAPLACIAN_SIZE) < 0.015 and kurtosis > 4:
        return "Laplacian"
    if kurtosis >= 3:
        return "heavy-tailed"
    if len(numbers) * 2 * np.exp(log_ndtr(-largest)) > 10:  # ten or more were to be expected beyond it
        return f"cut off at {scale * largest:.2f} claimed standard deviations"
    return "light-tailed"
