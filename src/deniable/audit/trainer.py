"""Somebody else's training, as the audit sees it: a callable that trains on given records and yields what it applied.

def train(records, seed):
    model, generator = net(), torch.Generator().manual_seed(seed)
    for _ in range(30):
        total = ...  # the noisy sum of the clipped gradients of records.features, records.labels
        yield AppliedStep(model, total)
        ...  # apply it

dn.audit("digits", trainer=train, model=net, claimed=dn.Gaussian(4).composed(30), clip=3.0, adjacency="add-remove")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from deniable.checks import positive

__all__ = ["AppliedStep", "Records", "Seen", "Trainer", "seen"]

Tensors = nn.Module | Mapping[str, ArrayLike | Tensor] | Sequence[ArrayLike | Tensor] | Tensor


class Records(NamedTuple):
    """What a trainer trains on: float32 features, one record a row, and int64 labels."""

    features: Tensor
    labels: Tensor

    @property
    def dataset(self) -> TensorDataset:
        """The same for a `DataLoader`; its item i is record i, the number that `AppliedStep.batch` names it by."""
        return TensorDataset(self.features, self.labels)


@dataclass(frozen=True)
class AppliedStep:
    """One step of a training: all that an observer sees of it.

    `weights` are those before the step, `gradient` the noisy gradient that is applied to them: the sum over the batch
    plus noise, or that divided by `divisor` (a mean). Each is an `nn.Module` (its parameters, or their ``.grad``), a
    dictionary by parameter name, a sequence in the order of the model's trainable parameters, or one flat vector.
    `batch` holds the indices of the records in the batch; None means all of them. Everything is copied, so the
    training may go on in place.
    """

    weights: Tensors
    gradient: Tensors
    divisor: float = 1.0
    batch: ArrayLike | Tensor | None = None

    def __post_init__(self) -> None:
        positive("divisor", self.divisor)
        object.__setattr__(self, "weights", _copied(self.weights, gradients=False))
        object.__setattr__(self, "gradient", _copied(self.gradient, gradients=True))
        if self.batch is not None:
            object.__setattr__(self, "batch", _indices(self.batch))


Trainer = Callable[[Records, int], Iterable[AppliedStep]]
"""Trains on the records, all its randomness from the seed, and yields (or returns a list of) its steps."""


@dataclass(frozen=True)
class Seen:
    """All steps of one training: lists of tensors (steps, ...) in the order of the model's parameters."""

    weights: list[Tensor]
    sums: list[Tensor]
    """The noisy sums: gradient times divisor."""
    batches: list[NDArray[np.int64] | None]
    divisors: list[float]

    def __len__(self) -> int:
        return len(self.batches)


def seen(steps: Iterable[Any], parameters: Mapping[str, Tensor]) -> Seen:
    """The steps that a trainer yields, checked against the model's parameters."""
    weights: list[list[Tensor]] = []
    sums: list[list[Tensor]] = []
    batches: list[NDArray[np.int64] | None] = []
    divisors: list[float] = []
    for number, step in enumerate(steps, start=1):
        applied = _step(step)
        weights.append(_fitted(f"weights of step {number}", applied.weights, parameters))
        gradient = _fitted(f"gradient of step {number}", applied.gradient, parameters)
        sums.append([value * applied.divisor for value in gradient])
        batches.append(applied.batch)  # type: ignore[arg-type]
        divisors.append(float(applied.divisor))
    if not batches:
        raise ValueError("trainer must yield at least one AppliedStep, got none")
    return Seen(_stacked(weights), _stacked(sums), batches, divisors)


def _stacked(steps: list[list[Tensor]]) -> list[Tensor]:
    return [torch.stack(values) for values in zip(*steps, strict=True)]


def _step(step: Any) -> AppliedStep:
    if isinstance(step, AppliedStep):
        return step
    if isinstance(step, tuple) and 2 <= len(step) <= 4:
        return AppliedStep(*step)
    raise ValueError(
        f"trainer must yield AppliedStep(weights, gradient, divisor, batch) or such a tuple, got {type(step)}"
    )


def _copied(values: Tensors, gradients: bool) -> dict[str, Tensor] | list[Tensor] | Tensor:
    if isinstance(values, nn.Module):
        parameters = (p for p in values.parameters() if p.requires_grad)
        return [_copy(p if not gradients else torch.zeros_like(p) if p.grad is None else p.grad) for p in parameters]
    if isinstance(values, Mapping):
        return {name: _copy(value) for name, value in values.items()}
    if isinstance(values, Tensor | np.ndarray):
        return _copy(values)
    return [_copy(value) for value in values]


def _copy(value: ArrayLike | Tensor) -> Tensor:
    tensor = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    return tensor.detach().to("cpu", torch.float32, copy=True)


def _indices(batch: ArrayLike | Tensor) -> NDArray[np.int64]:
    values = batch.detach().cpu().numpy() if isinstance(batch, Tensor) else np.asarray(batch)
    if values.ndim != 1 or (len(values) and not np.issubdtype(values.dtype, np.integer)):
        raise ValueError(f"batch must be the indices of its records, whole numbers, got {values.dtype} {values.shape}")
    return values.astype(np.int64)


def _fitted(name: str, values: Any, parameters: Mapping[str, Tensor]) -> list[Tensor]:
    """As a list in the order of the parameters, refused unless the shapes and numbers are right."""
    fitted = list(_ordered(name, values, parameters))
    expected, found = [tuple(p.shape) for p in parameters.values()], [tuple(v.shape) for v in fitted]
    if expected != found:
        raise ValueError(f"{name} must have the shapes of the model's trainable parameters, {expected}, got {found}")
    if not all(bool(torch.isfinite(value).all()) for value in fitted):
        raise FloatingPointError(f"{name} is not finite: the training diverged; lower its learning rate")
    return fitted


def _ordered(name: str, values: Any, parameters: Mapping[str, Tensor]) -> Iterator[Tensor]:
    if isinstance(values, dict):
        plain = {key.removeprefix("_module.").removeprefix("module."): value for key, value in values.items()}
        if missing := sorted(parameters.keys() - plain.keys()):
            raise ValueError(f"{name} must name every trainable parameter, got none for {', '.join(missing)}")
        yield from (plain[key] for key in parameters)
    elif isinstance(values, Tensor):
        sizes = [p.numel() for p in parameters.values()]
        if values.numel() != sum(sizes):
            raise ValueError(f"{name} must have {sum(sizes)} numbers, one for each weight, got {values.numel()}")
        parts = torch.split(values.flatten(), sizes)
        yield from (part.view(p.shape) for part, p in zip(parts, parameters.values(), strict=True))
    else:
        yield from values
