"""What the model is given in the loop, beside the records as they are loaded: scaled or mixed ones are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

__all__ = ["GivenInputs", "OtherInputs"]

OtherInputs = Literal["", "own scale", "scale of the batch", "mixed", "own components", "others"]
"""Scaled by mean and spread of all records, or of their batch; each mixed of two; projected on the components that all
records vary along most; something else; "" for the records, or where it is not known."""
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


class GivenInputs:
    """Holds what a model's forward passes with gradients were given since the last step."""

    def __init__(self, model: nn.Module, data: Any, features: Callable[[Any], Any]) -> None:
        self._data, self._features = data, features
        self._held: list[Tensor] = []
        self._numbers = 0
        self._hook = model.register_forward_pre_hook(self._note, with_kwargs=True)

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
            return self._rule(records, given) if len(given) == len(records) else ""

    def _rule(self, records: Tensor, given: Tensor) -> OtherInputs:
        rules: Iterator[tuple[OtherInputs, Iterator[Tensor]]] = iter(
            (("scale of the batch", _scaled_records(records, records)), ("own scale", self._own_scales(records)))
        )
        for name, candidates in rules:
            if any(_alike(given, one) for one in candidates):
                return name
        if records.shape[1] >= _LEAST_FEATURES and _are_mixed(records, given):
            return "mixed"
        if any(_alike(given, one) for one in self._projected_records(records)):
            return "own components"
        return _OTHERS

    def _own_scales(self, records: Tensor) -> Iterator[Tensor]:
        if self._all_records is not None:
            yield from _scaled_records(records, self._all_records)

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


def _scaled_records(records: Tensor, by: Tensor) -> Iterator[Tensor]:
    """Every feature by its own mean and spread, or by its least and most where these are not common to all features.

    One scale for all features is often public, such as that of pixels.
    """
    mean, least, most = by.mean(0), by.min(0).values, by.max(0).values
    yield records - mean
    for spread in (by.std(0), by.std(0, correction=0)):
        yield (records - mean) / spread.clamp(min=1e-12)
    if len(torch.unique(least)) > 1 and len(torch.unique(most)) > 1:
        yield (records - least) / (most - least).clamp(min=1e-12)


def _alike(given: Tensor, other: Tensor) -> bool:
    """To rounding, in most numbers: a feature that never changes may be divided by anything."""
    near = (given - other).abs() <= _EXACT * float(given.std() + 1e-12)
    return bool(near.double().mean() > 0.9)


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
