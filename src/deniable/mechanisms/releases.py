"""One release: noise on a query, randomized answers, or a bare guarantee.

Noise is always relative to the sensitivity: ``noise = sigma / sensitivity`` and ``scale = b / sensitivity``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from deniable.checks import amount_of_noise, loss_size, positive, probability, whole
from deniable.mechanisms.mechanism import Mechanism

__all__ = ["ApproximateDP", "Gaussian", "GaussianDP", "Laplace", "Pixelization", "RandomizedResponse", "TotalVariation"]


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Adds Gaussian noise of standard deviation `noise` times the sensitivity.

    On a Poisson sample under `replace` it stands for a sum of vectors clipped in norm, as in DP-SGD: the sensitivity
    is 2C, and a record that is left out contributes 0, half-way between any record and its opposite. For a count, a
    bounded mean or any other query, where a record left out may look like the other record, this would promise too
    much: write `Gaussian(noise).for_any_query()`. Without sampling, and for the other neighbours, both are the same.
    """

    noise: float

    def __post_init__(self) -> None:
        amount_of_noise("noise", self.noise)

    def for_any_query(self) -> GaussianDP:
        """The same noise on any query of that sensitivity: the bare (1 / noise)-GDP guarantee."""
        return GaussianDP(1 / self.noise)


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Adds Laplace noise of scale `scale` times the sensitivity; pure (1 / scale)-DP."""

    scale: float

    def __post_init__(self) -> None:
        amount_of_noise("scale", self.scale)


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Reports one of `categories` values: the true one e^epsilon times as likely as each other one."""

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        loss_size("epsilon", self.epsilon)
        whole("categories", self.categories, low=2)

    @classmethod
    def from_retention(cls, retention: float, categories: int = 2) -> RandomizedResponse:
        """Keep the true value with probability `retention`, else draw uniformly (Bernau 2021b, Eq. 1, two coins)."""
        probability("retention", retention, open_ends=True)
        whole("categories", categories, low=2)
        lie = (1 - retention) / categories
        return cls(log((retention + lie) / lie), categories)


@dataclass(frozen=True)
class Pixelization(Mechanism):
    """Averages cells of `cell` x `cell` pixels and adds Laplace noise of scale 255 pixels / (cell^2 epsilon).

    Hides any change of up to `pixels` pixels of an image (Bernau 2021b, Section 2.1, after Fan 2018; erratum 17).
    """

    epsilon: float
    pixels: int
    cell: int

    def __post_init__(self) -> None:
        loss_size("epsilon", self.epsilon)
        whole("pixels", self.pixels)
        whole("cell", self.cell)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise that is added to every cell's mean, in grey levels 0..255."""
        return 255 * self.pixels / (self.cell**2 * self.epsilon)


@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """A bare (epsilon, delta) guarantee: all that is known of the release."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, zero=True)  # weaker analyses state any number
        probability("delta", self.delta)


@dataclass(frozen=True)
class TotalVariation(Mechanism):
    """A bare alpha-TVD guarantee (Jia 2023, Definition 3)."""

    alpha: float

    def __post_init__(self) -> None:
        probability("alpha", self.alpha)


@dataclass(frozen=True)
class GaussianDP(Mechanism):
    """A bare mu-GDP guarantee: at least as hard to attack as telling N(0, 1) from N(mu, 1), whatever the query."""

    mu: float

    def __post_init__(self) -> None:
        loss_size("mu", self.mu, zero=True)
