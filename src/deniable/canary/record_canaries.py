"""Canaries that are records: each stands in the place of a record of the data set, or leaves that record as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from deniable.checks import whole
from deniable.training.networks.losses import loss_function

Crafting = Callable[[Any, np.random.Generator], Any]
"""Makes a canary from the record in whose place it stands."""
LossOfItems = Callable[[Any, Sequence[Any]], Tensor]
"""The loss of a model on each of some items."""
_SCORED_AT_ONCE = 256


class CanaryDataset(Dataset[Any]):
    """A data set of the same size in which some records are canaries; who they are is settled when it is made."""

    def __init__(
        self,
        dataset: Any,
        carriers: NDArray[np.int64],
        coins: NDArray[np.bool_],
        craft: Crafting,
        random: np.random.Generator,
        *,
        records_per_person: int = 1,
    ) -> None:
        self.dataset, self.was_used, self._each = dataset, False, records_per_person
        self.items = [craft(dataset[int(carrier)], random) for carrier in carriers]
        """The records of all canaries, those that are in and those that are not."""
        self._inside = {int(c): i for i, c in enumerate(carriers) if coins[i]}

    def __len__(self) -> int:
        self.was_used = True
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        self.was_used = True
        place = self._inside.get(int(index))
        return self.dataset[index] if place is None else self.items[place]

    def scores(self, model: Any, loss: str | LossOfItems, reference: Any = None) -> NDArray[np.float64]:
        """Minus the loss of every canary, or a reference model's loss less this one's; summed over a person."""
        losses = self._losses(model, loss)
        each = -losses if reference is None else self._losses(reference, loss) - losses
        return np.asarray(each.reshape(-1, self._each).sum(1))

    def _losses(self, model: Any, loss: str | LossOfItems) -> NDArray[np.float64]:
        losses_of = _loss_by_name(loss) if isinstance(loss, str) else loss
        parts = [self.items[i : i + _SCORED_AT_ONCE] for i in range(0, len(self.items), _SCORED_AT_ONCE)]
        training = getattr(model, "training", False)
        try:
            if training:
                model.eval()
            with torch.no_grad():
                found = [torch.as_tensor(losses_of(model, part)).double().flatten().cpu().numpy() for part in parts]
        finally:
            if training:
                model.train()
        values = np.concatenate(found)
        if len(values) != len(self.items):
            raise ValueError(f"loss must give one number for each item, got {len(values)} for {len(self.items)}")
        return values


def _loss_by_name(name: str) -> LossOfItems:
    """Of items (features, target), by the name of a loss."""
    loss = loss_function(name)

    def losses(model: Any, items: Sequence[Any]) -> Tensor:
        if not isinstance(items[0], tuple | list) or len(items[0]) != 2:
            raise ValueError("items must be pairs (features, target) for a loss by name: give a function instead")
        features, targets = default_collate([tuple(item) for item in items])
        return loss(model(features), targets)

    return losses


def craft_of_kind(
    kind: str, craft: Crafting | None, classes: int | None, vocabulary: int | Sequence[int] | None
) -> Crafting:
    """How canaries of this kind are made from records; refused where a setting that it needs is missing."""
    if kind == "crafted":
        if craft is None:
            raise ValueError("craft is missing: a function (item, random) -> item that makes a canary of a record")
        return craft
    if kind == "new-token":
        if vocabulary is None:
            raise ValueError("vocabulary is missing: how many tokens the model knows, or those to draw from")
        if isinstance(vocabulary, int):
            return _new_tokens(np.arange(whole("vocabulary", vocabulary, low=2)))
        return _new_tokens(np.array([whole("vocabulary", token, low=0) for token in vocabulary]))
    if classes is None:
        raise ValueError("classes is missing: how many labels there are")
    count = whole("classes", classes, low=2)
    return _wrong_label(count) if kind == "mislabelled" else _noise_features(count)


def _wrong_label(classes: int) -> Crafting:
    def craft(item: Any, random: np.random.Generator) -> Any:
        features, label = item
        other = (int(label) + int(random.integers(1, classes))) % classes
        return features, _like(label, other)

    return craft


def _noise_features(classes: int) -> Crafting:
    def craft(item: Any, random: np.random.Generator) -> Any:
        features, label = item
        values = torch.as_tensor(random.standard_normal(tuple(torch.as_tensor(features).shape)))
        return values.to(torch.as_tensor(features).dtype), _like(label, int(random.integers(classes)))

    return craft


def _new_tokens(vocabulary: NDArray[np.int64]) -> Crafting:
    """Random tokens in place of a sequence; of a mapping, in place of its input_ids (and labels)."""

    def craft(item: Any, random: np.random.Generator) -> Any:
        if isinstance(item, dict):
            tokens = _draw(item["input_ids"], random)
            return {**item, "input_ids": tokens, **({"labels": tokens} if "labels" in item else {})}
        if isinstance(item, tuple | list):
            return type(item)([_draw(item[0], random), *item[1:]])
        return _draw(item, random)

    def _draw(tokens: Any, random: np.random.Generator) -> Tensor:
        like = torch.as_tensor(tokens)
        return torch.as_tensor(random.choice(vocabulary, tuple(like.shape))).to(like.dtype)

    return craft


def _like(label: Any, value: int) -> Any:
    """The value in the form that the label has."""
    return torch.as_tensor(value, dtype=label.dtype).reshape(label.shape) if isinstance(label, Tensor) else value
