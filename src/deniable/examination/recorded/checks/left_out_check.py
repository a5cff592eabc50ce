"""The check of batches that were drawn and left out: do their loss or their gradient choose them?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.recorded.checks.outcomes import LESS, UNKNOWN
from deniable.examination.recorded.run_record import RunRecord
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]


def left_out_check(record: RunRecord, level: float) -> RunCheck | None:
    """None where a step was taken with every batch that was drawn.

    Batches that chance leaves out have losses and gradients like the others': the law of the sum of their ranks is
    known (Mann and Whitney 1947).
    """
    with_loss = [step for step in record.steps if step.loss is not None]
    figures = [((step.loss or 0.0), step.clean**0.5, step.data_loss or 1.0) for step in with_loss]
    used = np.array([(loss / every, length) for loss, length, every in figures]).reshape(-1, 2)
    left_out = np.array(
        [(loss / (step.data_loss or 1.0), length) for step in with_loss for loss, length in step.left_out]
    ).reshape(-1, 2)
    if not len(left_out):
        return None
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 (a third of a second, and few trainings leave a batch out)

    p_values = np.array([float(mannwhitneyu(left_out[:, at], used[:, at]).pvalue) for at in range(2)])
    p_value = any_of(p_values)
    seen = f"{len(left_out):,} batches were drawn and no step was taken with them"
    which = "their loss" if p_values[0] <= p_values[1] else "the length of their gradient"
    if p_value < level:
        seen = f"{seen}: {which} decides which, and that no noise hides: take a step with every batch"
    else:
        seen = f"{seen}: if the records decide which, no noise hides it; take a step with every batch"
    outcome: Outcome = LESS if p_value < level else UNKNOWN
    return RunCheck(
        name="batches left out", outcome=outcome, observed=seen, expected="a step with every batch", p_value=p_value
    )
