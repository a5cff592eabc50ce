"""What is left beside the clipped sum is more than the claimed noise: is it noise, or another gradient?

More noise is as safe; a gradient that was not recomputed is not. Noise is as large in every layer and every step, has
the same length along gradients as elsewhere, has nothing in common with that of earlier steps, and is normal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtri

from deniable.examination.diagnostics.p_values import any_of, chi_square, kurtosis_p_value, normal
from deniable.examination.recorded.run_record import RunRecord, noise_of_step, noise_variance

Array = NDArray[np.float64]
_ODD = 1e-3
"""What noise does so rarely is not called noise: that only makes a safe recipe one that is not judged."""


def unlike_noise(record: RunRecord) -> str:
    """In what the residuals are unlike noise of one size in each step, in words; "" if in nothing."""
    found = {
        "it is larger in some layers than in others": _layers(record),
        "it is like that of earlier steps": _along_earlier(record),
        "it is larger along the records' gradients than elsewhere": _along_records(record),
        "it is not normal": _shape(record),
        "it lies along the gradient of a loss that mixes the records of a batch": mixed_p_value(record),
    }
    least = min(found, key=lambda text: found[text])
    return least if found[least] < _ODD else ""


def is_common_noise(record: RunRecord) -> bool:
    """Whether what some steps have in common is noise: as large where gradients are small, and not in all steps.

    Another gradient is small where gradients are, and what is made of the records otherwise is in all of them.
    """
    common = record.common_noise
    if common is None or abs(common.correlation) < _COMMON or common.usual > _USUAL * abs(common.correlation):
        return False
    return common.elsewhere / common.correlation > _AS_MUCH


_COMMON, _AS_MUCH, _USUAL = 0.05, 0.7, 0.5
"""A correlation that matters; the share of it that is left there, known within .1 after a few steps; and the share of
it that other distances of steps have at most."""


def level_of_common_noise(record: RunRecord, level: float) -> float:
    """Of p-values of figures that are added over steps: their spread is at most that of the most common noise."""
    common = record.common_noise
    return level if common is None else float(normal(ndtri(level / 2) * max(1.0, common.most) ** 0.5))


def mixed_p_value(record: RunRecord) -> float:
    """Of the residuals along what the batch's loss has across its records' own gradients, which are normal."""
    rows = [(np.array(step.mixed) / noise_variance(step)) for step in record.steps if step.mixed is not None]
    along, across, whole = np.sum(rows, axis=0) if rows else np.zeros(3)
    return float(normal(along / across**0.5)) if across > _LEAST_ACROSS * whole > 0 else 1.0


_LEAST_ACROSS = 1e-3
"""The share of a batch's gradient, squared, that is no rounding of its records' own."""


def _layers(record: RunRecord) -> float:
    """Of each parameter in all steps, in the variances of these."""
    variances = np.array([noise_variance(step) for step in record.steps])
    parts = (np.array([step.residual for step in record.steps]) / variances[:, None]).sum(0)
    sizes = np.array([step.sizes for step in record.steps]).sum(0)
    share = sizes / sizes.sum()
    wider = np.maximum(1 - share, 0.1)  # the variance is measured on the same numbers
    return any_of(chi_square(sizes + (parts - sizes) / wider**0.5, sizes)) if len(sizes) > 1 else 1.0


def _along_earlier(record: RunRecord) -> float:
    """Where that is not noise that some steps have in common."""
    if is_common_noise(record):
        return 1.0
    rows = [np.array(step.earlier_noise) / noise_variance(step) for step in record.steps if step.earlier_noise]
    z_values = [along / squares**0.5 for along, squares in rows if squares > 0]
    return float(normal(sum(z_values) / len(z_values) ** 0.5)) if z_values else 1.0


def _along_records(record: RunRecord) -> float:
    """Longer there than elsewhere, by the law of the ratio."""
    fits = [(step.shares, noise_of_step(step)) for step in record.steps if step.shares is not None]
    rows = [(s.inside * d / q, s.fitted, s.outside * d / q, s.numbers) for s, (q, d) in fits if s is not None and q > 0]
    if not rows:
        return 1.0
    inside, fitted, outside, numbers = np.sum(rows, axis=0)
    return float(fdtrc(fitted, numbers, inside / fitted / (outside / numbers)))


def _shape(record: RunRecord) -> float:
    """Fourth powers beside three squared variances of each step."""
    rows = [(step.fourth, sum(step.sizes), sum(step.residual)) for step in record.steps if step.fourth is not None]
    if not rows or min(numbers for _, numbers, _ in rows) < 2:
        return 1.0
    fourth, numbers, squares = np.array(rows, dtype=float).T
    return kurtosis_p_value(fourth * numbers / np.maximum(squares, 1e-300) ** 2, numbers)
