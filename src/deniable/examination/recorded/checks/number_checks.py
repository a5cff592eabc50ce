"""The check of single numbers: without noise, cut off or left out, before the noise or after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.examination.recorded.checks.outcomes import LESS, UNKNOWN
from deniable.examination.recorded.noise.number_counts import NumberCounts
from deniable.examination.recorded.run_record import RunRecord, noise_of_step
from deniable.results.run_result import Outcome, RunCheck

_MANY = 0.01
"""A share of numbers that is no accident."""
_ZEROS = 0.05
"""The share of zeros that rounding a noisy gradient to a sixteenth of its noise does not reach."""
_OFTEN, _COMPARED = 0.05, 1000
"""The share of numbers that come again from which on that is no chance, of so many that are compared."""
_MOSTLY = 0.5
"""The same of those that have noise, beside others that have none."""
_NEARLY_ALL = 0.95
"""The share of numbers that come again which noise does not reach that is cut off at an edge."""
_ALL = 0.98
"""Steps in which more numbers than this share are without noise have none at all."""
_NO_NOISE = 0.05
"""Noise of a parameter below this share of that of the others is none."""
_ACROSS = 0.2
"""The share of squared lengths that no known gradient has."""
_BEFORE = "and watch the noisy gradient as it was before that"


def numbers_check(record: RunRecord) -> RunCheck | None:
    """None where no number is odd, or whole parameters or steps are, which other checks tell."""
    counts = [step.counts for step in record.steps if step.counts is not None and step.counts.numbers]
    with_noise = [one for one in counts if one.bare <= _ALL * one.numbers]
    if not with_noise:
        return None
    causes = (
        _of_one_sign(with_noise, record),
        _rounded_noise(with_noise),
        _without_noise(with_noise, record),
        _left_out(with_noise),
        _bare_where_untouched(with_noise),
        _drawn_once(with_noise),
        _cut_off(with_noise),
        _centred_rows(with_noise),
    )
    found = next((cause for cause in causes if cause is not None), None)
    if found is None:
        return None
    outcome, seen = found
    return RunCheck(name="single numbers", outcome=outcome, observed=seen, expected="every number with its own noise")


def _share(counts: list[NumberCounts], events: list[int]) -> float:
    return sum(events) / sum(one.numbers for one in counts)


def _without_noise(counts: list[NumberCounts], record: RunRecord) -> tuple[Outcome, str] | None:
    share = _share(counts, [one.bare for one in counts])
    if share < _MANY or abs(share - _share_of_bare_parameters(record)) < _MANY:
        return None
    return LESS, f"there is no noise on about {share:.0%} of the weights, the others have it: add it to every weight"


def _bare_where_untouched(counts: list[NumberCounts]) -> tuple[Outcome, str] | None:
    """Weights without gradient and without noise, other ones in other steps: which they are, the records decide."""
    zeros = [one.untouched for one in counts]
    if sum(zeros) < _MANY * sum(one.numbers for one in counts) or min(zeros) == max(zeros):
        return None
    return LESS, (
        "there is no noise on weights that no record of the batch touches (rows of an embedding), which shows who was "
        "drawn: add it to every weight"
    )


def _share_of_bare_parameters(record: RunRecord) -> float:
    """Of all weights: those of parameters whose residual is next to nothing."""
    residuals: NDArray[np.float64] = np.array([step.residual for step in record.steps]).sum(0)
    sizes: NDArray[np.float64] = np.array([step.sizes for step in record.steps], dtype=float).sum(0)
    spread = np.sqrt(residuals / np.maximum(sizes, 1))
    return float(sizes[spread < _NO_NOISE * spread.max()].sum() / sizes.sum())


def _left_out(counts: list[NumberCounts]) -> tuple[Outcome, str] | None:
    if _share(counts, [one.zeros for one in counts]) < _ZEROS:
        return None
    if all(one.kept_by_clean for one in counts if one.zeros):
        return LESS, (
            "only the numbers in which the gradient without noise is largest are kept, and which these are no noise "
            "hides: choose them by the noisy gradient"
        )
    return UNKNOWN, (
        "some numbers of the noisy gradient are left out (zero): if chance or the noisy gradient chooses them, that is "
        f"as safe; say how they are chosen, {_BEFORE}"
    )


def _of_one_sign(counts: list[NumberCounts], record: RunRecord) -> tuple[Outcome, str] | None:
    """Noise, not another gradient: much of it is across all gradients that are known."""
    across, every = sum(noise_of_step(step)[0] for step in record.steps), sum(sum(s.residual) for s in record.steps)
    if _share(counts, [one.agreeing for one in counts]) < _ALL or across < _ACROSS * every:
        return None
    return LESS, (
        "every number of the noise has the sign of the gradient's, so that it shows what it should hide: draw it "
        "by itself"
    )


def _rounded_noise(counts: list[NumberCounts]) -> tuple[Outcome, str] | None:
    """Noise that is zero on some weights, and on most others one of a few values."""
    bare, others = _share(counts, [one.bare for one in counts]), [one for one in counts if one.bare < one.numbers]
    again = [one.repeated / (_compared_numbers(one) * (1 - one.bare / one.numbers)) for one in others]
    if bare < _MANY or sum(again) < _MOSTLY * len(again):
        return None
    return LESS, (
        f"the noise is rounded to a few values, so that about {bare:.0%} of the weights have none and the others share "
        "theirs: draw it in full precision"
    )


def _compared_numbers(one: NumberCounts) -> int:
    return min(one.numbers, _COMPARED)


def _drawn_once(counts: list[NumberCounts]) -> tuple[Outcome, str] | None:
    """Noise whose numbers come again, which are not all at its edge, or nearly all of which come again."""
    compared = [_compared_numbers(one) for one in counts]
    inside = sum(max(0, one.repeated - one.residual_edge) / of for one, of in zip(counts, compared, strict=True))
    every = sum(one.repeated / of for one, of in zip(counts, compared, strict=True))
    if inside / len(counts) < _OFTEN and every / len(counts) < _NEARLY_ALL:
        return None
    return LESS, (
        "the same number of noise is on several weights (it is drawn once for a row or layer, from the same seed for "
        "several layers, or rounded): draw every weight's noise by itself, in full precision"
    )


def _cut_off(counts: list[NumberCounts]) -> tuple[Outcome, str] | None:
    noise, applied = [one.residual_edge - 1 for one in counts], [one.applied_edge - 1 for one in counts]
    if _share(counts, noise) > _MANY and sum(noise) > sum(applied):
        return (
            LESS,
            "the noise is not Gaussian: it is cut off at its largest number: draw it from a normal distribution",
        )
    if _share(counts, applied) > _MANY:
        return UNKNOWN, (
            "the noisy gradient is cut off at one largest number after its noise, which is as safe by itself, but "
            f"hides how much noise there is: {_BEFORE.removeprefix('and ')}"
        )
    return None


def _centred_rows(counts: list[NumberCounts]) -> tuple[Outcome, str] | None:
    if not all(one.centred for one in counts):
        return None
    return UNKNOWN, (
        "every row of the noisy gradient is centred after its noise, which is as safe by itself, but hides how much "
        f"noise there is: {_BEFORE.removeprefix('and ')}"
    )
