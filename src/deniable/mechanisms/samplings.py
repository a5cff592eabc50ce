"""Who takes part in one step: a release on a random sample of the records."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.checks import probability
from deniable.mechanisms.compositions import Composed
from deniable.mechanisms.mechanism import Mechanism

__all__ = ["Subsampled"]


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

    @property
    def samples(self) -> bool:
        return self.rate > 0 and (self.rate < 1 or self.mechanism.samples)
