"""What all descriptions of a release have in common."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mechanism"]


@dataclass(frozen=True)
class Mechanism:
    """Anything that releases an output; combinators build larger releases from smaller ones."""

    @property
    def samples(self) -> bool:
        """Whether batches are drawn at random, so that it matters which data sets are neighbours."""
        return False

    def subsampled(self, rate: float) -> Mechanism:
        """The mechanism on a Poisson sample: every record takes part with probability `rate`, independently."""
        from deniable.mechanisms.samplings import Subsampled  # noqa: PLC0415

        return Subsampled(self, rate)

    def composed(self, steps: int) -> Mechanism:
        """`steps` independent runs on the same data, all of them observed."""
        from deniable.mechanisms.compositions import Composed  # noqa: PLC0415

        return Composed(((self, steps),))
