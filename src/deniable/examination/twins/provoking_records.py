"""Records with longer and shorter gradients than those of a data set, so that clipping shows whatever these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from deniable.examination.recomputation import Recomputer
from deniable.examination.twins.twin_run import FAILS, LARGE_TIMES, Run, StandIn, Train
from deniable.training.settings import Columns

TIMES = (0.3, 1.0, 1.7, 3.0, 5.5, 10.0, LARGE_TIMES)
"""So many times as large features are tried for a gradient of some length."""
SHORT_NORMS, LONG_NORMS = 0.5, 3.0
LADDER_NORMS = (SHORT_NORMS, 1.05, 1.3, 1.7, 1.95, LONG_NORMS, 10.0)
"""Lengths of gradients that are provoked, in clipping norms: faults may begin anywhere above the norm."""
MOST_LABELS, MOST_PROVOKED, MOST_TRIED = 10, 64, 8
"""At most so many labels are tried, so many records exchanged, and so many records changed for some length."""
NEAR = 0.1
"""A length is met if it is wrong by this share at most."""
DESCENTS, DESCENT_RATE = 40, 0.1
"""Steps towards a length, and their size in standard deviations of the record's features."""


@dataclass(frozen=True)
class Provocation:
    """Records in place of D's, and contents that are then tried in one place."""

    base: dict[int, StandIn]
    contents: tuple[StandIn, ...]
    """One for each of `LADDER_NORMS`, as nearly as can be made; and of every label one with a long gradient, and one
    whose features are all alike: of a text of one word, that word's gradient is long."""


@dataclass(frozen=True)
class _Tried:
    """Changed records, and the lengths of their gradients at the first weights, in clipping norms."""

    records: Tensor
    labels: Tensor
    lengths: Tensor

    def nearest(self, wanted: float, label: Tensor | None = None) -> int:
        far = (self.lengths.clamp(min=1e-12) / wanted).log().abs()
        return int((far if label is None else torch.where(self.labels == label, far, torch.inf)).argmin())


def provoke(run: Run, clip: float) -> Provocation:
    """Every other record of D has a short gradient then, and the others large and longer ones."""
    columns = run.members[:MOST_PROVOKED]
    tried = [_change_record(run, int(column), clip) for column in columns]
    base = {}
    for place, one in enumerate(tried):
        wanted = (SHORT_NORMS, torch.inf, SHORT_NORMS, LADDER_NORMS[1 + place // 4 % 4])[place % 4]
        best = int(one.lengths.argmax()) if wanted == torch.inf else one.nearest(wanted)
        base[place] = one.records[best], one.labels[best]
    few = [tried[i] for i in np.unique(np.linspace(0, len(tried) - 1, min(len(tried), MOST_TRIED)).astype(int))]
    every = _Tried(*(torch.cat([getattr(one, name) for one in few]) for name in ("records", "labels", "lengths")))
    return Provocation(base, tuple(_ladder(run, every, clip)))


def _ladder(run: Run, tried: _Tried, clip: float) -> Iterator[StandIn]:
    for wanted in LADDER_NORMS:
        best = tried.nearest(wanted)
        record = tried.records[best], tried.labels[best]
        near = abs(float(tried.lengths[best]) / wanted - 1) <= NEAR
        yield record if near else _descend(run, record, wanted * clip)
    for label in torch.unique(tried.labels):
        best = tried.nearest(LONG_NORMS, label)
        yield tried.records[best], tried.labels[best]
        yield torch.full_like(tried.records[best], float(tried.records[best].flatten()[0])), tried.labels[best]


def _change_record(run: Run, column: int, clip: float) -> _Tried:
    """One record, larger and smaller, and in part another one, with every label."""
    records, labels, _ = run.recomputer.columns
    own, other, every = records[column], records[(column + 1) % len(records)], torch.unique(labels)[:MOST_LABELS]
    mixed = torch.cat([own.flatten()[::2], other.flatten()[1::2]]).view_as(own)
    times = TIMES if run.most_times > 1 else (1.0,)
    changed = torch.stack([*(own * t for t in times), mixed]).repeat_interleave(len(every), 0)
    given = every.repeat(len(times) + 1)
    return _Tried(changed, given, _lengths(run, changed, given) / clip)


def _lengths(run: Run, records: Tensor, labels: Tensor) -> Tensor:
    """Of the records' gradients at the first weights."""
    recomputer = Recomputer(
        run.recomputer.claim, run.recomputer.model, run.recomputer.loss, Columns(records, labels, 1)
    )
    return recomputer.lengths([w[:1] for w in run.seen.weights])[0]


def _descend(run: Run, start: StandIn, wanted: float) -> StandIn:
    """A record that is changed little by little until its gradient has a length; the nearest that is met on the way.

    Features that stand for words stay as they are: the length does not follow from them by a derivative.
    """
    record, label = start[0].clone().requires_grad_(), start[1]
    optimizer = torch.optim.Adam([record], DESCENT_RATE * max(float(start[0].float().std(correction=0)), 1e-3))
    best, found = torch.inf, start[0]
    try:
        for _ in range(DESCENTS):
            with torch.enable_grad():
                off = (_length(run, record, label) / wanted).log()
                (record.grad,) = torch.autograd.grad(off.square(), record)
            if abs(float(off)) < best:
                best, found = abs(float(off)), record.detach().clone()
            if best <= NEAR:
                break
            optimizer.step()
    except FAILS:
        pass
    return found, label


def _length(run: Run, record: Tensor, label: Tensor) -> Tensor:
    """Of one record's gradient at the first weights, to be differentiated."""
    weights = {
        name: w[0].detach().requires_grad_()
        for name, w in zip(run.recomputer.parameters, run.seen.weights, strict=True)
    }
    loss = run.recomputer.loss(functional_call(run.recomputer.model, weights, (record[None],)), label[None]).sum()
    gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True, materialize_grads=True)
    length: Tensor = torch.cat([g.flatten() for g in gradients]).norm()
    return length


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
