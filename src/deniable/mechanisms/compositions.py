"""Several releases of the same data."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.checks import whole
from deniable.mechanisms.mechanism import Mechanism

__all__ = ["Composed", "compose"]


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
        for _, steps in self.parts:
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
