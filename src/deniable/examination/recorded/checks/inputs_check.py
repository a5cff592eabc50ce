"""The check of what the model was given: each record by itself, as it is loaded."""

from __future__ import annotations

from collections import Counter

from deniable.examination.recorded.checks.outcomes import LESS, UNKNOWN
from deniable.examination.recorded.given_inputs import OtherInputs
from deniable.examination.recorded.run_record import RunRecord
from deniable.results.run_result import RunCheck

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
