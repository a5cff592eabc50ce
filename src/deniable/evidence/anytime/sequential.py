"""Evidence that may be watched: a test of a privacy claim, and a bound on it, that hold after every trial at once.

An observer bets against the claim. A *bet* is fixed before the trials: name D where the log-odds are above a threshold
and D' where they are below its negative, and stake a share of the wealth at the odds that a slope of the claim's
trade-off curve makes fair (Lemma E11). Under the claim no bet gains on average, so wealth that starts at 1 ever reaches
1/risk with probability at most `risk` (Ville 1939), however often one looks and whenever one stops. The wealth is the
mean over all bets, so no bet need be chosen.

A bet's wealth depends on how often the observer was right, wrong and silent, and on nothing else: trials are counted in
a `Tally`, tallies of blocks add up, and neither order nor engine matters (Lemma E12). The same tallies test every
claim; the claims that they refute, from the smallest on, give a lower bound on epsilon that holds at every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.checks import probability
from deniable.evidence.attack_scores import Floats
from deniable.scores import PrivacyLoss
from deniable.search import crossing

SLOPES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Epsilons at which the claim's hockey-stick divergence makes bets fair."""
THRESHOLDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Log-odds above which the observer names a data set."""
STAKES = (0.03, 0.06, 0.12, 0.25, 0.5, 0.75, 0.95)
"""Shares of the wealth that are lost where the observer names the wrong one."""
SIDES = {"both": 0.6, "D": 0.2, "D'": 0.2}
"""Which data sets the observer names, and the share of the first wealth that goes to such bets."""
Counts = NDArray[Any]
"""Whole numbers where trials were counted, others where they are expected."""
_BOUND_PRECISION = 1e-4  # relative


@dataclass(frozen=True)
class Tally:
    """How often the observer named a data set, rightly or wrongly, in some trials."""

    trials: int
    named: Counts
    """Of each threshold (rows): named D rightly and wrongly, D' rightly and wrongly (columns)."""

    @classmethod
    def of(cls, log_odds: ArrayLike, trained_on_d: ArrayLike) -> Tally:
        """Of trials with the observer's log-odds for D and what was really trained on; without any, of none."""
        odds, on_d = np.asarray(log_odds, dtype=np.float64), np.asarray(trained_on_d, dtype=bool)
        above, below = (sign * odds > np.array(THRESHOLDS)[:, None] for sign in (1, -1))
        columns = (above & on_d, above & ~on_d, below & ~on_d, below & on_d)
        return cls(odds.size, np.stack([np.count_nonzero(named, axis=1) for named in columns], axis=1))

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.trials + other.trials, self.named + other.named)


def hockey_sticks(loss: PrivacyLoss) -> Floats:
    """What a test needs to know of a claim: the divergence, rounded up, at every one of `SLOPES`."""
    return np.array([min(1.0, float(loss.delta(slope))) for slope in SLOPES])


def log_wealth(tallies: Sequence[Tally], deltas: Floats) -> Floats:
    """The logarithm of the wealth after each of some tallies, in bets against the claim with these `hockey_sticks`.

    Guarantee: for trials with fair coins whose release keeps the claim, given all trials before, it ever reaches
    log(1/risk) with probability at most `risk` (Lemma E11).
    """
    named = np.stack([tally.named for tally in tallies])
    trials = np.array([tally.trials for tally in tallies])
    shares = []
    for side, weight in SIDES.items():
        right, wrong = _named_by(side, named)
        gain, lose, keep = growth(deltas if side == "both" else deltas / 2)
        silent = trials[:, None] - right - wrong
        logs = _spread(right) * gain + _spread(wrong) * lose + _spread(silent) * keep
        shares.append(log(weight) + np.logaddexp.reduce((logs + _LOG_WEIGHTS).reshape(len(logs), -1), axis=1))
    return np.asarray(np.logaddexp.reduce(shares, axis=0))


def _named_by(side: str, named: Counts) -> tuple[Counts, Counts]:
    """How often an observer that names these data sets was right and wrong: rows are looks, columns thresholds."""
    d, other = named[..., :2], named[..., 2:]
    chosen = {"both": d + other, "D": d, "D'": other}[side]
    return chosen[..., 0], chosen[..., 1]


def _spread(counts: Counts) -> Counts:
    """Looks and thresholds, for all slopes and stakes."""
    return counts[:, :, None, None]


def growth(deltas: Floats) -> tuple[Floats, Floats, Floats]:
    """Logarithms of what a bet's wealth is multiplied by if right, wrong and silent: rows slopes, columns stakes."""
    stakes, odds, cost = np.array(STAKES), np.exp(SLOPES)[:, None], deltas[:, None]
    bet = stakes / (odds + cost)
    return np.log1p(bet * (1 - cost)), np.log1p(-stakes) + 0 * cost, np.log1p(-bet * cost)


def _log_weights() -> Floats:
    """Of thresholds, slopes and stakes: most for small thresholds and slopes, which serve most claims."""
    falling = [np.log(1 / (1 + np.array(grid)) / np.sum(1 / (1 + np.array(grid)))) for grid in (THRESHOLDS, SLOPES)]
    return np.asarray(falling[0][:, None, None] + falling[1][None, :, None] - log(len(STAKES)))


_LOG_WEIGHTS = _log_weights()


def largest_refuted(tallies: Sequence[Tally], deltas_of: Callable[[float], Floats], most: float, risk: float) -> float:
    """The largest claim between 0 and `most` that the wealth has refuted at any of the tallies; 0 where none is.

    `deltas_of` gives the `hockey_sticks` of a claim and grows with it (a larger claim promises less), so the wealth
    falls, and all smaller claims are refuted, too.

    Guarantee: above the smallest true claim, at any time, with probability at most `risk` (Lemma E13).
    """
    level = probability("risk", risk, open_ends=True)

    def doubt(claim: float) -> float:
        return exp(min(-float(log_wealth(tallies, deltas_of(claim)).max()), 0.0))

    if doubt(0.0) > level:
        return 0.0
    if doubt(most) <= level:
        return most
    return max(0.0, -crossing(lambda y: doubt(-y), level, -most, 0.0, precision=_BOUND_PRECISION))
