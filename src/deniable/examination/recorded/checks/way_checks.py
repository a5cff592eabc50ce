"""Sums of the records' gradients by other rules than each clipped: do the residuals lie along one of them?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable.examination.diagnostics.p_values import any_of, normal
from deniable.examination.recorded.checks.outcomes import LESS, UNKNOWN
from deniable.examination.recorded.checks.rival_gradient import (
    BETTER,
    FITTED,
    FITTED_IN_A_STEP,
    Candidate,
    distance_of_claim,
)
from deniable.examination.recorded.checks.way_texts import (
    EITHER,
    LEFT_OUT,
    TEXTS_OF_WAYS,
    VARIES,
    tell_chosen,
    tell_chunks,
    tell_groups,
    tell_kept,
    tell_multiple,
)
from deniable.examination.recorded.gradients.record_shares import RecordGradients
from deniable.examination.recorded.gradients.summed_families import FAMILIES
from deniable.examination.recorded.gradients.ways_to_sum import (
    BY_LOSSES,
    COMMON_FACTORS,
    LARGEST_ENTRY,
    WAYS_TO_SUM,
)
from deniable.examination.recorded.run_record import ExaminedStep, RunRecord, noise_of_step, noise_variance

Array = NDArray[np.float64]
_OF_BATCH = [at for at, way in enumerate(WAYS_TO_SUM) if way in (*COMMON_FACTORS, *BY_LOSSES)]
_LIKE_FIXED = {*_OF_BATCH, WAYS_TO_SUM.index(LARGEST_ENTRY)}
_MARGIN, _WORSE = 37.0, 3.0
"""So much nearer than harmless sums those of one factor a batch must be: 6 below that of one fixed factor; and by so
much further the usual ones must be for that to be told."""
_ERRORS = 5.0
"""Standard deviations of what other factors in every step gain by chance, a chi-square."""


def spread_of_noise(steps: Sequence[ExaminedStep]) -> float:
    """The standard deviation of a number of noise over its measured one: Student's, of the least degrees."""
    degrees = min(noise_of_step(step)[1] for step in steps)
    return float(np.sqrt(degrees / max(degrees - 2, 1)))


def ways_p_value(steps: tuple[ExaminedStep, ...]) -> float:
    """Of all ways; a norm without some parameters only makes sums longer."""
    found = _along_ways(steps)
    return any_of(any_of(normal(found[: len(WAYS_TO_SUM)])), any_of(ndtr(-found[len(WAYS_TO_SUM) :])))


def sums_of_ways(record: RunRecord, units: list[Array], level: float) -> Iterator[Candidate]:
    """Applied = the records' gradients summed in one of `WAYS_TO_SUM`, or clipped by a norm without some parameters."""
    claim = distance_of_claim(units)
    left_out = (LEFT_OUT.format(name) for name in (*record.names, "all biases and other vectors"))
    gain = 0.0 if ways_p_value(record.steps) < level else BETTER
    found, on_all = _more_of_ways(record.steps), _more_of_ways(record.steps, on_all_weights=True)
    rows = zip((*TEXTS_OF_WAYS, *left_out), found, on_all, strict=False)
    for at, (text, (along, length), there) in enumerate(rows):
        if length > 0:
            margin = _MARGIN if at in _LIKE_FIXED else 0.0  # one fixed factor, or norm, is as safe
            nearer = 2 * along - length
            hidden = max(0.0, float(2 * there[0] - there[1]) - nearer)
            yield Candidate(claim - nearer + FITTED, LESS, text, gain=gain, margin=margin, hidden=hidden)


def sums_of_chosen(record: RunRecord, units: list[Array]) -> Iterator[Candidate]:
    """Applied = the clipped sum of some records of each batch, chosen by a rule, which is fitted."""
    claim = distance_of_claim(units)
    for order, rule, value, gained in record.chosen:
        outcome, text = tell_chosen(order, rule, value)
        margin = _MARGIN if outcome == LESS else 0.0
        yield Candidate(claim - gained + 2 * FITTED, outcome, text, margin=margin, gain=2 * BETTER)


def sums_of_groups(record: RunRecord, units: list[Array]) -> Iterator[Candidate]:
    """Applied = the sum of what groups of records have together, each clipped; their size is fitted."""
    if record.grouped is not None:
        size, gained = record.grouped
        distance = distance_of_claim(units) - gained + 2 * FITTED
        yield Candidate(distance, LESS, tell_groups(size), margin=2 * FITTED, gain=2 * BETTER)


def sums_of_chunks(record: RunRecord, units: list[Array], level: float) -> Iterator[Candidate]:
    """Applied = the mean over chunks of a batch of the means of clipped gradients; their size is fitted."""
    if record.averaged is not None:
        size, gained, chance = record.averaged
        distance = distance_of_claim(units) - gained + FITTED
        gain = 0.0 if chance < level else BETTER
        yield Candidate(distance, LESS, tell_chunks(size), margin=FITTED, gain=gain)


def kept_sums(record: RunRecord, units: list[Array]) -> Iterator[Candidate]:
    """Applied = clipped sums, in some steps with what was summed for those before; in which is fitted."""
    if record.kept is not None:
        steps, gained = record.kept
        distance = distance_of_claim(units) - gained + FITTED_IN_A_STEP * len(units)
        yield Candidate(distance, LESS, tell_kept(steps, len(units)), margin=FITTED)


def multiplied_sums(record: RunRecord, units: list[Array], noise: float) -> Iterator[Candidate]:
    """Applied = the clipped sum for a multiple of loss or norm, which is fitted; other short ones are like it."""
    claim = distance_of_claim(units)
    for at, (family, (multiple, gained)) in enumerate(zip(FAMILIES, record.multiplied, strict=False)):
        doubt = _doubt(record, at, gained)
        outcome, text = tell_multiple(family, multiple, noise, doubt)
        distance = claim - gained + FITTED + (0.0 if family == "norm" and multiple > 1 else BETTER)
        if outcome == UNKNOWN and doubt == VARIES:  # a factor in every step, of which some follow rules
            distance += FITTED_IN_A_STEP * len(record.steps) + BETTER - sum(record.multiplied_apart[at : at + 1])
        yield Candidate(distance, outcome, text, margin=BETTER)


def _doubt(record: RunRecord, family: int, gained: float) -> str:
    """Why the same multiple in all steps may not be what was applied; "" where it is."""
    chance = len(record.steps) + _ERRORS * (2 * len(record.steps)) ** 0.5
    apart = record.multiplied_apart[family] if family < len(record.multiplied_apart) else np.inf
    common = _more_of_ways(record.steps)[_OF_BATCH]
    nearest = max((2 * along - length for along, length in common if length > 0), default=-np.inf)
    return VARIES if apart > chance else EITHER if nearest > gained - _WORSE else ""


def _along_ways(steps: tuple[ExaminedStep, ...]) -> Array:
    """z-values along what other ways to sum the records' gradients have more, of all steps together; nan for none.

    First those of `WAYS_TO_SUM`, then norms without one parameter, and without all vectors.
    """
    if not all(step.ways and step.norms for step in steps if step.batch):
        return np.empty(0)
    along, length = _more_of_ways(steps).T
    return np.where(length > 0, along / np.sqrt(np.maximum(length, 1e-300)) / spread_of_noise(steps), np.nan)


def _more_of_ways(steps: Sequence[ExaminedStep], on_all_weights: bool = False) -> Array:
    """(ways, 2) of all steps, in variances of the noise: residual x what a way has more, and its squared length.

    `on_all_weights` as they would be about there, where they were compared on a sample.
    """
    rows = [
        _of_step(step) / noise_variance(step) * (times_held(step) if on_all_weights else 1.0)
        for step in steps
        if step.ways and step.norms
    ]
    return np.sum(rows, axis=0) if rows else np.zeros((len(WAYS_TO_SUM), 2))


def times_held(step: ExaminedStep) -> float:
    """How many times the weights at which its records' gradients are held it has."""
    numbers = sum(step.sizes)
    places = RecordGradients.places_of(numbers, step.batch)
    return 1.0 if places is None else numbers / len(places)


def _of_step(step: ExaminedStep) -> Array:
    """Recordings of older versions know fewer ways."""
    return np.array([*step.ways, *((0.0, 0.0),) * (len(WAYS_TO_SUM) - len(step.ways)), *step.norms])
