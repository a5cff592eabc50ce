"""Buffers of a model, which are released with its weights: what changes them in the steps, and without noise?

A forward pass on the batch that gives the new value, where one on other records gives another, shows that the records
make it. So does a change towards a statistic of what the model, or one of its modules, is given or makes of the batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import BatchSums, RecordLoss, run_forward
from deniable.examination.recorded.gradients.class_counts import class_counts, counts_of
from deniable.examination.recorded.weights.buffer_statistics import (
    OF_STEPS,
    Target,
    class_means,
    statistics_of,
    statistics_of_classes,
    statistics_of_step,
)
from deniable.examination.recorded.weights.recalibrated_buffers import made_of_all

BufferFinding = Literal["records", "all records", "unknown", "end"]
"""Made of the batches' records; a statistic of all records; changed by something unknown; or after the last step."""
_NUMBERS = 2**20
"""Of all buffers that are looked at."""
_LOOKS = 12
"""Steps in which changes are explained."""
_SAME = 1e-3
"""Relative to a change."""
_FEW, _OFTEN = 4, 3
"""Of fewer numbers a change is towards anything by chance: so many steps must have the same share of it."""


class WatchedBuffers:
    """Of floating point, as they are before each step."""

    def __init__(self, model: nn.Module) -> None:
        self._model, self._looks = model, 0
        self._names, self.left_out, total = list[str](), 0, 0
        for name, buffer in _floats(model).items():
            total += buffer.numel()
            self._names += [name] if total <= _NUMBERS else []
            self.left_out += total > _NUMBERS
        self._before = self._now()
        self._changed: set[str] = set()
        self._made: set[str] = set()
        self._told: dict[str, bool] = {}
        """Whether something else than records and weights is seen to change it."""
        self._increments: dict[str, Tensor] = {}
        self._shares: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._names)

    def _now(self) -> dict[str, Tensor]:
        found = _floats(self._model)
        return {name: found[name].detach().clone() for name in self._names if name in found}

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What the watcher's own passes do to buffers is undone."""
        every = [
            (module._buffers, name, buffer, buffer.detach().clone())
            for module in self._model.modules()
            for name, buffer in module._buffers.items()
            if buffer is not None and buffer.numel() <= _NUMBERS
        ]
        try:
            yield
        finally:
            with torch.no_grad():
                for owner, name, buffer, value in every:
                    owner[name] = buffer
                    if not torch.equal(buffer, value):
                        buffer.copy_(value)

    def start_step(self) -> dict[str, Tensor]:
        """What each one that has changed since the step before was then."""
        now = self._now()
        before = {name: self._before[name] for name in now if not _equal(self._before.get(name), now[name])}
        self._changed |= set(before)
        self._before = now
        return {name: old for name, old in before.items() if old.shape == now[name].shape}

    def explain(
        self,
        before: dict[str, Tensor],
        used: Sequence[Sequence[Any]],
        others: Sequence[Any],
        loss: RecordLoss,
        sums: BatchSums,
    ) -> None:
        """What changed them: the records of this step, or, after it, of the one before; `others` are at least as many.

        `sums` are those of this step.
        """
        before = {name: old for name, old in before.items() if name not in self._made}
        self._looks += bool(before)
        if not before or self._looks > _LOOKS or not used[0]:
            return
        known = {name for name, old in before.items() if self._follows_weights(name, old) or self._counts(name, old)}
        for ago, items in enumerate(used):
            rest = {name: old for name, old in before.items() if name not in known | self._made}
            if rest and items:
                known |= self._explain_by(ago, rest, (items, others[: len(items)]), loss, None if ago else sums)
        for name in before:
            self._told[name] = self._told.get(name, True) and name in known

    def _explain_by(
        self,
        ago: int,
        before: dict[str, Tensor],
        compared: tuple[Sequence[Any], Sequence[Any]],
        loss: RecordLoss,
        sums: BatchSums | None,
    ) -> set[str]:
        """Those that a pass on any records changes so; what the first of these make, of a step so long ago, is noted.

        The first ones are compared with as many others.
        """
        items, others = compared
        seen, other, known = dict[str, Tensor](), dict[str, Tensor](), set[str]()
        again, elsewhere = self._replay(before, items, loss, seen), self._replay(before, others, loss, other)
        for name, old in before.items():
            by_pass = name in again and _near(again[name], self._before[name], old)
            depends = name in again and name in elsewhere and not _near(again[name], elsewhere[name], old)
            statistics = _differing(dict(_targets(old, items, seen, sums)), dict(_targets(old, others, other, sums)))
            if by_pass and not depends:
                known.add(name)
            elif by_pass or self._is_statistic(name, ago, old, statistics):
                self._made.add(name)
        return known

    def _follows_weights(self, name: str, old: Tensor) -> bool:
        """Whether it moves towards weights of its shape."""
        alike = [p.detach() for p in self._model.parameters() if p.shape == old.shape and p.numel() >= _FEW]
        return any(_share(self._before[name] - old, p - old) for p in alike)

    def _counts(self, name: str, old: Tensor) -> bool:
        """Whether all its numbers change by the same in every step."""
        change = self._before[name] - old
        first = self._increments.setdefault(name, change)
        return bool((change == first.flatten()[0]).all())

    def _is_statistic(self, name: str, ago: int, old: Tensor, statistics: dict[str, Tensor]) -> bool:
        """Whether it moves by one, or towards it; of few numbers in several steps alike, in which that differs."""
        change = self._before[name] - old
        for key, target in statistics.items():
            for kind, towards in (("to", target - old), ("by", target)):
                if share := _share(change, towards):
                    found = self._shares[name, f"{kind} {key}, {ago}"]
                    found.append((share, float(target.flatten()[0])))
                    shares, values = np.array(found).T
                    alike = (
                        np.ptp(shares) <= _SAME * np.abs(shares).max() and np.ptp(values) > _SAME * np.abs(values).max()
                    )
                    if change.numel() >= _FEW or (len(found) >= _OFTEN and alike):
                        return True
        return False

    def _replay(
        self, before: dict[str, Tensor], items: Sequence[Any], loss: RecordLoss, seen: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """What the buffers are after a forward pass on these records; `seen` is filled with what modules are given."""
        with self.kept(), torch.no_grad():
            buffers = _floats(self._model)
            for name, old in before.items():
                buffers[name].copy_(old)
            if not run_forward(self._model, items, loss, seen):
                return {}
            return {name: buffer.detach().clone() for name, buffer in _floats(self._model).items() if name in before}

    def found(self, records: Tensor | None, data: Any, loss: RecordLoss) -> tuple[tuple[str, BufferFinding], ...]:
        """Of each that changed by what is not known to be harmless; `records`: (records, numbers) of all of them."""
        last, rows = self._now(), list[tuple[str, BufferFinding]]()
        of_all, counts = self._made_of_all(last, data, loss), class_counts(data) if last else None
        for name, value in last.items():
            if name in self._made:
                rows.append((name, "records"))
            elif name in of_all or _is_of_all(value, records, counts):
                rows.append((name, "all records"))
            elif name in self._changed and not self._told.get(name, False):
                rows.append((name, "unknown"))
            elif not _equal(self._before.get(name), value) and name not in self._changed:
                rows.append((name, "end"))
        return tuple((name.removeprefix("_module."), finding) for name, finding in rows)

    def _made_of_all(self, last: dict[str, Tensor], data: Any, loss: RecordLoss) -> frozenset[str]:
        """Those that changed after the last step, by a statistic of what modules are given of all records."""
        before = {name: value for name, value in self._before.items() if name in last}
        changed = {name: (old, last[name]) for name, old in before.items() if not _equal(old, last[name])}
        changed = {name: both for name, both in changed.items() if both[0].shape == both[1].shape}
        with self.kept(), torch.random.fork_rng(devices=[]):
            return made_of_all(self._model, data, loss, changed)


def _floats(model: nn.Module) -> dict[str, Tensor]:
    return {name: buffer for name, buffer in model.named_buffers() if buffer.is_floating_point()}


def _equal(one: Tensor | None, other: Tensor) -> bool:
    return one is not None and one.shape == other.shape and torch.equal(one, other)


def _near(one: Tensor, other: Tensor, old: Tensor) -> bool:
    """Whether both have changed, and alike."""
    change = float((other - old).norm())
    return change > 0 and float((one - other).norm()) <= _SAME * change


def _differing(statistics: dict[str, Tensor], others: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those that are not the same of other records."""
    return {
        key: value
        for key, value in statistics.items()
        if key in OF_STEPS or key not in others or not _same(others[key], value)
    }


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and float((one - other).norm()) <= _SAME * float(other.norm())


def _share(change: Tensor, towards: Tensor) -> float:
    """The share of a direction that the change is; 0 where it is not along it."""
    change, towards = change.double().flatten().cpu(), towards.double().flatten().cpu()
    length = float(towards @ towards)
    if not 0 < length < float("inf"):
        return 0.0
    share = float(change @ towards) / length
    return share if float((change - share * towards).norm()) <= _SAME * float(change.norm()) else 0.0


def _targets(old: Tensor, items: Sequence[Any], seen: dict[str, Tensor], sums: BatchSums | None) -> Iterator[Target]:
    """What a buffer of this shape may be made of."""
    counts = counts_of(items)
    if counts is not None:
        yield from statistics_of_classes(counts, old)
    if old.numel() == 1 and sums is not None:
        yield from ((key, value.to(old)) for key, value in statistics_of_step(sums))
    for place, values in seen.items():
        for key, value in statistics_of(values.to(old), old.shape):
            yield f"{place} {key}", value
        for key, value in class_means(values.to(old), items, old):
            yield f"{place} {key}", value


def _is_of_all(value: Tensor, records: Tensor | None, counts: Tensor | None) -> bool:
    """Whether it is a mean, a spread or an extreme of all records, of features that differ, or made of `counts`."""
    if value.numel() < _FEW or float(value.std()) == 0:
        return False
    statistics = list[Target]() if counts is None else list(statistics_of_classes(counts, value))
    if records is not None and value.numel() == records.shape[1]:
        statistics += [one for one in statistics_of(records.to(value), value.shape) if not one[0].startswith("sum")]
    return any(
        float((one - value).norm()) <= _SAME * float(value.std() * value.numel() ** 0.5) for _, one in statistics
    )
