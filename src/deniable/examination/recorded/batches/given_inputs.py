"""What the model is given in the loop, beside the records as they are loaded: scaled or mixed ones are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor, nn

OtherInputs = Literal["", "own scale", "scale of the batch", "mixed", "own components", "others", "running mean"]
"""Scaled by mean and spread of all records, or of their batch; each mixed of two; projected on the components that all
records vary along most; something else; centred by a running mean of the batches; "" for the records, or where it is
not known."""
_OTHERS: Final = "others"
_HELD_NUMBERS = 2**24
"""Of inputs between two steps: of more nothing is told."""
_MOST_FEATURES = 256
"""Up to which principal components are compared."""
_COMPARED_RECORDS = 20_000
"""Of larger data, whose mean and spread would be read again, nothing is told of those."""
_SAME, _EXACT = 1e-2, 1e-3
"""Relative to the records' spread: half precision rounds by less than the first; a rule is told to the second."""
_MOST_RECORDS, _LEAST_FEATURES = 512, 3
"""Of a batch that is looked at; and of a record, so that mixing two of them is no chance."""
_LEAST_RECORDS = 4
"""Through fewer a line goes by chance."""
_MOST = 0.9
"""The share of numbers in which a rule holds that is told."""


class GivenInputs:
    """Holds what a model's forward passes with gradients were given since the last step."""

    def __init__(self, model: nn.Module, data: Any, features: Callable[[Any], Any]) -> None:
        self._data, self._features = data, features
        self._held: list[Tensor] = []
        self._numbers = 0
        self._centres = RunningCentres()
        self._hook = model.register_forward_pre_hook(self._note, with_kwargs=True)

    def __deepcopy__(self, _: Mapping[int, Any]) -> GivenInputs:
        """Of a copy of the model, which takes its hooks along and is not watched."""
        found = copy(self)
        found._held, found._numbers = [], _HELD_NUMBERS
        return found

    def close(self) -> None:
        """Look no further."""
        self._hook.remove()
        self._held = []

    def start_step(self) -> None:
        """Forget what was given so far."""
        self._held, self._numbers = [], 0

    def _note(self, _: nn.Module, values: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        tensors = [value for value in (*values, *named.values()) if isinstance(value, Tensor)]
        if not tensors or not tensors[0].is_floating_point() or not torch.is_grad_enabled():
            return
        self._numbers += tensors[0].numel()
        if self._numbers <= _HELD_NUMBERS:
            self._held.append(_rows(tensors[0]))

    def every_record(self) -> Tensor | None:
        """(records, numbers) of all; None of larger data, or where they are no numbers of one shape."""
        return self._all_records

    def compare(self, items: Sequence[Any]) -> OtherInputs:
        """What the model was given in place of these records of a step."""
        with torch.no_grad():
            records = self.rows_of(items) if 0 < len(items) <= _MOST_RECORDS else None
            if records is None or not self._held or self._numbers > _HELD_NUMBERS:
                return ""
            if any(rows.shape[1] != records.shape[1] for rows in self._held):
                return ""
            given = torch.cat([rows.detach().double().cpu() for rows in self._held])
            spread = float(records.std()) if len(records) > 1 else float(records.norm())
            near = _SAME * max(spread, 1e-12) * records.shape[1] ** 0.5
            if bool((torch.cdist(records, given).min(1).values <= near).all()):
                return ""
            given = given[-len(records) :] if self._ends_with(len(records)) else given
            return self._rule(records, given) if len(given) == len(records) else ""

    def _ends_with(self, records: int) -> bool:
        """Whether the last passes were given so many: of these are the gradients, where one pass follows another."""
        return records in np.cumsum([len(rows) for rows in self._held][::-1])

    def _rule(self, records: Tensor, given: Tensor) -> OtherInputs:
        runs = self._centres.follow(records, given)
        if _is_scaled_by(records, records, given) or _is_centred(records, given):
            return "scale of the batch"
        if self._all_records is not None and _is_scaled_by(self._all_records, records, given):
            return "own scale"
        if records.shape[1] >= _LEAST_FEATURES and _are_mixed(records, given):
            return "mixed"
        if runs:
            return "running mean"
        if any(_alike(given, one) for one in self._projected_records(records)):
            return "own components"
        return _OTHERS

    def _projected_records(self, records: Tensor) -> Iterator[Tensor]:
        """On the first principal components of all records, of any number, around their mean or around zero."""
        every = self._all_records
        if every is None or every.shape[1] > _MOST_FEATURES:
            return
        for centre in (every.mean(0), torch.zeros_like(every[0])):
            for start in (0.0, 1.0):  # the projection is around the centre, too, or not
                axes = torch.linalg.eigh((every - every.mean(0)).T @ (every - every.mean(0))).eigenvectors.flip(1)
                parts = (records - centre) @ axes
                for count in range(1, records.shape[1]):
                    yield parts[:, :count] @ axes[:, :count].T + start * centre

    @cached_property
    def _all_records(self) -> Tensor | None:
        if len(self._data) > _COMPARED_RECORDS:
            return None
        return self.rows_of([self._data[i] for i in range(len(self._data))])

    def rows_of(self, items: Sequence[Any]) -> Tensor | None:
        """(records, numbers) of their features; None where these are no numbers of one shape."""
        features = [self._features(item) for item in items]
        if not all(isinstance(one, Tensor) and one.is_floating_point() for one in features):
            return None
        if len({one.shape for one in features}) > 1:
            return None
        return torch.stack([one.detach().flatten().double().cpu() for one in features])


class RunningCentres:
    """What is taken from all records of a batch: does it move towards the mean of this batch, or of the one before?"""

    def __init__(self) -> None:
        self._centre: Tensor | None = None
        self._mean: Tensor | None = None

    def follow(self, records: Tensor, given: Tensor) -> bool:
        """Of this step, beside the one before."""
        centre, _, fits = _affine_map(records, given)
        before, aims = self._centre, [records.mean(0), self._mean]
        self._centre, self._mean = (centre, records.mean(0)) if bool(fits.any()) else (None, None)
        if before is None or int(fits.sum()) < _LEAST_FEATURES:
            return False
        move = (centre - before)[fits]
        return any(_is_parallel(move, (aim - before)[fits]) for aim in aims if aim is not None)


def _is_parallel(one: Tensor, other: Tensor) -> bool:
    lengths = float(one.norm() * other.norm())
    return lengths > 0 and float(one @ other) > (1 - _EXACT) * lengths


def _rows(given: Tensor) -> Tensor:
    """(records, numbers), also of what `torch.func.vmap` gives a model for many records at once."""
    functorch = torch._C._functorch
    batched = False
    while functorch.is_functorch_wrapped_tensor(given):
        if functorch.is_batchedtensor(given):
            at, batched = functorch.maybe_get_bdim(given), True
            given = functorch.get_unwrapped(given).movedim(at, 0)
        else:
            given = functorch.get_unwrapped(given)
    return given.detach().flatten(1) if batched or given.dim() > 1 else given.detach().reshape(1, -1)


def _is_scaled_by(by: Tensor, records: Tensor, given: Tensor) -> bool:
    """Whether every feature is moved by a statistic of `by`, whatever divides it, or is divided by its spread in `by`.

    A statistic that all features have in common, such as the least of pixels, is often public, and shows nothing.
    """
    centre, scale, fits = _affine_map(records, given)
    spread = by.std(0)
    for statistic in (by.mean(0), by.median(0).values, by.min(0).values, by.max(0).values):
        telling = fits & (statistic.abs() > _EXACT * spread)
        near = (centre - statistic).abs() <= _EXACT * spread
        if len(torch.unique(statistic[telling])) > 1 and bool(near[telling].double().mean() > _MOST):
            return True
    moved = bool((centre[fits].abs() > _EXACT * spread[fits]).any())
    sizes = (spread, by.std(0, correction=0), by.abs().max(0).values, by.max(0).values - by.min(0).values)
    return not moved and any(_is_divided_by(size[fits], scale[fits]) for size in sizes)


def _is_divided_by(size: Tensor, scale: Tensor) -> bool:
    """Whether what divides the features is their size and a small number: s + e, or the root of s^2 + e."""
    if len(torch.unique(size)) < 2:
        return False
    sums = ((scale, size), (scale.square(), size.square()))
    left = [(one - other, _EXACT * float(other.median())) for one, other in sums]
    return any(bool(((rest - rest.median()).abs() <= near).double().mean() > _MOST) for rest, near in left)


def _is_centred(records: Tensor, given: Tensor) -> bool:
    """Whether the mean of all numbers of the batch is taken from each of them."""
    centre, _, fits = _affine_map(records, given)
    near = (centre - records.mean()).abs() <= _EXACT * float(records.std())
    return bool(fits.any()) and bool(near[fits].double().mean() > _MOST)


def _affine_map(records: Tensor, given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of each feature c, s such that given = (record - c) / s; and whether that is so, of several records."""
    apart, other = records - records.mean(0), given - given.mean(0)
    squares = apart.square().sum(0)
    slope = (apart * other).sum(0) / squares.clamp(min=1e-24)
    left = (other - slope * apart).abs().max(0).values
    varies = (squares > 1e-12 * records.square().sum(0)) & (slope.abs() > 1e-12)
    fits = varies & (left <= _EXACT * given.std(0)) & (len(records) >= _LEAST_RECORDS)
    scale = 1 / torch.where(varies, slope, 1.0)
    return records.mean(0) - given.mean(0) * scale, scale, fits


def _alike(given: Tensor, other: Tensor) -> bool:
    """To rounding, in most numbers: a feature that never changes may be divided by anything."""
    near = (given - other).abs() <= _EXACT * float(given.std() + 1e-12)
    return bool(near.double().mean() > _MOST)


def _are_mixed(records: Tensor, given: Tensor) -> bool:
    """Whether nearly every input lies between its record and another one of the batch."""
    steps = given - records
    towards = records[None] - records[:, None]  # (i, j): from record i to j
    cosines = torch.einsum("id,ijd->ij", steps, towards) / (steps.norm(dim=1)[:, None] * towards.norm(dim=2)).clamp(
        min=1e-12
    )
    moved = steps.norm(dim=1) > _SAME * float(records.std())
    found = cosines.max(1).values > 1 - _EXACT**2
    return bool(moved.any()) and bool(found[moved].double().mean() > 0.9) and bool(moved.double().mean() > 0.5)
