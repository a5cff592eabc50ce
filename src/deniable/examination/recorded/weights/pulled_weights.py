"""Moves back towards earlier weights by a fixed share, every few steps (lookahead): made of what is released already.

When and how far must be fixed: a move back that is taken at irregular times may be decided by the records.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import torch
from torch import Tensor

_RECENT, _FEWEST = 64, 3
"""Steps back to which moves are known; moves from which on they are told to be regular."""
_SAME = 1e-3
"""Relative to a move, or to a share."""


class PulledWeights:
    """Follows moves that the optimizer does not explain."""

    def __init__(self) -> None:
        self._recent: deque[Tensor] = deque(maxlen=_RECENT)
        self._pulls = list[tuple[int, int, float]]()
        """After which step, how many steps back, and by what share of the way."""

    def look(self, number: int, start: Tensor, off: Tensor | None) -> None:
        """Of step `number`, with the weights before it; `off` is what the step before leaves unexplained."""
        if off is not None and self._recent:
            back = torch.stack([*self._recent]) - (start - off)  # from where the optimizer has led
            shares = (back @ off) / back.square().sum(1).clamp(min=1e-300)
            left = (shares[:, None] * back - off).norm(dim=1)
            at = int(left.argmin())
            if float(left[at]) <= _SAME * float(off.norm()) and 0 < float(shares[at]) < 1:
                self._pulls.append((number - 1, len(back) - at, float(shares[at])))
        self._recent.append(start)

    def found(self) -> tuple[int, ...]:
        """After which steps, if all of these moves are alike and come every so many steps; else none."""
        if len(self._pulls) < _FEWEST:
            return ()
        steps, back, shares = (np.array(column) for column in zip(*self._pulls, strict=True))
        regular = np.ptp(np.diff(steps)) == 0 and np.ptp(back) == 0 and np.ptp(shares) <= _SAME * shares.max()
        return tuple(int(step) for step in steps) if regular else ()
