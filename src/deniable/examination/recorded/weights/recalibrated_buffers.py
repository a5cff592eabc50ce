"""Buffers that are changed by what was not watched: are they means or variances over all records, at the last weights?

A mean over n other records, and that of the whole population, is about a standard error s / sqrt(n) away from the mean
over these n records. A value that is far nearer is made of these records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

import torch
from scipy.special import chdtr
from torch import Tensor, nn

from deniable.examination.recorded.gradients.batch_gradients import RecordLoss, run_forward

_MOST_RECORDS, _AT_ONCE = 20_000, 128
"""Of larger data nothing is told."""
_FEWEST, _MOST = 3, 512
"""Numbers of a buffer that is compared."""
_CHANCE = 1e-6
"""That the mean over other records is so near."""
_BARE = 0.5
"""Of noise as long as what one usual record changes: a mean that has more may be hidden by it."""
_FLAT = 1e-9
"""The share of the largest variance below which records do not differ."""
Changed = dict[str, tuple[Tensor, Tensor]]
"""The values of buffers before and after."""


def made_of_all(model: nn.Module, data: Any, loss: RecordLoss, changed: Changed) -> frozenset[str]:
    """Those that go to a mean or a variance of what their module or the model is given, or a fixed share of the way."""
    some = {name: both for name, both in changed.items() if _FEWEST <= both[1].numel() <= _MOST}
    if not some or not _FEWEST < len(data) <= _MOST_RECORDS:
        return frozenset()
    owners = {name: name.removeprefix("_module.").rpartition(".")[0] for name in some}
    with torch.no_grad():
        tables = _tables(model, data, loss, set(owners.values()), {now.numel() for _, now in some.values()})
        return frozenset(
            name
            for name, (before, now) in some.items()
            for place in ("input", f"input of {owners[name]}")
            if any(_goes_to_mean_of(table, _flat(before), _flat(now)) for table in tables.get(place, ()))
        )


def _flat(values: Tensor) -> Tensor:
    return values.detach().flatten().double().cpu()


def _tables(
    model: nn.Module, data: Any, loss: RecordLoss, owners: Collection[str], sizes: Collection[int]
) -> dict[str, list[Tensor]]:
    """(2, records, numbers) by place: each record's means of what is given there, and of its squares."""
    parts = defaultdict[tuple[str, str], list[Tensor]](list)
    for start in range(0, len(data), _AT_ONCE):
        seen: dict[str, Tensor] = {}
        items = [data[i] for i in range(start, min(start + _AT_ONCE, len(data)))]
        if not run_forward(model, items, loss, seen, inputs_of=owners):
            return {}
        for place, values in seen.items():
            if place.startswith("input") and values.dim() > 1 and len(values) == len(items):
                for layout, table in _layouts(values, sizes):
                    parts[place, layout].append(torch.stack([table.mean(1), table.square().mean(1)]).cpu())
    found = defaultdict[str, list[Tensor]](list)
    for (place, _), tables in parts.items():
        found[place].append(torch.cat(tables, 1))
    return found


def _layouts(values: Tensor, sizes: Collection[int]) -> Iterator[tuple[str, Tensor]]:
    """(records, places, numbers), of those that fill a buffer of one of these sizes."""
    tables = {
        "by channel": values.flatten(2).movedim(1, 2) if values.dim() > 2 else values[:, None],
        "by feature": values.flatten(1, -2) if values.dim() > 2 else values[:, None],
        "by number": values.flatten(1)[:, None],
    }
    yield from ((layout, table.double()) for layout, table in tables.items() if table.shape[2] in sizes)


def _goes_to_mean_of(table: Tensor, before: Tensor, now: Tensor) -> bool:
    """Of the numbers, their squares, or squared distances from their mean (and a buffer's squares: its spread)."""
    means, squares = table
    if means.shape[1] != len(now) or float(now.std()) == 0:
        return False
    centre = means.mean(0)
    variances = squares - 2 * centre * means + centre.square()
    compared = ((means, before, now), (squares, before, now), (variances, before, now))
    return any(_is_too_near(*one) for one in (*compared, (variances, before.square(), now.square())))


def _is_too_near(rows: Tensor, before: Tensor, now: Tensor) -> bool:
    """Whether it is nearer to the rows' mean, or moves more exactly towards it, than to that of other records."""
    centre = rows.mean(0)
    values, axes = torch.linalg.eigh((rows - centre).T @ (rows - centre) / (len(rows) - 1) / len(rows))
    kept = values > _FLAT * values.max()
    standard = axes[:, kept] / values[kept].sqrt()  # directions, of which each has a standard error of one
    towards, moved = (centre - before) @ standard, (now - before) @ standard
    times = float(towards @ moved) / max(float(moved @ moved), 1e-300)  # one over the share of the way
    ways = ((towards - moved, len(towards)), (towards - times * moved, len(towards) - 1 if times > 0 else 0))
    return any(
        size >= _FEWEST - 1
        and float(off @ off) <= (_BARE * size) ** 2 / len(rows)
        and chdtr(size, float(off @ off)) < _CHANCE
        for off, size in ways
    )
