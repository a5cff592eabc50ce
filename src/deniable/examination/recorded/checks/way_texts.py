"""What is said of a sum of gradients that is nearer to the applied one than the claimed: one text for each."""

from __future__ import annotations

from deniable.examination.recorded.checks.outcomes import LESS, OTHER
from deniable.examination.recorded.record_shares import THRESHOLDS, WAYS_TO_SUM, Family
from deniable.results.run_result import Outcome

LEFT_OUT = (
    "the norm that clips leaves out {}, so that a record's gradient is longer than the clipping norm: clip the norm "
    "over all layers"
)
_MIXED = "so that one record's share depends on other records of its batch"
TEXTS_OF_WAYS = (
    *(
        f"gradients of up to {most:g} x the clipping norm are not clipped, longer ones are: clip every gradient "
        "that is longer than the norm"
        for most in THRESHOLDS
    ),
    f"the batch's mean gradient is taken from every record's before it is clipped, {_MIXED}: clip every record's own",
    f"records are weighted by how rare their class is in the batch, {_MIXED}: give all the same weight",
    "every gradient is divided by its squared norm, so that one shorter than the clipping norm is made longer, without "
    "limit: divide by the norm, and only where it is above the clipping norm",
    "every number of a gradient is clipped on its own (by value), which does not bound its norm by the clipping norm: "
    "clip the norm over all numbers",
    *(
        "classes are weighted by how rare they are among all records, which no noise hides: fix the weights beforehand"
        for _ in WAYS_TO_SUM[len(THRESHOLDS) + 4 :]
    ),
)


def tell_multiple(family: Family, multiple: float, noise: float) -> tuple[Outcome, str]:
    """What a sum of `FAMILIES` means, beside so many times the claimed noise."""
    if family == "loss":
        return OTHER, f"the loss is {multiple:.2g} x the named one before its gradients are clipped, which is as safe"
    if family == "loss by size":
        return LESS, (
            "the loss is divided by the batch's own size before its gradients are clipped, so that one record's share "
            "depends on how many others there are: divide by a public number"
        )
    text = f"the gradients are clipped at {multiple:.2g} x the clipping norm"
    if noise < _ENOUGH_NOISE * multiple:
        return LESS, f"{text}, with too little noise for that"
    more = " and the noise is as much larger," if multiple > 1 else ""
    return OTHER, f"{text},{more} which is as safe if that norm was fixed beforehand"


_ENOUGH_NOISE = 0.97
"""Of what a norm needs, within what is measured."""
