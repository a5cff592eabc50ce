"""How many of a person's records are in a batch: the law of their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, log, log1p

import numpy as np

from deniable.checks import RefusedError

_LEFT_OUT_NATS = 690.0  # e^-690 = 2e-300: the chance of larger numbers that is left out (Lemma A7)
_MOST_NUMBERS = 4000


@dataclass(frozen=True)
class RecordNumbers:
    """The chance that there are any, and of each number from the first one on, ln of its weight over that before it."""

    presence: float
    first: int
    last: int
    log_ratio: Callable[[int], float]
    """Of the weight of a number + 1 to that of the number."""

    def shares(self) -> list[tuple[int, float]]:
        """Numbers above 0 with their chances given that there are any."""
        logs, top, number = [0.0], 0.0, self.first
        while number < self.last and logs[-1] > top - _LEFT_OUT_NATS:
            logs.append(logs[-1] + self.log_ratio(number))
            top, number = max(top, logs[-1]), number + 1
            if len(logs) > _MOST_NUMBERS:
                raise RefusedError(f"more than {_MOST_NUMBERS} of a person's records may be in one batch")
        weights = np.exp(np.array(logs) - top)
        return [(self.first + place, float(w)) for place, w in enumerate(weights / weights.sum()) if w > 0]


def drawn_apart(draws: int, rate: float) -> RecordNumbers:
    """Each of so many draws finds one of them with this chance, independently: binomial."""
    if rate >= 1:
        return RecordNumbers(1.0, draws, draws, lambda _: 0.0)
    odds = log(rate) - log1p(-rate)
    presence = -expm1(draws * log1p(-rate))
    return RecordNumbers(presence, 1, draws, lambda m: odds + log((draws - m) / (m + 1)))


def drawn_together(records: int, own: int, batch: int) -> RecordNumbers:
    """A batch without replacement of all records, so many of which are the person's own: hypergeometric."""
    others = records - own
    missing = sum(log1p(-batch / (records - place)) for place in range(own)) if batch <= others else 0.0
    presence = -expm1(missing) if batch <= others else 1.0
    first = max(1, batch - others)
    return RecordNumbers(
        presence, first, min(own, batch), lambda m: log((own - m) * (batch - m) / ((m + 1) * (others - batch + m + 1)))
    )
