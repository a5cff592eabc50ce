"""Records that may change nothing: those that no batch has drawn, and those that change after their step.

Twins with the same seed differ in such records alone. Whatever else differs was computed from them, and no noise hides
it. Nothing is left to chance, so that a training as claimed is never called otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
import torch
from torch.func import functional_call

from deniable.examination.twins.twin_differences import different_afterwards, different_course
from deniable.examination.twins.twin_run import FAILS, LARGE_TIMES, Run, StandIn, stand_in, undrawn_places
from deniable.examination.twins.twins import Twins

TRIED_STEPS = 4
"""Steps before the last after which records are exchanged."""


def undrawn_difference(twins: Twins, trials: Sequence[int] = ()) -> str:
    """What records change that no batch has drawn, in twins and some trials: nothing, in a training as claimed."""
    return twins.once(f"undrawn {list(trials)}", lambda: _when_undrawn(twins, trials))


def _when_undrawn(twins: Twins, trials: Sequence[int]) -> str:
    for seed in _seeds(twins, trials):
        one = twins.original(seed)
        steps, places = undrawn_places(one)
        for times in (LARGE_TIMES, 1.0) if places else ():
            exchanged = {place: stand_in(one, twins.other_columns(one, place)[0], times) for place in places}
            with suppress(*FAILS):
                whole = steps == len(one.seen)
                two = twins.train(seed, True, exchanged, None if whole else steps + 1)
                if found := different_course(one, two, steps):
                    return found
                break
    return ""


def later_difference(twins: Twins, trials: Sequence[int] = ()) -> str:
    """What records change that are exchanged after a step was yielded: nothing, in a training as claimed.

    The last step is tried with every seed, also of some trials, and those before it with the first seed, earlier ones
    first: what moves the weights of every step is not blamed on the release.
    """
    return twins.once(f"later {list(trials)}", lambda: next(filter(None, _afterwards(twins, trials)), ""))


def _seeds(twins: Twins, trials: Sequence[int]) -> list[int]:
    more = [] if twins.trial_seed is None else [twins.trial_seed(number) for number in trials]
    return [*twins.seeds, *more] if twins.repeatable else []


def _afterwards(twins: Twins, trials: Sequence[int]) -> Iterator[str]:
    for seed in _seeds(twins, trials):
        one = twins.original(seed)
        last = len(one.seen) - 1
        steps = {int(step) for step in np.linspace(0, last, TRIED_STEPS + 1)} if seed == twins.seeds[0] else {last}
        for step in sorted(steps):
            for exchanged in other_contents(twins, one, step):
                with suppress(*FAILS):
                    two = twins.train(seed, True, exchanged, None if step == last else step + 2, after=step + 1)
                    yield different_afterwards(one, two, step)


def other_contents(twins: Twins, run: Run, step: int = 0) -> Iterator[Mapping[int, StandIn]]:
    """For all places: records of another label with large features, as they are, and the one with the least loss.

    A mean loss is then far larger or smaller than that of the records.
    """
    places = range(len(run.members))
    for times in (LARGE_TIMES, 1.0):
        yield {place: stand_in(run, twins.other_columns(run, place)[0], times) for place in places}
    yield dict.fromkeys(places, _extreme_record(run, step, most=False))


def hardest_contents(run: Run) -> Mapping[int, StandIn]:
    """For all places the record with the largest loss at first: then the sum of clipped gradients is longest."""
    return dict.fromkeys(range(len(run.members)), _extreme_record(run, 0, most=True))


def _extreme_record(run: Run, step: int, *, most: bool) -> StandIn:
    """Of the records, as they are and large, the one with the least or the largest loss at a step's weights."""
    records, labels, _ = run.recomputer.columns
    tried = torch.cat([records, LARGE_TIMES * records]) if run.most_times >= LARGE_TIMES else records
    given = labels.repeat(len(tried) // len(labels))
    values = dict(zip(run.recomputer.parameters, (w[step] for w in run.seen.weights), strict=True))
    with torch.no_grad():
        losses = run.recomputer.loss(functional_call(run.recomputer.model, values, (tried,)), given)
    losses = -losses if most else losses
    best = int(torch.nan_to_num(losses, nan=torch.inf).argmin())
    return tried[best], given[best]
