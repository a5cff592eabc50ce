"""What an attack on one trained model showed, in words and figures; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.document import Document

__all__ = ["OUTCOMES", "TONES", "outcome", "rows", "told"]

OUTCOMES = {
    "cannot be told": "Whether the model gives its training data away cannot be told from these records.",
    "gives members away": "The model gives its training data away: the attack does better than guessing.",
    "nothing shown": "This attack cannot tell members from non-members; a stronger one may.",
}
TONES = {"cannot be told": "open", "gives members away": "bad", "nothing shown": "open"}


def outcome(document: Document) -> str:
    """One of `OUTCOMES`."""
    if document["blind"]["differs"]:
        return "cannot be told"
    return "gives members away" if document["average_precision_interval"]["low"] > 0.5 else "nothing shown"


def told(document: Document) -> str:
    """How it was found out."""
    given = document["input"]
    return (
        f"The attacker knew half of {given['members']:,} members and {given['non_members']:,} non-members (as many of "
        f"each) and was tested on {given['tested']:,} others, {given['repeats']} times."
    )


def rows(document: Document) -> Iterator[tuple[str, str]]:
    """A label and a figure."""
    given, limits, bound = document["input"], document["average_precision_interval"], document["epsilon_lower_bound"]
    yield "Average precision (0.5: guessing)", f"{document['average_precision']['mean']:.3f}"
    yield f"  {given['confidence']:.0%} limits, first repeat", f"{limits['low']:.3f} to {limits['high']:.3f}"
    yield "Blind average precision, without the model", f"{document['blind']['average_precision']:.3f}"
    yield "Advantage (TPR - FPR)", f"{document['advantage']['mean']:.3f}"
    for fpr, tpr in document["tpr_at_fpr"].items():
        yield f"Members found (TPR) at {100 * float(fpr):g} % FPR", f"{tpr:.2%}"
    shown = "-" if bound["value"] is None else f"{bound['value']:.3g}"
    yield f"Epsilon at delta {given['delta']:.3g}, at least", shown
    yield "Accuracy on members", f"{document['accuracy']['members']:.1%}"
    yield "Accuracy on non-members", f"{document['accuracy']['non_members']:.1%}"
