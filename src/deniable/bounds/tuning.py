"""The free parameters of the named analyses; every value proves a bound, and the best are searched for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, log
from operator import itemgetter

from deniable.bounds.numeric import valley

_ENDS = {
    "order": (log(1e-9), log(1e15)),  # no release of interest has its best order outside
    "slack": (-36.0, 6.0),
    "share": (log(1e-12), log(0.9)),
}
_PRECISION = 1e-8
_ROUGH = 0.03
_TINY = 1e-12
_BESIDE = 1e-10
_FAR = 3.0  # so far from the best value no jump matters


@dataclass
class Tuning:
    """Where the next search starts: each leaves its best parameter here, which also suits the next mechanism."""

    order: float = 2.5
    """ln(order - 1) of Renyi DP."""
    slack: float = 0.0
    """logit of the share of delta that the slack of advanced composition takes."""
    share: float = -2.0
    """ln of the share of a failure probability that an analysis takes as its delta."""
    level: float | None = None
    """Where the bounds are to be compared with it: the farther they are from it, the less exact they need be."""

    def least(self, name: str, bound: Callable[[float], float], jumps: Iterable[float] = ()) -> float:
        """The least bound over all values of the parameter `name`; where it jumps, both sides are searched."""
        start, (low, high) = getattr(self, name), _ENDS[name]
        near = sorted(jump for jump in jumps if abs(jump - start) < _FAR and low < jump < high)
        edges = [low, *(side for jump in near for side in (jump - _BESIDE, jump + _BESIDE)), high]
        pieces = zip(edges[::2], edges[1::2], strict=True)
        found = [valley(bound, piece, start=start, exact=self._exact) for piece in pieces]
        best, least = min(found, key=itemgetter(1))
        setattr(self, name, best)
        return least

    def _exact(self, bound: float) -> float:
        """Within how much of the least bound is enough; no bound means more where it is below 0."""
        if bound <= 0:
            return inf
        rough = 0.0 if self.level is None else _ROUGH * abs(bound - self.level)
        return _PRECISION * max(bound, _TINY) + rough
