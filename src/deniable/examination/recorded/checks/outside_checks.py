"""Checks of what lies outside the steps: the model's inputs, initial weights and class weights, batches left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.examination.diagnostics.p_values import any_of
from deniable.examination.recorded.batches.given_inputs import OtherInputs
from deniable.examination.recorded.checks.outcomes import LESS, UNKNOWN
from deniable.examination.recorded.run_record import RunRecord
from deniable.examination.recorded.weights.watched_buffers import BufferFinding
from deniable.results.run_result import Outcome, RunCheck

_ALL = "so that every record changes the gradients of all others, which no noise hides"
_CAUSES: dict[OtherInputs, str] = {
    "own scale": (
        f"the records are scaled by statistics of all records (their mean, spread or extremes), {_ALL}: scale by "
        "public numbers"
    ),
    "own components": (
        f"the records are projected on the principal components of all records, which depend on them, {_ALL}: choose "
        "features on public data"
    ),
    "scale of the batch": (
        "the records are scaled by statistics of their batch, which mixes them, so that clipping bounds nobody's "
        "influence: scale by public numbers"
    ),
    "running mean": (
        "the records are centred by a running mean of the batches, so that other records change the gradient "
        "of each, which no noise hides: centre by public numbers"
    ),
    "mixed": (
        "the model is given mixtures of two records (mixup), so that one record is in the gradients of several, each "
        "clipped by itself, and clipping bounds nobody's influence: mix only what belongs to one record"
    ),
}
_OTHERS = (
    "the model is given other inputs than the records as they are loaded (augmented, scaled or mixed, or other records "
    "than those that were told), so that their gradients cannot be recomputed: load them as they are used, or name "
    "batch_loss="
)


def inputs_check(record: RunRecord) -> RunCheck | None:
    """None where the model was given the records, or that is not known."""
    found = Counter(step.inputs for step in record.steps if step.inputs)
    if not found or sum(found.values()) * 2 < sum(step.batch > 0 for step in record.steps):
        return None
    most, times = found.most_common(1)[0]
    expected = "the records as they are loaded"
    if times * 2 > sum(found.values()) and most in _CAUSES:
        return RunCheck(name="inputs", outcome=LESS, observed=_CAUSES[most], expected=expected)
    return RunCheck(name="inputs", outcome=UNKNOWN, observed=_OTHERS, expected=expected)


def elsewhere_check(record: RunRecord) -> RunCheck | None:
    """None where gradients are taken at the weights that the step moves, as far as that is known."""
    if record.elsewhere is None:
        return None
    steps, along = record.elsewhere
    seen = f"in {steps:,} steps gradients are taken at other weights than those that the step moves, "
    outcome: Outcome = LESS if along > _ALONG else UNKNOWN
    if outcome == LESS:
        seen += (
            "moved along the batch's gradient without noise (sharpness-aware), so that every record changes the "
            "gradients of the others: move them along an earlier noisy gradient, or not at all"
        )
    else:
        seen += "so that they cannot be recomputed: if records make that move without noise, no noise hides it"
    expected = "at the weights that the step moves"
    return RunCheck(name="weights of the gradients", outcome=outcome, observed=seen, expected=expected)


_ALONG = 0.9
"""The cosine of a departure of weights and a gradient that noise would not leave."""
_HIDDEN = "which no noise hides"
_LEAKS = {
    "rows": f"rows of the initial weights are means, principal axes or single ones of the records, {_HIDDEN}",
    "shares": f"a bias of the initial weights is the logarithm of the classes' shares of the records, {_HIDDEN}",
}
_DRAW = "draw them at random, or from public data"
_KNOWN_LABELS = (
    "the initial weights know labels of the records before the first step: if they were trained on these records, no "
    'noise hides it; if they come from public data, say so with initial="public"'
)
_BY_COUNTS = (
    f"the named loss weights classes by how rare they are among all records, {_HIDDEN}: fix the weights beforehand"
)


def public_checks(record: RunRecord) -> Iterator[RunCheck]:
    """Only those that find something: that nothing was found shows little."""
    expected = "made without the records"
    if record.initial in _LEAKS:
        seen = f"{_LEAKS[record.initial]}: {_DRAW}"
        yield RunCheck(name="initial weights", outcome=LESS, observed=seen, expected=expected)
    elif record.initial:
        yield RunCheck(name="initial weights", outcome=UNKNOWN, observed=_KNOWN_LABELS, expected=expected)
    if record.weights_from_counts:
        yield RunCheck(name="weights of classes", outcome=LESS, observed=_BY_COUNTS, expected=expected)


_BUFFERS: dict[BufferFinding, str] = {
    "records": f"is made of the records of each batch without noise, {_HIDDEN}, and is released with the weights",
    "all records": f"is a statistic of all records without noise, {_HIDDEN}, and is released with the weights",
    "unknown": "changes in the steps by something that was not watched: if the records make it, no noise hides it",
    "end": "changes after the last step by something that was not watched: if the records make it, no noise hides it",
}


def buffers_check(record: RunRecord) -> RunCheck | None:
    """None where no buffer changes, or only harmlessly."""
    if not record.buffers:
        return None
    leaks = [row for row in record.buffers if row[1] in ("records", "all records")]
    outcome: Outcome = LESS if leaks else UNKNOWN
    name, finding = next(iter(leaks or record.buffers))
    more = len(leaks or record.buffers) - 1
    others = f" (and {more:,} more)" if more else ""
    seen = f"the buffer {name}{others} {_BUFFERS[finding]}: fix it beforehand, or make it of public data"
    return RunCheck(name="buffers", outcome=outcome, observed=seen, expected="not made of the records")


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
