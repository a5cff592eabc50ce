"""What is said of a sum of gradients that is nearer to the applied one than the claimed: one text for each."""

from __future__ import annotations

from deniable.examination.recorded.checks.outcomes import LESS, OTHER, UNKNOWN
from deniable.examination.recorded.gradients.chosen_records import Order, Rule
from deniable.examination.recorded.gradients.summed_families import Family
from deniable.examination.recorded.gradients.ways_to_sum import (
    ADDED_UP,
    BY_COUNTS,
    BY_LOSSES,
    COMMON_FACTORS,
    LARGEST_ENTRY,
    ROUNDED,
    THRESHOLDS,
    WAYS_TO_SUM,
)
from deniable.results.run_result import Outcome

LEFT_OUT = (
    "the norm that clips leaves out or underestimates {}, so that a record's gradient is longer than the clipping "
    "norm: clip the norm over all layers, as long as it is"
)
_MIXED = "so that one record's share depends on other records of its batch"
_OWN = "clip every record's own gradient at a fixed norm"
_RULES = {
    "over the": f"gradients of a batch are multiplied by the clipping norm over their {{}} norm, {_MIXED}: {_OWN}",
    "shortened over the": (
        f"gradients of a batch are shortened by one factor, the clipping norm over their {{}} norm, {_MIXED}: {_OWN}"
    ),
    "clipped, over the": (
        f"gradients of a batch are divided by their {{}} norm before they are clipped, {_MIXED}: {_OWN}"
    ),
    "clipped at the": f"gradients of a batch are clipped at their {{}} norm, {_MIXED}: {_OWN}",
}


def _tell_common(way: str) -> str:
    rule, _, usual = way.rpartition(" ")
    return _RULES[rule].format(usual)


_TEXTS = {
    **{
        f"left up to {most:g}": f"gradients of up to {most:g} x the clipping norm are not clipped, longer ones are: "
        "clip every gradient that is longer than the norm"
        for most in THRESHOLDS
    },
    "less the mean": (
        f"the batch's mean gradient is taken from every record's before it is clipped, {_MIXED}: clip every record's "
        "own"
    ),
    "by class": (f"records are weighted by how rare their class is in the batch, {_MIXED}: give all the same weight"),
    "squared norm": (
        "every gradient is divided by its squared norm, so that one shorter than the clipping norm is made longer, "
        "without limit: divide by the norm, and only where it is above the clipping norm"
    ),
    "by value": (
        "every number of a gradient is clipped on its own (by value), which does not bound its norm by the clipping "
        "norm: clip the norm over all numbers"
    ),
    **dict.fromkeys(
        BY_COUNTS,
        "classes are weighted by how rare they are among all records, which no noise hides: fix the weights beforehand",
    ),
    **{way: _tell_common(way) for way in COMMON_FACTORS},
    **dict.fromkeys(
        BY_LOSSES, f"records are weighted by their share in the losses of the batch, {_MIXED}: give all the same weight"
    ),
    **dict.fromkeys(
        ADDED_UP,
        "gradients are not cleared between records, so that sums of several records are clipped and an early record is "
        "in all later ones, beyond its share: clear them before every record (zero_grad)",
    ),
    LARGEST_ENTRY: (
        "gradients are clipped by their largest entry in place of their Euclidean norm, which is longer, so that a "
        "record's gradient is longer than the clipping norm: clip the Euclidean norm over all numbers"
    ),
    **{
        way: f"the norm that clips has too few digits (half precision): numbers {way.removeprefix('rounded ')} x the "
        "clipping norm vanish in it, so that gradients are longer than the clipping norm: compute norms in single "
        "precision"
        for way in ROUNDED
    },
}
TEXTS_OF_WAYS = tuple(_TEXTS[way] for way in WAYS_TO_SUM)


def tell_multiple(family: Family, multiple: float, noise: float, doubt: str) -> tuple[Outcome, str]:
    """What a sum of `FAMILIES` means, beside so many times the claimed noise; `doubt`: why it may not be that."""
    if family == "loss by size":
        return LESS, (
            "the loss is divided by the batch's own size before its gradients are clipped, so that one record's share "
            "depends on how many others there are: divide by a public number"
        )
    if family == "loss":
        text = f"the loss is {multiple:.2g} x the named one before its gradients are clipped"
        return (UNKNOWN, f"{text}, {doubt}") if doubt else (OTHER, f"{text}, which is as safe")
    text = f"the gradients are clipped at {multiple:.2g} x the clipping norm"
    if noise < _ENOUGH_NOISE * multiple:
        return LESS, f"{text}, with too little noise for that"
    if doubt:
        return UNKNOWN, f"{text}, {doubt}"
    more = " and the noise is as much larger," if multiple > 1 else ""
    return OTHER, f"{text},{more} which is as safe if that norm was fixed beforehand"


def tell_chosen(order: Order, rule: Rule, value: float) -> tuple[Outcome, str]:
    """What it means that only some records of a batch count."""
    which = f"only the records of a batch with the {order} count"
    if rule == "level":
        return UNKNOWN, (
            "the applied gradient is another than the batch's clipped sum: name the loss that is trained on (it is "
            f"nearest to that of the {order}, on one side of {value:.2g}: as safe, if that was fixed beforehand)"
        )
    many = {
        "share": f"about {value:.0%} of them",
        "number": f"{value:.0f} of them",
        "beyond the mean": "beyond its mean",
    }
    return LESS, f"{which} ({many[rule]}), so that which records count depends on the others: sum them all"


def tell_groups(size: int) -> str:
    """What it means that so many records are clipped together."""
    return f"the gradients of {size} records at a time (microbatches) are clipped as one, {_MIXED}: {_OWN}"


def tell_chunks(size: int) -> str:
    """What it means that clipped gradients are averaged in chunks of so many."""
    return (
        f"clipped gradients are averaged in chunks of {size} (physical batches), and those averages again, so that a "
        "record of a smaller chunk counts for more than the clipping norm: divide their sum by one public number"
    )


def tell_kept(steps: int, of: int) -> str:
    """What it means that so many steps hold earlier clipped sums."""
    return (
        f"clipped sums of earlier steps are still in {steps:,} of {of:,} steps (they are not cleared), so that a "
        "record counts in steps that did not draw it, beyond its share: clear the sum before every step"
    )


VARIES = (
    "about, by another factor in every step: if it is made from the records (their losses, their norms, how many they "
    "are), no noise hides it; fix it beforehand, or name the loss that is trained on"
)
EITHER = (
    "or by a usual norm of its batch's gradients in every step, which this run does not tell apart: if the records "
    "make that factor, no noise hides it; fix it beforehand, or name the loss that is trained on"
)
_ENOUGH_NOISE = 0.97
"""Of what a norm needs, within what is measured."""
