"""Noise where it has to hide something: along the gradients. Elsewhere it hides nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS
from deniable.examination.recorded.checks.step_lengths import step_sigmas
from deniable.examination.recorded.run_record import RunRecord, noise_of_step, step_gram
from deniable.mechanisms import Training
from deniable.results.run_result import Outcome, RunCheck

Array = NDArray[np.float64]
_Part = tuple[str, float, float, float]
"""What it is along; squared length in claimed variances, and its dimension; the variance elsewhere, likewise."""


def along_check(record: RunRecord, claimed: Training, level: float) -> RunCheck:
    """Whether the residual is as long along gradients as noise of the claimed size, and as elsewhere.

    Guarantee: a gradient in the residual only makes it longer there, so that a run as claimed fails with probability
    at most `level`.
    """
    parts = list(_parts(record, step_sigmas(record, claimed)))
    p_values = [_p_value(squares, degrees, elsewhere) for _, squares, degrees, elsewhere in parts]
    p_value, seen = any_of(np.array(p_values)) if parts else 1.0, "as much as elsewhere"
    if p_value < level:
        what, squares, degrees, _ = parts[int(np.argmin(p_values))]
        seen = (
            f"along {what} the noise has only {(squares / degrees) ** 0.5:.2g} x the claimed standard deviation, and "
            "elsewhere it hides nothing: draw it without looking at the gradients"
        )
    outcome: Outcome = LESS if p_value < level else AS_CLAIMED
    expected = "1 x the claimed standard deviation"
    return RunCheck(name="noise along gradients", outcome=outcome, observed=seen, expected=expected, p_value=p_value)


def _parts(record: RunRecord, sigmas: Array) -> Iterator[_Part]:
    if not (sigmas > 0).all():
        return
    both = list(zip(record.steps, sigmas, strict=True))
    squares, numbers = np.array([np.array(noise_of_step(step)) / (sigma**2, 1) for step, sigma in both]).sum(0)
    lengths = [(step_gram(step)[:2, :2], sigma**2) for step, sigma in both]
    along = [gram[0, 1] ** 2 / gram[1, 1] / variance for gram, variance in lengths if gram[1, 1] > 0]
    if along:
        yield "the clipped sum", sum(along), len(along), squares / numbers
    fits = [(step.shares, sigma**2) for step, sigma in both if step.shares is not None]
    if fits:
        inside, outside = (sum(getattr(s, at) / v for s, v in fits) for at in ("inside", "outside"))
        elsewhere = outside / sum(s.numbers for s, _ in fits)
        yield "the records' gradients", inside, sum(s.fitted for s, _ in fits), elsewhere


def _p_value(squares: float, degrees: float, elsewhere: float) -> float:
    """Of so little: as a chi-square of claimed variances, or of those elsewhere if they are less."""
    return float(gammainc(degrees / 2, squares / min(1.0, max(elsewhere, 1e-12)) / 2))
