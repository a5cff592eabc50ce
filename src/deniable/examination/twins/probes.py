"""How far one record changes a sum, whatever the recipe: by trainings with one and two records exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import chdtr
from torch import Tensor

from deniable.examination.alternatives import STEPS
from deniable.examination.recomputation import flat
from deniable.examination.twins.provoking_records import SHORT_NORMS
from deniable.examination.twins.twin_differences import different_batches
from deniable.examination.twins.twin_run import (
    FAILS,
    HUGE_TIMES,
    LARGE_TIMES,
    SAME,
    Run,
    StandIn,
    drawn_places,
    half_precision_error,
    newly_drawn,
    stand_in,
)
from deniable.examination.twins.twins import Twins
from deniable.mechanisms import Adjacency

CONTENTS = 6
"""So many other records are tried in a place."""
LATER_STEPS = 3
"""So many steps after the first are tried with records that are exchanged just before."""
LEAST_LEFT, CERTAIN = 0.7, 1e-6
"""The share of the claimed noise below which it has vanished, and the chance of so little below which it has."""


@dataclass(frozen=True)
class Probe:
    """How far one record changes the first sum, in claimed clipping norms."""

    reach: float
    """The norm of a record's share is at least this for some record."""
    interaction: float
    """How far the share of one record depends on another."""
    outside: float
    """How far a record that is not in the batch changes the sum."""
    rounding: float
    """How far sums of half precision may be off."""
    stretched: bool = False
    """Whether records were tried that are `LARGE_TIMES` as large."""


def probe_share(twins: Twins, place: int | None = None) -> Probe | None:
    """First steps only, with one and two records exchanged; None where a seed does not repeat a training."""
    holding = [s for s in twins.seeds if place is None or place in newly_drawn(twins.original(s))]
    if not holding or not any(pair[0] is twins.original(holding[0]) for pair in twins.synchronous):
        return None
    first = twins.place_in_batch(twins.original(holding[0])) if place is None else place
    found = _probe(twins, holding[0], first, 0)
    if found is None:
        return None
    outside, reach = max(_change_by_others(twins, other) for other in twins.seeds), found.reach
    if twins.adjacency is Adjacency.ADD_REMOVE and twins.keeps_order:
        pairs = [pair for pair in twins.synchronous if len(pair[0].members) != len(pair[1].members)]
        reach = max([reach, *(float((a.sums[0] - b.sums[0]).norm()) / twins.clip for a, b in pairs)])
    return replace(found, reach=reach, outside=outside / twins.clip)


def probe_at_step(twins: Twins, seed: int, step: int) -> Probe | None:
    """The same by records that are exchanged just before a step; None where the training does not notice."""
    one = twins.original(seed)
    drawn = drawn_places(one, step) if step < len(one.seen) else []
    found = _probe(twins, seed, drawn[0], step, late=True) if drawn else None
    return found if found is not None and found.reach > 0 else None


def probe_later_steps(twins: Twins) -> Iterator[tuple[int, Probe]]:
    """The same at steps after the first (counted from 0).

    By records that are exchanged just before the step, while the training runs; or, where it keeps copies and does not
    notice, by records that no step before has drawn.
    """
    for seed in twins.seeds if twins.repeatable and twins.synchronous else ():
        one = twins.original(seed)
        for step in np.unique(np.linspace(1, max(1, len(one.seen) - 1), LATER_STEPS).astype(int)):
            if (found := probe_at_step(twins, seed, int(step))) is not None:
                yield int(step), found
        for step in range(1, min(STEPS, len(one.seen))):
            fresh = newly_drawn(one, step)
            if fresh and (found := _probe(twins, seed, fresh[0], step)) is not None:
                yield step, found


def unbounded_step(twins: Twins) -> int | None:
    """The first step (counted from 0) whose sum one stretched record changes further than clipped sums can."""
    for seed in twins.seeds if twins.repeatable and twins.synchronous else ():
        for one, two in filter(None, (twins.stretched_pair(seed, HUGE_TIMES, which) for which in range(2))):
            for step in range(min(len(two.seen), STEPS) if not different_batches(one, two) else 0):
                clip = max(_norm(twins, one, step), _norm(twins, two, step))
                longest = 2.1 * clip * len(drawn_places(one, step))
                if float((two.sums[step] - one.sums[step]).norm()) > longest:
                    return step
    return None


def noise_of_long_records(twins: Twins) -> float | None:
    """The noise of a first step on records that are all one large record, in claimed ones; None if that is enough."""
    one = twins.original(twins.seeds[0])
    large = stand_in(one, twins.other_columns(one, twins.place_in_batch(one))[0], LARGE_TIMES)
    try:
        run = twins.train(twins.seeds[0], True, dict.fromkeys(range(len(one.members)), large), 1)
    except FAILS:
        return None
    found = run.recomputer.recompute(run.seen, run.members)
    residual, along = found.residual[0].double(), found.clean[0].double()
    left = residual - along * (residual @ along) / (along @ along).clamp(min=1e-300)
    squares, numbers = float(left.square().sum()), len(left) - 1
    share = (squares / max(1, numbers)) ** 0.5
    return share if share < LEAST_LEFT and float(chdtr(numbers, squares)) < CERTAIN else None


def _probe(twins: Twins, seed: int, first: int, step: int, late: bool = False) -> Probe | None:
    """One record, and others, exchanged at a step before which none was drawn, or `late`: just before the step.

    None where the records change what random numbers are drawn.
    """
    one = twins.original(seed)
    others = [i for i in (drawn_places(one, step) if late else newly_drawn(one, step)) if i != first]
    usual = twins.other_columns(one, first)[:CONTENTS]

    together, yielded = True, [flat(one.seen.applied)[step]]

    def change(exchanged: dict[int, StandIn]) -> Tensor:
        nonlocal together
        try:
            found = twins.train(seed, True, exchanged, step + 1, after=step if late else 0)
        except FAILS:  # a stretched record's training diverges, or does not take it
            return torch.zeros_like(one.sums[step])
        together &= found.seen.random_states[: step + 1] == one.seen.random_states[: step + 1]
        if len(found.sums) <= step:
            return -one.sums[step]
        yielded.append(flat(found.seen.applied)[step])
        return found.sums[step] - one.sums[step]

    contents = [
        *(stand_in(one, column, LARGE_TIMES) for column in usual[:2]),
        *twins.contents,
        *(stand_in(one, column) for column in usual),
    ]
    points = torch.stack([torch.zeros_like(one.sums[0]), *(change({first: content}) for content in contents)])
    context = {place: contents[-1 - number % len(usual)] for number, place in enumerate(others[::2])}
    alike = dict.fromkeys(others, stand_in(one, _short_column(twins, one, usual[0], step)))
    apart = [change({first: contents[0], **c}) - points[1] - change(c) for c in (context, alike) if others]
    kept = _below_bound(twins, torch.stack(yielded))
    points, apart = points * kept, [rest * kept for rest in apart]
    interaction = max((float(rest.norm()) for rest in apart), default=0.0)
    rounding = half_precision_error(one) * max(float(row.norm()) for row in yielded)
    clip = _norm(twins, one, step)
    found = Probe(_radius(points) / clip, interaction / clip, 0.0, rounding / clip, one.most_times >= LARGE_TIMES)
    return found if together else None


def _below_bound(twins: Twins, yielded: Tensor) -> Tensor:
    """1 for every weight at which none of the yielded sums (rows) is cut off at the known bound."""
    if twins.post is None or twins.post.bound is None:
        return torch.ones(yielded.shape[1], dtype=torch.float64)
    return (yielded.abs() < (1 - SAME) * twins.post.bound).all(0).double()


def _norm(twins: Twins, run: Run, step: int) -> float:
    """The clipping norm of a step, which the noise follows: the yielded one, if there is any."""
    return run.seen.clips[step] or twins.clip


def _change_by_others(twins: Twins, seed: int) -> float:
    """How far the first sum changes if all records outside the batch are exchanged."""
    one = twins.original(seed)
    drawn = set(newly_drawn(one))
    exchanged = {i: stand_in(one, twins.other_columns(one, i)[0]) for i in range(len(one.members)) if i not in drawn}
    return float((twins.train(seed, True, exchanged, 1).sums[0] - one.sums[0]).norm()) if exchanged else 0.0


def _short_column(twins: Twins, run: Run, like: int, step: int) -> int:
    """The column of a record with the label of another one, whose gradient is nearest to a short one."""
    lengths = run.recomputer.recompute(run.seen, run.members).norms[step] / twins.clip
    labels = run.recomputer.columns.labels
    fitting = [column for column in run.members if labels[column] == labels[like]]
    return int(min(fitting, key=lambda column: abs(float(lengths[column]) - SHORT_NORMS)))


def _radius(points: Tensor) -> float:
    """A lower limit of the radius of the ball, around any centre, that holds the points (rows)."""
    around = (points - points.mean(0)).square().sum(1).mean().sqrt()
    return max(float(around), float(torch.cdist(points, points).max()) / 2)
