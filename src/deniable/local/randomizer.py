"""What every local randomizer can do, and what it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from deniable.mechanisms import Adjacency, Mechanism
from deniable.scores import PrivacyLoss, privacy_loss


@dataclass(frozen=True)
class LocalCost:
    """What one perturbed record gives away, against any other record in its place."""

    features: int
    """How many values of the record are perturbed, each with its own noise."""
    epsilon: float
    """The sum of the values' epsilons, F x epsilon where all are equal (Bernau 2021b, Table 1): the largest possible
    loss."""
    mechanism: Mechanism
    """The whole record's release: one run for each value."""

    @cached_property
    def loss(self) -> PrivacyLoss:
        """The exact privacy loss of the composed release, for every score: `cost.loss.advantage()` and so on."""
        return privacy_loss(self.mechanism, Adjacency.REPLACE)


class Randomizer(ABC):
    """Perturbs records, each independently of all others."""

    @abstractmethod
    def perturb(self, records: NDArray[Any], seed: int | None = None) -> NDArray[Any]:
        """The records with noise, in the same shape and type; `records` itself is left as it is.

        Randomness is the operating system's. A `seed` makes the noise repeatable, for audits only: who knows it can
        take the noise away.
        """

    @abstractmethod
    def cost(self, record: tuple[int, ...]) -> LocalCost:
        """What perturbing one record of this shape costs."""
