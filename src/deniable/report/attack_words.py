"""What an attack on one trained model showed, in words and figures; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.formatting import at_least, short
from deniable.report.amount_text import share
from deniable.results.attack_result import AttackResult

__all__ = ["FRESH", "TONES", "attack_sentence", "meaning", "outcome", "rows"]

TONES = {"cannot be told": "open", "gives members away": "bad", "gives something away": "odd", "nothing shown": "open"}
FRESH = (
    "Warning: no --weights were given. The network was attacked as MODEL returns it; if that is a freshly made one, "
    "this is NOT your trained model, and the result says nothing about it."
)


def outcome(document: AttackResult) -> str:
    """One of `TONES`."""
    if document.blind.differs:
        return "cannot be told"
    if document.average_precision_interval.low > 0.5:
        return "gives members away"
    bound = document.epsilon_lower_bound.value
    return "nothing shown" if bound == 0 else "gives something away"


def meaning(document: AttackResult) -> str:
    """The outcome in a sentence, with the figures that it rests on."""
    limits, bound = document.average_precision_interval, document.epsilon_lower_bound.value
    ends = f"{document.average_precision.mean:.3f}, limits {limits.low:.3f} to {limits.high:.3f}; guessing has 0.5"
    epsilon = "any number" if bound is None else at_least(bound)
    return {
        "cannot be told": "Whether the model gives its training data away cannot be told from these records.",
        "gives members away": "The model gives its training data away: the attack does better than guessing (average "
        f"precision {ends}).",
        "gives something away": "The model gives some of its training data away: the attack's errors prove an epsilon "
        f"of at least {epsilon}, though its average precision alone ({ends}) does not tell it from guessing.",
        "nothing shown": f"These records cannot tell this attack from guessing (average precision {ends}). More "
        "records, or a stronger attack, may.",
    }[outcome(document)]


def attack_sentence(document: AttackResult) -> str:
    """How it was found out."""
    given = document.input
    times = f"{given.repeats} time{'s' * (given.repeats > 1)}"
    return (
        f"The attacker knew half of {given.members:,} members and {given.non_members:,} non-members (as many of "
        f"each) and was tested on {given.tested:,} others, {times}. The limits and the bound on "
        f"epsilon, both of the first time, hold together with confidence {100 * given.confidence:.4g} %."
    )


def rows(document: AttackResult) -> Iterator[tuple[str, str]]:
    """A label and a figure."""
    given, limits, bound = document.input, document.average_precision_interval, document.epsilon_lower_bound
    yield "Average precision (0.5: guessing)", f"{document.average_precision.mean:.3f}"
    yield "  its limits, first repeat", f"{limits.low:.3f} to {limits.high:.3f}"
    yield "Blind average precision, without the model", f"{document.blind.average_precision:.3f}"
    yield "Advantage (TPR - FPR)", f"{document.advantage.mean:.3f}"
    for fpr, tpr in document.tpr_at_fpr.items():
        yield f"Members found (TPR) at {100 * float(fpr):g} % FPR", share(tpr)
    shown = "-" if bound.value is None else at_least(bound.value)
    yield f"Epsilon at delta {short(given.delta)}, at least", shown
    yield "The model's accuracy on members", share(document.accuracy.members)
    yield "The model's accuracy on non-members", share(document.accuracy.non_members)
