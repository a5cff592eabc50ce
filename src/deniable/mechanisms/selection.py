"""The best of a random number of runs: tuning."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from deniable.checks import positive, refuse
from deniable.mechanisms.mechanism import Mechanism, check_mechanism


@dataclass(frozen=True)
class RepeatAndSelect(Mechanism):
    """Runs `mechanism` a random number of times, `mean` on average, and releases the best run alone (Papernot 2022).

    The number is drawn in secret from a truncated negative binomial law with this `shape`: 1 is geometric, 0
    logarithmic, infinity a Poisson law (which may be no run at all). What is best may be judged by any rule on the
    runs' outputs. A fixed number of runs has no such guarantee: all of them must be paid for.

    Examples:
        >>> import deniable as dn
        >>> round(dn.privacy_loss(dn.RepeatAndSelect(dn.Gaussian(4.0), mean=10), "add-remove").epsilon(1e-5), 3)
        2.154
    """

    mechanism: Mechanism
    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        positive("mean", self.mean)
        if self.shape != inf:
            positive("shape", self.shape, zero=True)
            if self.mean <= 1:
                raise refuse("mean", self.mean, "above 1", "at least one run is made")

    @property
    def samples(self) -> bool:
        return self.mechanism.samples
