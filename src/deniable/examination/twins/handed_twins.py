"""Twins on other records that are handed the first one's gradients: what do the records change but the gradients?"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import torch
from torch import Tensor

from deniable.examination.step_listeners import HandedGradients
from deniable.examination.twins.idle_records import other_contents
from deniable.examination.twins.twin_differences import different_batches
from deniable.examination.twins.twin_run import Run, are_same, drawn_places, final_row, same_weights, stand_in
from deniable.examination.twins.twins import FAILS, Twins

__all__ = ["follows_gradients_alone", "keeps_earlier_records"]

_NAME, _KEEPS, _YES = "handed gradients", "earlier records", "yes"
_OLD_FACTORS = 0.01
"""The share of a difference that other factors of the same gradients may leave."""
_ROUNDED = 1e-5
"""Sums of the same records at the same weights that differ by this share are the same."""


def follows_gradients_alone(twins: Twins | None) -> bool:
    """Whether weights, number of steps and release are a function of yielded gradients and seed, as far as twins show.

    False also where it cannot be seen, as of a training that applies a copy of what it yields.
    """
    if twins is None or not twins.repeatable:
        return False
    return bool(twins.once(_NAME, lambda: _YES if all(_stays_on_its_way(twins, s) for s in twins.seeds) else ""))


def keeps_earlier_records(twins: Twins) -> bool:
    """Whether a later step's sum holds what only earlier ones may: records not in its batch, or gradients of then.

    At the same weights, which the handed gradients lead to. Noise of earlier steps in it is not told from gradients.
    """
    keeps = partial(_keeps, twins)
    return bool(twins.once(_KEEPS, lambda: _YES if twins.repeatable and any(map(keeps, twins.seeds)) else ""))


def _keeps(twins: Twins, seed: int) -> bool:
    handed = HandedGradients()
    one = twins.train(seed, True, {}, None, handed=handed)
    steps = sorted({1, 2, len(one.seen) // 2, len(one.seen) - 1} & set(range(1, len(one.seen))))
    with suppress(*FAILS):
        return any(_holds_undrawn(twins, seed, one, handed, step) for step in steps) or _holds_overwritten(twins, seed)
    return False


def _holds_undrawn(twins: Twins, seed: int, one: Run, handed: HandedGradients, step: int) -> bool:
    """Whether records that a step has not drawn change its sum."""
    outside = set(range(len(one.members))) - set(drawn_places(one, step))
    exchanged = {place: stand_in(one, twins.other_columns(one, place)[0]) for place in outside}
    if not exchanged:
        return False
    two = twins.train(seed, True, exchanged, step + 1, handed=handed.hand_over())
    return _at_same_place(one, two, step) and not are_same(one.sums[step], two.sums[step], _ROUNDED)


def _holds_overwritten(twins: Twins, seed: int) -> bool:
    """Whether records that were overwritten before the last step change its sum; not told of one that copies them."""
    handed = HandedGradients()
    others = next(iter(other_contents(twins, twins.original(seed))))
    one = twins.train(seed, True, others, None, handed=handed)
    last = len(one.seen) - 1
    if last < 1:
        return False
    two = twins.train(seed, True, others, last + 1, after=last, handed=handed.hand_over())
    three = twins.train(seed, True, {}, last + 1, handed=handed.hand_over())
    told = _at_same_place(one, two, last) and _at_same_place(one, three, last)
    if not told or any(are_same(two.sums[last], run.sums[last], _ROUNDED) for run in (one, three)):
        return False
    return not _weighs_otherwise(one, one.sums[last] - two.sums[last], last)


def _weighs_otherwise(run: Run, difference: Tensor, step: int) -> bool:
    """Whether a difference of sums is one of the factors of the batch's present gradients, as of norms that are old."""
    every = run.recomputer.every([w[step : step + 1] for w in run.seen.weights])
    columns = run.members[drawn_places(run, step)]
    present = torch.cat([g[0, columns].flatten(1) for g in every], 1).double()
    solved = torch.linalg.lstsq(present.T, difference.unsqueeze(1), driver="gelsd").solution
    return bool((present.T @ solved - difference.unsqueeze(1)).norm() <= _OLD_FACTORS * difference.norm())


def _at_same_place(one: Run, two: Run, step: int) -> bool:
    there = len(two.seen) > step and len(one.seen) > step
    return there and same_weights(one, two, step) and not different_batches(one, two, step + 1)


def _stays_on_its_way(twins: Twins, seed: int) -> bool:
    handed = HandedGradients()
    one = twins.train(seed, True, {}, None, handed=handed)
    try:
        others = [
            twins.train(seed, True, contents, None, handed=handed.hand_over())
            for contents in other_contents(twins, one)
        ]
    except FAILS:
        return False
    return all(_same_way(one, two) for two in others)


def _same_way(one: Run, two: Run) -> bool:
    if (
        len(one.seen) != len(two.seen)
        or different_batches(one, two)
        or (one.seen.final is None) != (two.seen.final is None)
    ):
        return False
    ways = all(same_weights(one, two, step) for step in range(len(one.seen)))
    return ways and one.seen.public == two.seen.public and are_same(final_row(one), final_row(two))
