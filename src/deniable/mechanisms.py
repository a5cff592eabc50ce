"""What a release does, as frozen data without mathematics.

A mechanism is a description that every analysis (exact loss, named bound, training engine) can read:

    Gaussian(noise=1.0).subsampled(0.01).composed(1000)
    compose(phase_one, phase_two, Laplace(scale=2.0))

Noise is always relative to the sensitivity: ``noise = sigma / sensitivity`` and ``scale = b / sensitivity``.
With clipping norm C the sensitivity is C for `add-remove` and `zero-out` neighbours and 2C for `replace`
(see `Adjacency`), so the same description serves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from math import log
from typing import Any

from deniable.checks import amount_of_noise, loss_size, positive, probability, refuse, whole

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "Composed",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Pixelization",
    "RandomizedResponse",
    "Subsampled",
    "TotalVariation",
    "Training",
    "compose",
    "named_adjacency",
]


class Adjacency(StrEnum):
    """Which data sets count as neighbours, that is, what the observer must not be able to tell apart."""

    ADD_REMOVE = "add-remove"
    """One record more or less (unbounded); sensitivity C."""
    REPLACE = "replace"
    """One record exchanged for another (bounded); sensitivity 2C."""
    ZERO_OUT = "zero-out"
    """One record exchanged for an empty one whose contribution is zero; sensitivity C."""

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        """Whatever is no kind of neighbours is refused here, for everybody."""
        hint = "batches are sampled, so it matters what neighbours are" if value is None else ""
        raise refuse("adjacency", value, f"one of {', '.join(cls)}", hint)

    def sensitivity(self, clip: float) -> float:
        """The largest change of a sum of vectors clipped to norm `clip` between such neighbours."""
        return 2 * clip if self is Adjacency.REPLACE else clip


@dataclass(frozen=True)
class Mechanism:
    """Anything that releases an output; combinators build larger releases from smaller ones."""

    def subsampled(self, rate: float) -> Mechanism:
        """The mechanism on a Poisson sample: every record takes part with probability `rate`, independently."""
        return Subsampled(self, rate)

    def composed(self, steps: int) -> Mechanism:
        """`steps` independent runs on the same data, all of them observed."""
        return Composed(((self, steps),))


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


@dataclass(frozen=True)
class Subsampled(Mechanism):
    """`mechanism` run on a Poisson sample of the records."""

    mechanism: Mechanism
    rate: float

    def __post_init__(self) -> None:
        probability("rate", self.rate)
        if isinstance(self.mechanism, Composed):
            raise ValueError(
                "subsample each step, then compose: write mechanism.subsampled(rate).composed(steps); "
                "a composition run on one single sample has no exact loss here"
            )


@dataclass(frozen=True)
class Composed(Mechanism):
    """Independent releases of the same data, each a (mechanism, number of runs) pair, all observed."""

    parts: tuple[tuple[Mechanism, int], ...]

    def __post_init__(self) -> None:
        for _, steps in self.parts:
            whole("steps", steps, low=0)

    def composed(self, steps: int) -> Mechanism:
        whole("steps", steps, low=0)
        return Composed(tuple((part, count * steps) for part, count in self.parts))


def compose(*mechanisms: Mechanism) -> Mechanism:
    """One release made of several, unlike ones allowed, on the same data; their order does not matter."""
    parts: list[tuple[Mechanism, int]] = []
    for mechanism in mechanisms:
        parts.extend(mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),))
    return Composed(tuple(parts))


def named_adjacency(mechanism: Mechanism, adjacency: Adjacency | str | None) -> Adjacency:
    """The kind of neighbours that was named; it may be left out only where all kinds have the same loss.

    Noise is relative to the sensitivity, so they differ where batches are sampled, and there alone.
    """
    if adjacency is None and not _samples(mechanism):
        return Adjacency.ADD_REMOVE
    return Adjacency(adjacency)  # type: ignore[arg-type]  # None is refused as any other text


def _samples(mechanism: Mechanism) -> bool:
    parts = mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),)
    return any(steps and isinstance(part, Subsampled) and 0 < part.rate < 1 for part, steps in parts)


@dataclass(frozen=True)
class Training:
    """DP-SGD: in each of `steps`, Gaussian noise on the sum of gradients of a Poisson batch, clipped to norm `clip`.

    `noise` is the multiplier: standard deviation / sensitivity. `rate` is the probability of each record to be in a
    batch; at 1 every batch is all records. What is known without the clipping norm is in units of it.
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
