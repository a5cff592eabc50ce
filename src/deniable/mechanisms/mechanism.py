"""What all descriptions of a release have in common, and several releases of the same data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deniable.checks import refuse, whole

if TYPE_CHECKING:
    from deniable.mechanisms.samplings import Sampling


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
