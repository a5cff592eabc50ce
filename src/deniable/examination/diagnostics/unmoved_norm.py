"""Noise on the sum that is too little for a claim that also pays for a count, where no norm is seen to follow one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deniable.examination.diagnostics.noise_spread import noise_ratio
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.recipe import Adaptive

ERRORS = 4
"""Standard errors by which the measured noise may fall short of what is enough without a count."""


def settle_unmoved_norm(cause: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The same cause, not to be told if the noise is enough for a fixed norm, and the norm never moves."""
    claim = evidence.claim
    asked = cause.name == "noise scale" and cause.weakens and isinstance(claim.recipe.clipping, Adaptive)
    if not asked or np.ptp(evidence.trials.clip) > 0:
        return cause
    on_sum = claim.recipe.noise_on_sum(claim.noise)
    numbers = float(evidence.sizes.sum() * evidence.trials.squares[..., 0].size)
    if noise_ratio(evidence) < (1 - ERRORS / (2 * numbers) ** 0.5) * claim.noise / on_sum:
        return cause
    text = (
        f"the clipping norm never changes, or is not yielded, so that no count is seen to take its part of the noise: "
        f"with a fixed norm a noise multiplier of {claim.noise:.4g} on the sum is enough, with a count {on_sum:.4g}; "
        "claim recipe=Recipe() if the norm is fixed, or yield it (AppliedStep(..., clip=...)) and add that much"
    )
    return replace(cause, sentence=text, weakens=None)
