"""A training with differential privacy, as a description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from deniable.checks import positive, probability, whole
from deniable.mechanisms.mechanism import Adjacency, Mechanism
from deniable.mechanisms.releases import Gaussian


@dataclass(frozen=True)
class Training:
    """DP-SGD: in each of `steps`, Gaussian noise on the sum of gradients of a Poisson batch, clipped to norm `clip`.

    `noise` is the multiplier: standard deviation / sensitivity. `rate` is the probability of each record to be in a
    batch; at 1 every batch is all records. What is known without the clipping norm is in units of it. `adjacency` says
    what neighbours are.

    Examples:
        >>> import deniable as dn
        >>> training = dn.Training(noise=1.0, rate=0.01, steps=1000, adjacency="add-remove")
        >>> round(dn.privacy_loss(training.mechanism, training.adjacency).advantage(), 4)
        0.161
    """

    noise: float
    rate: float
    steps: int
    adjacency: Adjacency
    clip: float = 1.0

    def __post_init__(self) -> None:
        positive("noise", self.noise)
        positive("clip", self.clip)
        whole("steps", self.steps)
        probability("rate", self.rate)
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @classmethod
    def of(cls, described: Any) -> Training:
        """From whatever has noise, rate, steps, clip and adjacency: settings, or a document's input."""
        names = [field.name for field in fields(Training)]
        if isinstance(described, Mapping):
            return Training(**{name: described[name] for name in names if name in described})
        return Training(**{name: getattr(described, name) for name in names if hasattr(described, name)})

    @property
    def mechanism(self) -> Mechanism:
        """All that an observer of every step sees."""
        step: Mechanism = Gaussian(self.noise)
        step = step if self.rate == 1 else step.subsampled(self.rate)
        return step if self.steps == 1 else step.composed(self.steps)

    @property
    def sensitivity(self) -> float:
        """The largest change of the clipped sum between neighbours: 2C for replace, else C."""
        return self.adjacency.sensitivity(self.clip)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on the sum."""
        return self.noise * self.sensitivity
