"""The rows of a score file as a watch: `deniable verdict --watch` may be asked again after every new row.

Two things make rows of any attack and any share of members fit for the bets of `sequential`, without looking at what is
to be bet on (Lemma E14):

- *Coins of our own.* Trial after trial, a fair coin says which kind of row comes next, and the next row of that kind is
  taken, until one kind is used up. The coins are the same for every file, so that a file which grows keeps its trials.
- *Log-odds from earlier rows.* A score is placed among the earlier ones: how many members are below it, against how
  many others are above it. So no scale need be known.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable.calibration import calibrate
from deniable.evidence.anytime.sequential import Tally, hockey_sticks, log_wealth
from deniable.evidence.anytime.watch import WatchEvidence, looks
from deniable.evidence.attack_scores import Floats, Scores
from deniable.evidence.bound import Assumption
from deniable.mechanisms import ApproximateDP, Mechanism, Training
from deniable.promises import Epsilon
from deniable.scores import PrivacyLoss, privacy_loss

Bits = NDArray[np.bool_]
COINS_SEED = 0xC0145
"""The coins are public and the same for every file; the scores know nothing of them."""
_EVERY_ROW, _NEXT_PLACES = 100, 1.02
"""Each of the first rows is placed among all before it, later ones among those that were there at 2 % fewer rows."""
_NEXT_LOOK = 1.002
"""Up to 500 rows every one is looked at, so that a claim once refuted stays refuted while the file grows."""
_ODD_ORDER = 1e-6


def take_trials(scores: Scores) -> tuple[Floats, Bits]:
    """Scores, and whether each is a member's, in the order of fair coins; each row once, in the file's order."""
    coins = np.random.default_rng(COINS_SEED).random(len(scores)) < 0.5
    enough = (np.cumsum(coins) <= scores.members.size) & (np.cumsum(~coins) <= scores.others.size)
    coins = coins[: len(coins) if enough.all() else int(np.argmin(enough))]
    taken = np.empty(coins.size)
    taken[coins], taken[~coins] = scores.members[: coins.sum()], scores.others[: (~coins).sum()]
    return taken, coins


def log_odds_from_earlier(score: Floats, member: Bits) -> Floats:
    """Of each score, from the earlier ones alone: log of (members below it / others above it), ties counted half."""
    odds, steps = np.zeros(score.size), list(range(min(_EVERY_ROW, score.size) + 1))
    while steps[-1] < score.size:
        steps.append(min(score.size, int(steps[-1] * _NEXT_PLACES)))
    for start, end in pairwise(steps):
        new, earlier, kind = score[start:end], score[:start], member[:start]
        below = _share_below(new, np.sort(earlier[kind]))
        above = 1 - _share_below(new, np.sort(earlier[~kind]))
        odds[start:end] = np.log(below) - np.log(above)
    return odds


def _share_below(points: Floats, ordered: Floats) -> Floats:
    """Half a score is added at either end, so that no share is 0 or 1."""
    both = (np.searchsorted(ordered, points, side) for side in ("left", "right"))
    return np.asarray((sum(both) + 1) / (2 * ordered.size + 2))


def order_assumption(scores: Scores) -> Assumption:
    """That rows stand in the order in which they arose; scores that rise or fall with their place speak against it."""
    p_value = min(1.0, 2 * min(_rise_p_value(values) for values in (scores.members, scores.others)))
    text = "the rows stand in the order in which they arose, none left out because of its score"
    return Assumption(text, False if p_value < _ODD_ORDER else None, p_value)


def _rise_p_value(values: Floats) -> float:
    """Of the rank correlation of scores with their places; asymptotic."""
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    if values.size < 3 or ordered[0] == ordered[-1]:
        return 1.0
    correlation = float(np.corrcoef(ranks, np.arange(values.size))[0, 1])
    return float(2 * ndtr(-abs(correlation) * sqrt(values.size - 1)))


def claimed_loss(claim: Epsilon, training: Training | None) -> PrivacyLoss:
    """What is claimed: (epsilon, delta)-DP; of a training, that it has the noise which this epsilon needs."""
    if training is None:
        return privacy_loss(ApproximateDP(claim.bound, claim.delta))

    def with_noise(noise: float) -> Mechanism:
        return replace(training, noise=noise).mechanism

    return calibrate(with_noise, claim, training.adjacency).loss


def watch_rows(scores: Scores, claim: PrivacyLoss, risk: float) -> WatchEvidence:
    """What a watch from the first row on shows against a claim."""
    score, member = take_trials(scores)
    odds, deltas = log_odds_from_earlier(score, member), hockey_sticks(claim)
    ends = looks(score.size, 1, _NEXT_LOOK)
    looked = list(accumulate(Tally.of(odds[a:b], member[a:b]) for a, b in pairwise([0, *ends])))
    return WatchEvidence(tuple(looked), log_wealth(looked, deltas), deltas, risk)
