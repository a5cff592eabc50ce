"""Checks of what should be made without the records: the initial weights, and the weights of classes in the loss."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.examination.recorded.checks.outcomes import LESS, UNKNOWN
from deniable.examination.recorded.run_record import RunRecord
from deniable.results.run_result import RunCheck

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
