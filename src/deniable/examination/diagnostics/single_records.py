"""The noise under a gradient that is not the claimed one: of trainings on a single record.

Whatever such a training sums, one record's share of it is about as long as the clipping norm, spread over all weights,
so that what is left after the claimed share is noise but for a small part. That part makes the noise look longer,
never shorter, and is far too short to give it another shape or to repeat it.
"""

from __future__ import annotations

import numpy as np

from deniable.examination.alternatives import AFTER, VECTORS
from deniable.examination.diagnostics import dependence, noise_spread, shape
from deniable.examination.diagnostics.explanations import Explanation
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence

CERTAIN = 1e-10
"""A p-value that is no accident, nor the work of the one gradient that is left in the noise."""
HIDDEN = 0.05
"""The one gradient may have this share of the noise's squared length."""
_CARRIED = ("previous gradient", "previous clean", "older weights", "weights", "mean", AFTER)


def bare_noise(evidence: Evidence, found: Explanation | None) -> list[Diagnosis]:
    """The diagnostics of the noise that fail beyond doubt, and make the training less private.

    `found` is the gradient that is summed, if it is known. Where earlier steps or the weights are in it, nothing is
    told here.
    """
    share = 4 / (evidence.claim.noise**2 * float(evidence.sizes.sum()))
    alone = evidence.single
    if alone is None or share > HIDDEN or not _by_record(found):
        return []
    angles, ratio = dependence.Angles.of(alone), noise_spread.noise_ratio(alone)
    again = angles.repeated_between(ratio, 0.0)
    tests = [dependence.steps(alone, angles), dependence.trainings(alone, angles), shape.normality(alone)]
    tests += [dependence.layers(alone, angles)]
    tests += [noise_spread.noise_scale(alone)] if found is None or found.stretch == 1 else []
    failed = [test for test in tests if test.p_value < CERTAIN and test.weakens]
    repeats = ("independent steps", "independent trainings")
    return [test for test in failed if test.name in again] or [test for test in failed if test.name not in repeats]


def _by_record(found: Explanation | None) -> bool:
    """Whether the sum is made of this step's gradients alone."""
    if found is None:
        return True
    if found.parts is None:
        return False
    names = {VECTORS[place] for place in np.flatnonzero(found.parts)}
    return not any(name in _CARRIED or name.startswith("momentum") for name in names)
