"""What is trained: the settings of a training and the two neighbouring data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from deniable.checks import one_of, positive, probability, refuse, whole
from deniable.mechanisms import Adjacency

ModelFactory = Callable[[], torch.nn.Module]
Optimizer = Literal["sgd", "adam"]
Sensitivity = Literal["global", "local"]


class Course(Protocol):
    """What the moves of a step need to know of a training, whoever plans it."""

    @property
    def model(self) -> str | ModelFactory:
        """The network: a name, a ``"module:function"`` or a function."""

    @property
    def loss(self) -> str | Callable[[Tensor, Tensor], Tensor]:
        """The loss of each example."""

    @property
    def clip(self) -> float | Tensor:
        """The largest norm of an example's gradient, for all trials or for each; infinity for none."""

    @property
    def rate(self) -> float:
        """The probability of each record to be in a batch."""

    @property
    def learning_rate(self) -> float | Tensor:
        """The optimizer's; one for all trials, or one for each."""

    @property
    def optimizer(self) -> Optimizer:
        """Which one."""


@dataclass(frozen=True)
class TrainingSettings:
    """One DP-SGD or DP-Adam training; equal settings, seed and block number give equal results.

    `noise` is the noise multiplier: the standard deviation of the noise on the *sum* of the clipped gradients is
    ``noise * sensitivity``. With ``sensitivity="global"`` that is C (add-remove, zero-out) or 2C (replace), and the
    training is differentially private. With ``sensitivity="local"`` it is the distance between the two neighbours'
    sums at this step: an INSTRUMENT to test whether bounds are tight, NOT differentially private, since the scale
    itself depends on the data (Bernau 2021, Section 5.1; erratum 8).

    `rate` is the probability of each record to be in a step's Poisson batch; 1 means full batches. The noisy sum is
    divided by ``rate * |D|`` under both hypotheses, a public constant. `model` is the name of a reference model, a
    ``"module:function"`` or a picklable function without arguments that returns an `nn.Module`; `loss` likewise, of
    ``(outputs, targets)`` to one loss per example.
    """

    model: str | ModelFactory
    noise: float
    steps: int = 30
    clip: float = 3.0
    learning_rate: float = 0.005
    optimizer: Optimizer = "sgd"
    rate: float = 1.0
    sensitivity: Sensitivity = "global"
    adjacency: Adjacency = field(kw_only=True)
    loss: str | Callable[[Tensor, Tensor], Tensor] = "cross-entropy"
    trials_per_block: int = 50

    def __post_init__(self) -> None:
        for name in ("noise", "clip", "learning_rate"):
            positive(name, getattr(self, name))
        for name in ("steps", "trials_per_block"):
            whole(name, getattr(self, name))
        if probability("rate", self.rate) == 0:
            raise refuse("rate", self.rate, "a number above 0 and at most 1", "no record would ever be drawn")
        one_of("optimizer", self.optimizer, get_args(Optimizer))
        one_of("sensitivity", self.sensitivity, get_args(Sensitivity))
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @property
    def global_sensitivity(self) -> float:
        """The largest change of the clipped sum between neighbours (Bernau 2021, Section 5.1)."""
        return self.adjacency.sensitivity(self.clip)

    @property
    def differentially_private(self) -> bool:
        """Whether the noise carries a guarantee; False with local sensitivity (erratum 8)."""
        return self.sensitivity == "global"


class Columns(NamedTuple):
    """All records of D and D' once, the `differing` ones last: the rest, x and (replace) x'."""

    records: Tensor
    labels: Tensor
    differing: int


@dataclass(frozen=True)
class Neighbours:
    """D, and what its neighbour D' has in place of D's record number `index`.

    `replace`: record `index` is exchanged for (`other_record`, `other_label`). `add-remove` and `zero-out`: it is
    left out, and there is no other record. `test_records` are for the accuracy of the trained models only.
    """

    records: Tensor
    labels: Tensor
    index: int
    other_record: Tensor | None = None
    other_label: Tensor | None = None
    test_records: Tensor | None = None
    test_labels: Tensor | None = None

    @classmethod
    def of(
        cls,
        records: ArrayLike,
        labels: ArrayLike,
        index: int,
        other: tuple[ArrayLike, ArrayLike] | None = None,
        test: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Neighbours:
        """From arrays: records as 32-bit floats, whole-number labels as class numbers."""
        x, y = as_records(records, labels)
        if not 0 <= whole("index", index, low=0) < len(x):
            raise ValueError(f"index must be a record of D, 0 to {len(x) - 1}, got {index}")
        extra = _single(other, x, y) if other is not None else (None, None)
        held_out = as_records(*test) if test is not None else (None, None)
        return cls(x, y, int(index), *extra, *held_out)

    def columns(self, adjacency: Adjacency) -> Columns:
        """The records of D and, for replace, x' after them; x is moved to the end of D."""
        rest = torch.arange(len(self.records)) != self.index
        records, labels = [self.records[rest], self.records[~rest]], [self.labels[rest], self.labels[~rest]]
        if adjacency is Adjacency.REPLACE:
            if self.other_record is None or self.other_label is None:
                raise ValueError("other must be given for replace neighbours: the record that D' has instead of x")
            records.append(self.other_record[None])
            labels.append(self.other_label[None])
        return Columns(torch.cat(records), torch.cat(labels), len(records) - 1)


def as_records(records: ArrayLike, labels: ArrayLike) -> tuple[Tensor, Tensor]:
    """Float32 records and int64 (or float32) labels, refused unless finite and of equal number."""
    x = torch.from_numpy(np.array(records, dtype=np.float32))
    y = np.array(labels)
    y = y.astype(np.int64 if np.issubdtype(y.dtype, np.integer) or y.dtype == np.bool_ else np.float32)
    if x.ndim < 2 or len(x) == 0 or len(x) != len(y):
        raise ValueError(f"records and labels must be equally many, at least one, got {tuple(x.shape)} and {y.shape}")
    if not bool(torch.isfinite(x).all()) or not np.isfinite(y).all():
        raise ValueError("records and labels must be finite; remove or fill rows with NaN or infinity")
    return x, torch.from_numpy(y)


def _single(other: tuple[ArrayLike, ArrayLike], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    record, label = as_records(np.asarray(other[0])[None], np.asarray(other[1])[None])
    if record.shape[1:] != x.shape[1:]:
        raise ValueError(f"other must have the shape of a record, {tuple(x.shape[1:])}, got {tuple(record.shape[1:])}")
    return record[0], label[0].to(y.dtype)
