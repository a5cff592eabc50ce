"""Twins on other records that are handed the first one's gradients: what do the records change but the gradients?"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from deniable.examination.step_listeners import HandedGradients
from deniable.examination.twins.idle_records import other_contents
from deniable.examination.twins.twin_differences import different_batches
from deniable.examination.twins.twin_run import FAILS, Run, are_same, drawn_places, final_row, same_weights, stand_in
from deniable.examination.twins.twins import Twins

_NAME, _KEEPS, _FORGETS, _DRAWS = "handed gradients", "earlier records", "forgotten records", "other draws"
_YES = "yes"
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


def ignores_draws(twins: Twins) -> bool:
    """Whether the weights, steps and release of D' are D's, where it is handed D's gradients and draws other batches.

    D' has a record fewer, so that everything after the first draw is another one. Without such a D' nothing is seen.
    """
    return bool(twins.once(_DRAWS, lambda: _YES if all(_neighbour_follows(twins, s) for s in twins.seeds) else ""))


def _neighbour_follows(twins: Twins, seed: int) -> bool:
    handed = HandedGradients()
    one = twins.train(seed, True, {}, None, handed=handed)
    with suppress(*FAILS):
        two = twins.train(seed, False, {}, None, handed=handed.hand_over())
        return len(one.members) != len(two.members) and _same_weights(one, two)
    return False


def keeps_earlier_records(twins: Twins) -> bool:
    """Whether a later step's sum holds what only earlier ones may: records not in its batch, or gradients of then.

    At the same weights, which the handed gradients lead to. Noise of earlier steps in it is not told from gradients.
    Not of a training that uses records which no step has drawn: its batches are not the ones that it tells.
    """
    return bool(twins.once(_KEEPS, lambda: _YES if twins.repeatable and _keeps(twins) else ""))


def _keeps(twins: Twins) -> bool:
    for seed in twins.seeds:
        handed = HandedGradients()
        one = twins.train(seed, True, {}, None, handed=handed)
        holds = partial(_holds_undrawn, twins, seed, one, handed)
        later = sorted({1, 2, len(one.seen) // 2, len(one.seen) - 1} & set(range(1, len(one.seen))))
        with suppress(*FAILS):
            if any(holds(step=step, undrawn_in=range(step + 1)) for step in (0, *later)):
                return False
            if any(holds(step=step, undrawn_in=[step]) for step in later) or _holds_overwritten(twins, seed):
                return True
    return False


def _holds_undrawn(
    twins: Twins, seed: int, one: Run, handed: HandedGradients, *, step: int, undrawn_in: Iterable[int]
) -> bool:
    """Whether records that some steps have not drawn change a step's sum."""
    outside = set(range(len(one.members))).difference(*(drawn_places(one, other) for other in undrawn_in))
    exchanged = {place: stand_in(one, twins.other_columns(one, place)[0]) for place in outside}
    if not exchanged:
        return False
    two = twins.train(seed, True, exchanged, step + 1, handed=handed.hand_over())
    return _at_same_place(one, two, step) and not are_same(one.sums[step], two.sums[step], _ROUNDED)


@dataclass(frozen=True)
class _Overwritten:
    """The last step of trainings at the same weights: on other records, on these, and on others from that step on."""

    others: Run
    these: Run
    others_at_last: Run

    @classmethod
    def of(cls, twins: Twins, seed: int) -> _Overwritten | None:
        """None where they are not at the same weights, or there is one step only."""
        handed = HandedGradients()
        contents = next(iter(other_contents(twins, twins.original(seed))))
        one = twins.train(seed, True, contents, None, handed=handed)
        last = len(one.seen) - 1
        if last < 1:
            return None
        late = twins.train(seed, True, contents, last + 1, after=last, handed=handed.hand_over())
        three = twins.train(seed, True, {}, last + 1, handed=handed.hand_over())
        told = _at_same_place(one, late, last) and _at_same_place(one, three, last)
        return cls(one, three, late) if told else None

    @property
    def step(self) -> int:
        return len(self.others.seen) - 1

    def is_like(self, run: Run) -> bool:
        """Whether the sum of records that came late is that of another training."""
        return are_same(self.others_at_last.sums[self.step], run.sums[self.step], _ROUNDED)


def forgets_earlier_records(twins: Twins) -> bool:
    """Whether the last step's sum follows from its own records and weights: overwritten ones leave nothing in it.

    False also where it cannot be seen, as of a training that copies its records.
    """
    forgets = partial(_forgets, twins)
    return twins.repeatable and bool(twins.once(_FORGETS, lambda: _YES if all(map(forgets, twins.seeds)) else ""))


def _forgets(twins: Twins, seed: int) -> bool:
    with suppress(*FAILS):
        found = _Overwritten.of(twins, seed)
        return found is not None and found.is_like(found.others) and not found.is_like(found.these)
    return False


def _holds_overwritten(twins: Twins, seed: int) -> bool:
    """Whether records that were overwritten before the last step change its sum; not told of one that copies them."""
    found = _Overwritten.of(twins, seed)
    if found is None or found.is_like(found.others) or found.is_like(found.these):
        return False
    difference = found.others.sums[found.step] - found.others_at_last.sums[found.step]
    return not _weighs_otherwise(found.others, difference, found.step)


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
    if len(one.seen) != len(two.seen) or different_batches(one, two):
        return False
    return one.seen.public == two.seen.public and _same_weights(one, two)


def _same_weights(one: Run, two: Run) -> bool:
    """Whether equally many steps, and the release, have the same weights."""
    if len(one.seen) != len(two.seen) or (one.seen.final is None) != (two.seen.final is None):
        return False
    ways = all(same_weights(one, two, step) for step in range(len(one.seen)))
    return ways and are_same(final_row(one), final_row(two))
