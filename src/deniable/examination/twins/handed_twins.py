"""Twins on other records that are handed the first one's gradients: do they take the same way?"""

from __future__ import annotations

from deniable.examination.handed_gradients import HandedGradients
from deniable.examination.twins.idle_records import other_contents
from deniable.examination.twins.twin_differences import different_batches
from deniable.examination.twins.twin_run import Run, are_same, final_row, same_weights
from deniable.examination.twins.twins import FAILS, Twins

__all__ = ["follows_gradients_alone"]

_NAME, _YES = "handed gradients", "yes"


def follows_gradients_alone(twins: Twins | None) -> bool:
    """Whether weights, number of steps and release are a function of yielded gradients and seed, as far as twins show.

    False also where it cannot be seen, as of a training that applies a copy of what it yields.
    """
    if twins is None or not twins.repeatable:
        return False
    if _NAME not in twins.known:
        twins.known[_NAME] = _YES if all(_stays_on_its_way(twins, seed) for seed in twins.seeds) else ""
    return bool(twins.known[_NAME])


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
