"""Records with longer and shorter gradients than those of a data set, so that clipping shows whatever these are."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from deniable.examination.recomputation import Recomputer
from deniable.examination.twins.twin_run import Run, StandIn, Train, stand_in
from deniable.training.settings import Columns

__all__ = ["LARGE_TIMES", "SHORT_NORMS", "provoking_records", "train_first_step"]

LARGE_TIMES = 20.0
"""A record with features so many times as large has a share that clipping bounds."""
TIMES = (0.3, 1.0, 1.7, 3.0, 5.5, 10.0, 30.0)
"""So many times as large features are tried for a gradient of some length."""
SHORT_NORMS, LONGER_NORMS = 0.5, (1.5, 3.0)
"""The lengths of a short gradient, and of some that are little longer than the clipping norm, in clipping norms."""
MOST_LABELS, MOST_PROVOKED = 10, 64
"""At most so many labels are tried for a short gradient, and so many records exchanged."""


def provoking_records(run: Run, clip: float) -> dict[int, StandIn]:
    """For every other record one of a short gradient, at the first weights; for the others large and longer ones."""
    records, labels, _ = run.recomputer.columns
    first, every = [w[:1] for w in run.seen.weights], torch.unique(labels)[:MOST_LABELS]
    found = {}
    for place, column in enumerate(run.members[:MOST_PROVOKED]):
        found[place] = stand_in(run, column, LARGE_TIMES)
        wanted = (SHORT_NORMS, None, SHORT_NORMS, LONGER_NORMS[place // 4 % len(LONGER_NORMS)])[place % 4]
        if wanted is not None:
            times = torch.tensor(TIMES).repeat_interleave(len(every))
            tried = Columns(torch.stack([records[column] * t for t in times]), every.repeat(len(TIMES)), 1)
            recomputer = Recomputer(run.recomputer.claim, run.recomputer.model, run.recomputer.loss, tried)
            layers = [g.flatten(2).norm(dim=2) for g in recomputer.every(first)]
            lengths = torch.stack(layers).norm(dim=0)[0] / clip
            best = int((lengths / wanted).log().abs().argmin())
            found[place] = tried.records[best], tried.labels[best]
    return found


def train_first_step(
    train: Train,
    base: Mapping[int, StandIn],
    seed: int,
    on_d: bool,
    exchanged: Mapping[int, StandIn],
    *_: int | None,
    after: int = 0,
) -> Run:
    """One step on other records than D's."""
    return train(seed, on_d, {**base, **exchanged}, 1, after=after)
