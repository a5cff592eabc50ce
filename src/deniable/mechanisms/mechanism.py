"""What all descriptions of a release have in common: kinds of neighbours, and several releases of the same data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from deniable.checks import refuse, whole

if TYPE_CHECKING:
    from deniable.mechanisms.samplings import Sampling


class Adjacency(StrEnum):
    """Which data sets count as neighbours, that is, what the observer must not be able to tell apart.

    Examples:
        >>> import deniable as dn
        >>> [one.value for one in dn.Adjacency]
        ['add-remove', 'replace', 'zero-out']
    """

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


def named_adjacency(mechanism: Mechanism, adjacency: Adjacency | str | None) -> Adjacency:
    """The kind of neighbours that was named; it may be left out only where all kinds have the same loss.

    Noise is relative to the sensitivity, so they differ where batches are sampled, and there alone.
    """
    samples = check_mechanism(mechanism).samples
    if adjacency is None and not samples:
        return Adjacency.ADD_REMOVE
    return Adjacency(adjacency)  # type: ignore[arg-type]  # None is refused as any other text


@dataclass(frozen=True)
class Mechanism:
    """Anything that releases an output; combinators build larger releases from smaller ones.

    Examples:
        >>> import deniable as dn
        >>> dn.Gaussian(1.0).subsampled(0.01).composed(10)
        Composed(parts=((Subsampled(mechanism=Gaussian(noise=1.0), rate=0.01), 10),))
    """

    @property
    def samples(self) -> bool:
        """Whether batches are drawn at random, so that it matters which data sets are neighbours."""
        return False

    def subsampled(self, sampling: Sampling | float) -> Mechanism:
        """The mechanism on random samples; a number is a rate.

        With a rate, or `Poisson`, every record takes part with that probability, independently. One run is one
        step; with `RandomAllocation` and `Shuffled` it is one epoch, with `CyclicPoisson` one round of all bands.
        """
        from deniable.mechanisms.samplings import sample_by  # noqa: PLC0415

        return sample_by(self, sampling)

    def composed(self, steps: int) -> Mechanism:
        """`steps` independent runs on the same data, all of them observed."""
        return Composed(((self, steps),))

    def group(self, size: int) -> Mechanism:
        """The same release between data sets that differ in `size` records."""
        from deniable.mechanisms.groups import group  # noqa: PLC0415

        return group(self, size)


def check_mechanism(value: object) -> Mechanism:
    """A description of a release; anything else is refused with what to give instead."""
    if isinstance(value, Mechanism):
        return value
    inner = isinstance(getattr(value, "mechanism", None), Mechanism)  # a training, a calibration
    hint = "give its .mechanism" if inner else "for example deniable.Gaussian(1.0).subsampled(0.01).composed(1000)"
    raise refuse("mechanism", value, "a description of a release", hint)


@dataclass(frozen=True)
class Composed(Mechanism):
    """Independent releases of the same data, all observed; `parts` are pairs (mechanism, number of runs).

    Examples:
        >>> import deniable as dn
        >>> dn.Laplace(2.0).composed(3)
        Composed(parts=((Laplace(scale=2.0), 3),))
    """

    parts: tuple[tuple[Mechanism, int], ...]

    def __post_init__(self) -> None:
        for part, steps in self.parts:
            check_mechanism(part)
            whole("steps", steps, low=0)

    def composed(self, steps: int) -> Mechanism:
        whole("steps", steps, low=0)
        return Composed(tuple((part, count * steps) for part, count in self.parts))

    @property
    def samples(self) -> bool:
        return any(steps and part.samples for part, steps in self.parts)


def compose(*mechanisms: Mechanism) -> Mechanism:
    """One release made of several, unlike ones allowed, on the same data; their order does not matter.

    Args:
        *mechanisms: The releases, all of them observed.

    Returns:
        The release of all their outputs.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.compose(dn.Gaussian(2.0), dn.Laplace(3.0))).advantage(), 4)
        0.2346
    """
    parts: list[tuple[Mechanism, int]] = []
    for mechanism in mechanisms:
        parts.extend(mechanism.parts if isinstance(mechanism, Composed) else ((mechanism, 1),))
    return Composed(tuple(parts))
