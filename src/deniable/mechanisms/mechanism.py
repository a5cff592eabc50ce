"""What all descriptions of a release have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.mechanisms.samplings import Sampling

__all__ = ["Mechanism"]


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
        from deniable.mechanisms.compositions import Composed  # noqa: PLC0415

        return Composed(((self, steps),))

    def group(self, size: int) -> Mechanism:
        """The same release between data sets that differ in `size` records."""
        from deniable.mechanisms.groups import group  # noqa: PLC0415

        return group(self, size)
