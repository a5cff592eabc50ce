"""Noisy sums that are added up from step to step (momentum of one's own): as safe, and each step's own noise is seen.

Applied_t = clipped sum_t + noise_t + a x applied_(t-1). The residual without its share of the step before is fresh
noise. Noise that is used again has the same share of the earlier noise, but not of the earlier clipped sum.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from deniable.examination.recorded.checks.excess_noise import unlike_fresh_noise
from deniable.examination.recorded.checks.outcomes import LESS, OTHER, UNKNOWN
from deniable.examination.recorded.checks.step_lengths import step_sigmas
from deniable.examination.recorded.run_record import VECTORS, RunRecord, step_gram
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]

_BETTER = 50.0
"""Variances of the noise by which it must be nearer than any other explanation."""
_FEWEST = 4
"""Steps."""
_ERRORS, _ROUNDING = 4.0, 0.02
"""Standard errors, and the share, that the fresh noise may be below the claimed one."""
_RARE = 1e-6
"""A coincidence of smaller probability is none."""
_RIVALS = ("earlier clean", "clean momentum")


def accumulation_check(record: RunRecord, claimed: Training, *, noise_is_told: bool) -> RunCheck | None:
    """None where the step before is not in what was applied, or only its gradient is.

    `noise_is_told`: what the noise of two steps has in common another check tells better (the same, or a mean).
    """
    sigmas = step_sigmas(record, claimed)
    rows = zip(record.steps, sigmas, strict=True)
    grams = [(step_gram(step) / sigma**2, float(sum(step.sizes))) for step, sigma in rows if sigma > 0]
    later = [(gram, numbers) for gram, numbers in grams if len(gram) == len(VECTORS) and gram[-1, -1] > 0]
    if len(later) < _FEWEST:
        return None
    total, count = np.sum([gram for gram, _ in later], axis=0), sum(n for _, n in later)
    applied = np.eye(len(VECTORS))[-1]
    noise_again = applied - np.eye(len(VECTORS))[VECTORS.index("earlier clean")]
    rivals = [noise_again, *(np.eye(len(VECTORS))[VECTORS.index(name)] for name in _RIVALS)]
    left = _left(total, applied)
    fresh = sqrt(max(left, 0.0) / count)
    best = min(_left(total, rival) for rival in (*rivals, np.zeros(len(VECTORS))))
    share = float(total[0, -1] / total[-1, -1])
    if best - left < _BETTER * max(fresh**2, 1e-12):
        return None if noise_is_told else _noise_again_check(record, total, count, noise_again)
    error = max(_ERRORS / sqrt(2 * count), _ROUNDING)
    if fresh > 1 + error and _share_varies(np.array([gram[[0, -1], -1] for gram, _ in later]), share, fresh):
        return None
    outcome, rest = _tell_fresh(fresh, error)
    seen = f"{share:.2g} x the noisy sum of the step before is in it, {rest}"
    return RunCheck(name="noise", outcome=outcome, observed=seen, expected="1 x the claimed standard deviation")


def _noise_again_check(record: RunRecord, total: Array, count: float, again: Array) -> RunCheck | None:
    """Of noise that holds a share of that of the step before, or takes it back; None where neither is sure.

    A gradient that steps have in common makes residuals longer, in some directions; noise is alike in all.
    """
    share, left = float(total[0] @ again / (again @ total @ again)), _left(total, again)
    fresh, size = sqrt(max(left, 0.0) / count), sqrt(max(total[0, 0], 0.0) / count)
    if abs(share) < _SHARE or total[0, 0] - left < _BETTER * max(fresh**2, 1e-12):
        return None
    if size > 1 + _ROUNDING and (share > 0 or unlike_fresh_noise(record)):
        return None
    what = "is in it again" if share > 0 else "is taken back"
    seen = (
        f"{abs(share):.2g} x the noise of the step before {what} (correlated noise), so that sums of steps show what "
        "the noise of each should hide: draw fresh noise in every step"
    )
    expected = "independent noise"
    return RunCheck(name="independent steps", outcome=LESS, observed=seen, expected=expected)


_SHARE = 0.1
"""Of the noise of the step before; less hardly matters."""


def _share_varies(rows: Array, share: float, fresh: float) -> bool:
    """Whether the steps' shares differ by more than fresh noise explains; `rows` are residual x earlier, earlier^2."""
    along, length = rows.T
    squares = float(np.sum((along - share * length) ** 2 / length)) / fresh**2
    return float(gammaincc((len(rows) - 1) / 2, squares / 2)) < _RARE


def _tell_fresh(fresh: float, error: float) -> tuple[Outcome, str]:
    """What remains without the step before. Beside noise of the claimed size nothing else fits into it."""
    told = f"the noise of a step itself has {fresh:.3g} x the claimed standard deviation"
    if fresh < 1 - error:
        return LESS, f"which is as safe, but {told}"
    if fresh <= 1 + error:
        return OTHER, "which is as safe"
    return UNKNOWN, (
        f"and what is left is {fresh:.3g} x as long as the claimed noise: more noise, or gradients that are carried "
        "over from step to step without clipping; add the noise to the clipped sum, before momentum or an optimizer"
    )


def _left(total: Array, vector: Array) -> float:
    """The residuals' squared length less their part along a combination of `VECTORS`, with one factor in all steps."""
    length = float(vector @ total @ vector)
    return float(total[0, 0] - (total[0] @ vector) ** 2 / length) if length > 0 else float(total[0, 0])
