"""Lower bounds on epsilon from one single training: many canaries, each included by its own fair coin.

The observer scores all canaries, calls the highest-scored ones members and the lowest-scored ones not, and abstains on
the rest: m canaries, r guesses, v of them right. How many guesses are made must not depend on who is a member;
`one_run` tries several numbers that depend on m alone, and shares 1 - confidence among them.

- `right_guesses_p` bounds how likely v or more right guesses are under (epsilon, delta)-DP (Steinke, Nasr, Jagielski
  2023, Theorem 5.2; Lemma E6): guesses dominate randomized response, and each of m canaries may fail with delta.
- `refutes_curve` does the same for a whole trade-off curve (Mahloujifar, Melis, Chaudhuri 2024, Theorem 9 and
  Algorithm 3; Lemma E7), which is far sharper where the curve is known, such as the Gaussian one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, bdtrc, expit, ndtr, ndtri

from deniable.checks import probability, whole
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import GAUSSIAN, Assumption, Bound, epsilon_of_mu

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05)
"""Shares of the canaries that are guessed about."""
_LARGEST_EPSILON, _EPSILON_PRECISION = 100.0, 1e-6
_COINS_TEXT = "each canary was included by its own fair coin, and all else was the same"
_UNFAIR_LEVEL = 1e-4
"""How often fair coins are taken for unfair ones."""


def coins_assumption(scores: Scores) -> Assumption:
    """Fair coins, tested by how many canaries were included."""
    fewer = min(scores.members.size, scores.others.size)
    p_value = min(1.0, 2 * float(bdtr(fewer, len(scores), 0.5)))
    return Assumption(_COINS_TEXT, None if p_value >= _UNFAIR_LEVEL else False, p_value)


def one_run(scores: Scores, delta: float, confidence: float = 0.95, shares: tuple[float, ...] = SHARES) -> Bound:
    """Epsilon at least, from the canaries' scores; (epsilon, delta)-DP is all that is assumed to be claimed."""
    probability("delta", delta)
    m, side = len(scores), 1 - (1 - confidence) / len(shares)
    value = max(epsilon_from_guesses(m, r, v, delta, side) for r, v in count_tries(scores, shares))
    return withdraw_if_refuted(
        Bound("one-run", value, delta, confidence, rule="abstention", assumptions=(coins_assumption(scores),))
    )


def one_run_gaussian(
    scores: Scores, delta: float, confidence: float = 0.95, shares: tuple[float, ...] = SHARES
) -> Bound:
    """As `one_run` with the Gaussian trade-off curve: mu at least, then epsilon at `delta`."""
    probability("delta", delta, open_ends=True)
    m, side = len(scores), 1 - (1 - confidence) / len(shares)
    mu = max(mu_from_guesses(m, r, v, side) for r, v in count_tries(scores, shares))
    found = Bound("one-run-gaussian", epsilon_of_mu(mu, delta), delta, confidence, rule="abstention", mu=mu)
    return withdraw_if_refuted(replace(found, assumptions=(coins_assumption(scores), GAUSSIAN)))


def withdraw_if_refuted(bound: Bound) -> Bound:
    """Nothing is claimed where the scores speak against an assumption."""
    return bound if bound.valid else replace(bound, value=0.0)


def count_tries(scores: Scores, shares: tuple[float, ...]) -> list[tuple[int, int]]:
    """Guesses about each of these shares of the canaries, and how many of them are right."""
    wanted = [max(1, round(probability("shares", share) * len(scores))) for share in shares]
    return [(guesses, right_guesses(scores, guesses)) for guesses in wanted]


def right_guesses(scores: Scores, guesses: int) -> int:
    """How many are right when the upper half of `guesses` goes to the highest scores and the rest to the lowest.

    Equal scores are taken in random order: an observer who draws lots is an observer, too, and one who sees 0 and 1
    alone still shows what these say.
    """
    if whole("guesses", guesses) > len(scores):
        raise ValueError(f"guesses must be at most the {len(scores)} canaries, got {guesses}")
    above, below = (guesses + 1) // 2, guesses // 2
    member = scores.members_by_score
    return int(member[member.size - above :].sum() + (~member[:below]).sum())


def right_guesses_p(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Guarantee: under (epsilon, delta)-DP, v or more of r guesses about m canaries are right at most this often.

    Steinke, Nasr, Jagielski 2023, Theorem 5.2: P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i, where B is the
    number of right answers of r randomized responses with epsilon.
    """
    _check(m, r, v)
    q = float(expit(epsilon))
    p = float(bdtrc(v - 1, r, q)) if v else 1.0
    if delta > 0 and v:
        i = np.arange(1, v + 1)
        below = np.where(i < v, bdtr(np.maximum(v - 1 - i, 0), r, q), 0.0)  # P[B < v - i]
        p += 2 * m * delta * float(((bdtr(v - 1, r, q) - below) / i).max())
    return min(1.0, p)


@lru_cache(maxsize=4096)  # counts come again, in `trials_to_decide` and in simulations
def epsilon_from_guesses(m: int, r: int, v: int, delta: float, confidence: float = 0.95) -> float:
    """Guarantee: above the true epsilon with probability at most 1 - confidence."""
    _check(m, r, v)
    risk = 1 - probability("confidence", confidence, open_ends=True)
    return _largest(lambda epsilon: right_guesses_p(m, r, v, epsilon, delta) < risk)


@lru_cache(maxsize=4096)
def mu_from_guesses(m: int, r: int, v: int, confidence: float = 0.95) -> float:
    """Guarantee: above the true mu of a Gaussian release with probability at most 1 - confidence."""
    _check(m, r, v)
    risk = 1 - probability("confidence", confidence, open_ends=True)

    def is_refuted(mu: float) -> bool:
        return refutes_curve(m, r, v, risk, lambda tpr: float(ndtr(ndtri(tpr) - mu)))

    return _largest(is_refuted)


def refutes_curve(m: int, r: int, v: int, risk: float, least_fpr: Callable[[float], float]) -> bool:
    """Whether v or more right guesses have probability below `risk` under a trade-off curve.

    `least_fpr(tpr)` is the curve: the least false positive rate with that true positive rate. Suppose that v or more
    right guesses had probability `risk`. Let p_i be the probability of exactly i right ones, and

        right_i = sum over j >= i of j p_j / m,        wrong_i = sum over j >= i of (r - j) p_j / m.

    Turning one right guess's coin makes it wrong: right_{i+1} <= tpr(wrong_i), so wrong_i >= least_fpr(right_{i+1}).
    Going down from i = v, each p_i has to be at least so large that this holds; least is all mass of {>= v} at v, and
    then the smallest p_i each time. If the p_i then sum to more than 1, the supposition was false.
    """
    _check(m, r, v)
    right, wrong = risk * v / m, risk * (r - v) / m
    for i in range(v - 1, -1, -1):
        needed = max(wrong, least_fpr(min(right, 1.0)))
        if needed <= wrong:
            return False  # nothing changes any more, and the sum is at most `risk` so far
        right, wrong = right + i / (r - i) * (needed - wrong), needed
        if right + wrong > r / m:
            return True
    return False


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest refuted parameter, rounded down; 0 where none is, infinite where all are."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST_EPSILON and refuted(high):
        low, high = high, 2 * high
    if high >= _LARGEST_EPSILON and refuted(_LARGEST_EPSILON):
        return _LARGEST_EPSILON
    while high - low > _EPSILON_PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _check(m: int, r: int, v: int) -> None:
    if not 0 <= whole("right", v, low=0) <= whole("guesses", r) <= whole("canaries", m):
        raise ValueError(f"right <= guesses <= canaries must hold, got {v}, {r} and {m}")
