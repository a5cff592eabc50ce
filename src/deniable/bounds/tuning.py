"""The free parameters of the named analyses; every value proves a bound, and the best are searched for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from deniable.bounds.numeric import valley

__all__ = ["Tuning"]

_ENDS = {
    "order": (log(1e-9), log(1e15)),  # no release of interest has its best order outside
    "slack": (-36.0, 6.0),
    "share": (log(1e-12), log(0.9)),
}
_PRECISION = 2e-9


@dataclass
class Tuning:
    """Where the next search starts: each leaves its best parameter here, which also suits the next mechanism.

    While `fixed`, the parameters are used as they are.
    """

    order: float = 2.5
    """ln(order - 1) of Renyi DP."""
    slack: float = 0.0
    """logit of the share of delta that the slack of advanced composition takes."""
    share: float = -2.0
    """ln of the share of a failure probability that an analysis takes as its delta."""
    fixed: bool = False

    def least(self, name: str, bound: Callable[[float], float]) -> float:
        """The least bound over all values of the parameter `name`."""
        start = getattr(self, name)
        if self.fixed:
            return bound(start)
        best, least = valley(bound, _ENDS[name], start=start, precision=_PRECISION)
        setattr(self, name, best)
        return least
