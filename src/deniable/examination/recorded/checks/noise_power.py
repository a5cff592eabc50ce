"""How little noise one run shows, with which probability: the power of its checks, from the laws that they use."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy import special

from deniable.examination.recorded.checks.step_lengths import gradient_sigmas
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Training

_FOUND = 0.95
"""The probability with which what is called visible is found."""


def visible_noise(record: RunRecord, level: float, rounding: float) -> float | None:
    """The share of the claimed noise, in all steps alike, below which the recomputed steps show it.

    `level` is that of the check, of which the sum over all steps has a half, either side of it a half again; a share
    within `rounding` of one is never called another.
    """
    degrees = sum(sum(step.sizes) - 2 for step in record.steps)
    if degrees <= 0:
        return None
    return min(_share(degrees, level / 4), 1 - 2 * rounding)


def visible_noise_of_a_step(record: RunRecord, claimed: Training, level: float) -> float | None:
    """The same of one step that is not recomputed, from the length of its applied gradient; None where none is seen.

    The clipped sum may be as long as the batch's size times the clipping norm, and hides noise that is short beside it.
    """
    if not record.lengths:
        return None
    sigmas = gradient_sigmas(record, claimed, np.array(record.clips))
    longest = float(np.max(np.array(record.batches) * np.array(record.clips) / np.maximum(sigmas, 1e-300)))
    share = _share(record.weights, level / len(record.lengths)) - longest / sqrt(record.weights)
    return share if share > 0 else None  # since |S + x N| <= |S| + x |N|


def _share(degrees: float, tail: float) -> float:
    """x such that x^2 times a chi-square is below the chi-square's quantile at `tail` with probability 95 %."""
    return sqrt(float(special.chdtri(degrees, 1 - tail)) / float(special.chdtri(degrees, 1 - _FOUND)))


def tell_power(all_steps: float | None, single_step: float | None, *, all_recomputed: bool) -> str:
    """What would have been seen."""
    if all_steps is None:
        return "No step was recomputed: a noise multiplier below the claimed one would show in none of them."
    sure = f"{100 * _FOUND:.0f} %"
    said = f"A noise multiplier below {all_steps:.3g} of the claimed one would be seen with probability {sure}"
    if all_recomputed:
        return f"{said}."
    if single_step is None:
        return f"{said}; too little noise in a single step that is not recomputed might not be seen."
    return f"{said}; in a single step that is not recomputed, one below {single_step:.3g} of it."
