"""Noise where it has to hide something: along the gradients. Elsewhere it hides nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtr, gammainc

from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.recorded.checks.outcomes import AS_CLAIMED, LESS, UNKNOWN
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


def across_check(record: RunRecord, claimed: Training) -> RunCheck | None:
    """None where there is noise across the records' gradients, too, or too few numbers tell."""
    both = zip(record.steps, step_sigmas(record, claimed), strict=True)
    fits = [(step.shares, sigma**2) for step, sigma in both if step.shares is not None and sigma > 0]
    if not fits or len(fits) < len(record.steps) / 2:
        return None
    outside = sum(s.outside / v for s, v in fits) / sum(s.numbers for s, _ in fits)
    if outside > _NONE**2:
        return None
    seen = (
        "all that is applied is in the directions of the batch's own gradients, and across them there is no noise: "
        "it is projected on directions that the records make, or other gradients of theirs are applied bare; add "
        "the noise in all directions, and project on public ones alone"
    )
    return RunCheck(name="noise along gradients", outcome=LESS, observed=seen, expected="noise in all directions")


_NONE = 0.02
"""Of the claimed standard deviation: less is none."""


def follows_check(record: RunRecord, claimed: Training) -> RunCheck | None:
    """None where numbers that are small in the clipped sum have as much noise as claimed, or as others.

    Another gradient only makes the residual longer there, and scaling after the noise leaves it as long as elsewhere.
    Chance alone brings either once in 10^9 runs.
    """
    both = zip(record.steps, step_sigmas(record, claimed), strict=True)
    kept = [(step.by_size, sigma) for step, sigma in both if step.by_size is not None and sigma > 0]
    numbers = sum(s.numbers for s, _ in kept)
    rows = [np.array([s.small_noise, s.large_noise, s.small, s.large]) * s.numbers / sigma**2 for s, sigma in kept]
    if not numbers:
        return None
    small_noise, large_noise, small, large = np.sqrt(np.sum(rows, axis=0) / numbers)
    as_claimed, as_others = gammainc(numbers / 2, numbers * small_noise**2 / 2), (small_noise / large_noise) ** 2
    if max(as_claimed, fdtr(numbers, numbers, as_others)) > _CHANCE:
        return None
    told = small < _SMALL * large and small_noise < _LITTLE * large_noise and small_noise < _LITTLE
    if not told or np.log(max(small_noise, 1e-12) / large_noise) > _FOLLOWS * np.log(max(small, 1e-12) / large):
        return None
    seen = (
        f"the noise follows the gradient number by number: it has {small_noise:.2g} x the claimed standard deviation "
        f"where the clipped sum is small, and {large_noise:.2g} x where it is large, so that it shows what it should "
        "hide: add noise of the same size to every number"
    )
    return RunCheck(name="noise along gradients", outcome=LESS, observed=seen, expected="the same in every number")


_CHANCE = 1e-9
_SMALL, _LITTLE, _FOLLOWS = 0.3, 0.5, 0.4
"""Numbers that are small beside others, noise that is, and the power of the former that the latter is at least."""


def scales_check(record: RunRecord, claimed: Training) -> RunCheck | None:
    """None where applied numbers are not the smaller, the larger the records' own gradients are in them."""
    if record.along_records is None or record.along_records > _DIVIDED:
        return None
    sums = zip(record.steps, step_sigmas(record, claimed), strict=True)
    strength = np.mean([step.clean / max(sigma**2, 1e-300) / sum(step.sizes) for step, sigma in sums])
    seen = "numbers of the noisy gradient are the smaller, the larger the records' gradients are in them"
    if strength < 1:
        seen += (
            ", which noise would hide: it is divided by what is made of these without noise (their second moments, a "
            "Fisher matrix); divide by what is made of noisy gradients"
        )
    else:
        seen += ": if it is divided by what is made of these without noise, no noise hides it; watch it before that"
    outcome: Outcome = LESS if strength < 1 else UNKNOWN
    return RunCheck(name="scale of numbers", outcome=outcome, observed=seen, expected="one for all")


_DIVIDED = -0.6
"""A correlation below this is no chance in as many weights as are watched."""


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
