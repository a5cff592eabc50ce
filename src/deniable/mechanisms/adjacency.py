"""Which data sets are neighbours."""

from __future__ import annotations

from enum import StrEnum

from deniable.checks import refuse
from deniable.mechanisms.mechanism import Mechanism, check_mechanism


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
