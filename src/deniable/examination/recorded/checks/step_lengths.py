"""The noise of every step, also of those that are not recomputed: an applied gradient is hardly shorter than its noise.

Applied x divisor is a sum S of clipped gradients plus noise N(0, sigma^2 I). Whatever S is, its squared length over
sigma^2 is a noncentral chi-square with d degrees of freedom, which is stochastically larger than the central one. A
length in the lower tail of the central law therefore shows too little noise; a long one shows nothing. Where recomputed
steps show that S and the noise are both shortened afterwards, sigma is what is left of it in the shortest of these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.recorded.run_record import RunRecord
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]


def gradient_sigmas(record: RunRecord, claimed: Training, clips: Array) -> Array:
    """The claimed standard deviation of the noise on a sum of gradients, for these clipping norms.

    With adaptive clipping the claimed noise also pays for the noisy count of unclipped records (Andrew et al. 2021,
    Theorem 1), so that the gradients get more.
    """
    noise = claimed.noise
    if record.count_noise is not None and 0 < noise < 2 * record.count_noise:
        noise = (noise**-2 - (2 * record.count_noise) ** -2) ** -0.5
    return np.array([noise * claimed.adjacency.sensitivity(float(clip)) for clip in clips])


def step_sigmas(record: RunRecord, claimed: Training) -> Array:
    """`gradient_sigmas` of the examined steps."""
    return gradient_sigmas(record, claimed, np.array([step.clip for step in record.steps]))


def length_check(record: RunRecord, claimed: Training, level: float, left: float = 1.0) -> RunCheck:
    """Whether any applied gradient of the steps that are not recomputed is shorter than its noise can be.

    `left` is the share of the noise that was left in recomputed steps, by what shortened the sum as much.
    """
    others = np.setdiff1d(np.arange(len(record.lengths)), [step.number for step in record.steps])
    lengths, sigmas = np.array(record.lengths)[others], gradient_sigmas(record, claimed, np.array(record.clips)[others])
    shares = np.sqrt(lengths / record.weights) / np.maximum(sigmas, 1e-300)
    p_values = special.chdtr(record.weights, record.weights * (shares / left) ** 2)
    p_value, least = any_of(p_values), int(np.nanargmin(shares)) if np.isfinite(shares).any() else 0
    short = p_value < level
    outcome: Outcome = "less private" if short else "as claimed"
    alike = ", which is shortened after it as in recomputed steps" if left < 1 else ""
    seen = f"no applied gradient is shorter than its noise should be{alike}"
    if short:
        count = int((p_values * len(p_values) < level).sum())
        seen = (
            f"the applied gradient is too short for the claimed noise in {count:,} of {len(lengths):,} steps that were "
            f"not recomputed: in step {others[least] + 1:,} even gradient and noise together have {shares[least]:.3g} "
            "x its standard deviation"
        )
    return RunCheck(
        name="noise of other steps",
        outcome=outcome,
        observed=seen,
        expected=f"at least {left:.3g} x the claimed standard deviation, gradient and noise together",
        p_value=p_value,
    )
